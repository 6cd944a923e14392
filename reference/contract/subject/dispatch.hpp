// reference/contract/subject/dispatch.hpp: sessions: from an operation to one overload.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/pfr/core.hpp>

#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// What a visitor answers when an error comes together with values.
template <class R>
struct Answer {
  std::optional<Error> error = std::nullopt;
  R returns = {};
};

/// Most bytes that are kept of the text of an exception or an error.
inline constexpr std::size_t kMostErrorText = 4096;

namespace detail {

/// Results without members share one record.
inline const Record& nothing() {
  static const Record kNothing = Record::of(Nothing());
  return kNothing;
}
template <class R>
Observation observe(Result<R> result) {
  if (!result) return {.error = std::move(result).error()};
  if constexpr (std::is_same_v<R, Nothing>)
    return {.returns = nothing()};
  else
    return {.returns = Record::of(std::move(*result))};
}
template <class R>
Observation observe(Answer<R> answer) {
  return {.error = std::move(answer.error), .returns = Record::of(std::move(answer.returns))};
}
inline Observation observe(const Status& status) {
  if (!status) return {.error = status.error()};
  return {.returns = nothing()};
}

/// The place of an operation's kind among Ops; their number if it is none of them.
template <class... Ops>
std::size_t index_of(boost::mp11::mp_list<Ops...> /*ops*/, const Op& op) {
  static const std::array<const OpKind*, sizeof...(Ops)> kKinds{&op_kind<Ops>()...};
  return static_cast<std::size_t>(std::ranges::find(kKinds, &op.kind()) - kKinds.begin());
}

/// Whether a domain of an operation refuses values. Not constexpr: under the sanitizers addresses
/// cannot be compared at compile time.
template <class T>
bool has_bounds() {
  if constexpr (requires { T::kRows; })
    for (const MemberRow& row : T::kRows)
      if (row.domain != nullptr && row.domain->is_bounded()) return true;
  return false;
}
template <class... Ops>
bool any_has_bounds(boost::mp11::mp_list<Ops...> /*ops*/) {
  return (has_bounds<Ops>() || ...);
}

template <class T>
struct IsSpan : std::false_type {};
template <class T, std::size_t kExtent>
struct IsSpan<std::span<T, kExtent>> : std::true_type {};

/// What a span refers to, as a list; anything else as it is.
template <class T>
decltype(auto) owned(T&& value) {
  if constexpr (IsSpan<std::remove_cvref_t<T>>::value)
    return std::vector<std::remove_cv_t<typename std::remove_cvref_t<T>::element_type>>(
        value.begin(), value.end());
  else
    return std::forward<T>(value);
}

/// A record from what a method returned: the record, its only member, or a struct with the same
/// members in the same order, which may have spans for lists.
template <class Returns, class Result>
Returns record_of(Result&& result) {
  if constexpr (std::is_same_v<Returns, std::remove_cvref_t<Result>>)
    return std::forward<Result>(result);
  else if constexpr (requires { Returns{owned(std::forward<Result>(result))}; })
    return Returns{owned(std::forward<Result>(result))};
  else
    return std::apply(
        [](auto&&... members) {
          return Returns{owned(std::forward<decltype(members)>(members))...};
        },
        boost::pfr::structure_to_tuple(std::forward<Result>(result)));
}

/// What an exception that escaped from a cache is observed as.
[[nodiscard]] Observation observe_exception();

}  // namespace detail

/// For an overload of a visitor that names operations it treats alike: there is no catch-all.
template <class T, class... Ts>
concept OneOf = (std::same_as<T, Ts> || ...);

/// Calls visit(arguments) with the arguments of `op`, whatever its type. A visitor that lacks an
/// overload does not compile. False if `op` is none of Ops.
template <class... Ops, class Visitor>
bool visit_op(boost::mp11::mp_list<Ops...> ops, const Op& op, Visitor&& visitor) {
  const std::size_t at = detail::index_of(ops, op);
  if (at == sizeof...(Ops)) return false;
  boost::mp11::mp_with_index<sizeof...(Ops)>(at, [&](auto index) {
    using T = boost::mp11::mp_at_c<boost::mp11::mp_list<Ops...>, index>;
    visitor(*static_cast<const T*>(op.arguments().get()));
  });
  return true;
}

/// Carries out an operation by the visitor's overload for its type, which returns Status,
/// Result<Returns> or Answer<Returns>. What it throws becomes an observation.
template <class... Ops, class Visitor>
Observation dispatch(boost::mp11::mp_list<Ops...> ops, const Op& op, Visitor&& visitor) {
  const std::size_t at = detail::index_of(ops, op);
  if (at == sizeof...(Ops))
    return {.error = fail(Code::kNotSupported, std::string(op.kind().name)), .unsupported = true};
  try {
    return boost::mp11::mp_with_index<sizeof...(Ops)>(at, [&](auto index) -> Observation {
      using T = boost::mp11::mp_at_c<boost::mp11::mp_list<Ops...>, index>;
      return detail::observe(visitor(*static_cast<const T*>(op.arguments().get())));
    });
  } catch (...) {
    return detail::observe_exception();
  }
}

/// A session that calls its caches through probe().
class ProbedSession : public Session {
 protected:
  /// What the operation under way calls the cache through.
  [[nodiscard]] Probe& probe() { return *probe_; }
  void set_probe(Probe& probe) { probe_ = &probe; }

 private:
  Probe* probe_ = nullptr;
};

/// A session of Ops. An operation whose arguments its domains refuse reaches no cache. Any other is
/// carried out by the method of its name, on the cache that `cache_of(op)` gives, a Result with a
/// pointer. A session that does more for an operation has an overload
/// for it: Status, Result<Returns> or Answer<Returns> operator()(const Op&). `Base` may have some
/// of them, for sessions that share them: `using Base::operator();`.
template <class Derived, class Ops, std::derived_from<ProbedSession> Base = ProbedSession>
class DispatchSession : public Base {
 public:
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    this->set_probe(probe);
    static const bool kChecks = detail::any_has_bounds(Ops());
    if (kChecks)
      if (auto error = argument_error(op)) return {.error = std::move(error)};
    return dispatch(Ops(), op, [this](const auto& arguments) {
      auto& session = static_cast<Derived&>(*this);
      if constexpr (requires { session(arguments); })
        return session(arguments);
      else
        return this->call_method(arguments);
    });
  }

 protected:
  /// Calls the method of the operation's name. It returns nothing, Status, or what record_of makes
  /// Returns from, which may be in a Result.
  template <class T>
  [[nodiscard]] Result<typename T::Returns> call_method(const T& arguments) {
    using Returns = typename T::Returns;
    const auto cache = static_cast<Derived&>(*this).cache_of(arguments);
    if (!cache) return cache.error();
    const auto call = [&]() -> decltype(auto) { return arguments.call(**cache); };
    using Called = std::remove_cvref_t<decltype(call())>;
    if constexpr (std::is_void_v<Called>) {
      this->probe()(call);
      return Returns{};
    } else {
      decltype(auto) result = this->probe()(call);
      if constexpr (std::is_same_v<Called, Status>) {
        if (!result) return result.error();
        return Returns{};
      } else if constexpr (requires { result.error(); }) {
        if (!result) return result.error();
        return detail::record_of<Returns>(*std::move(result));
      } else {
        return detail::record_of<Returns>(std::move(result));
      }
    }
  }
};

/// The caches of a case by the number that its operations give them. An Entry gives its cache by
/// ->, as a unique_ptr does.
template <class Entry>
class NumberedCaches {
 public:
  /// Most caches of a case.
  static constexpr std::int64_t kMost = 4096;

  /// The entry of that number, or null.
  [[nodiscard]] Entry* find(std::int64_t number) {
    const auto found = entries_.find(number);
    return found != entries_.end() ? &found->second : nullptr;
  }
  /// The entry of that number. Errors  kPrecondition: there is none.
  [[nodiscard]] Result<Entry*> at(std::int64_t number) {
    Entry* const entry = find(number);
    if (entry == nullptr) return none(number);
    return entry;
  }
  /// Adds an entry; gives its number, which is the number of entries so far.
  /// Errors  kPrecondition: there are kMost.
  [[nodiscard]] Result<std::int64_t> add(Entry entry) {
    const std::int64_t number = std::ssize(entries_);
    if (!may_have(number)) return fail(Code::kPrecondition, "too many caches in a case");
    put(number, std::move(entry));
    return number;
  }
  /// Replaces the entry of that number, if there is one. Requires  may_have(number).
  void put(std::int64_t number, Entry entry) { entries_[number] = std::move(entry); }
  [[nodiscard]] static bool may_have(std::int64_t number) { return number >= 0 && number < kMost; }
  [[nodiscard]] static Error none(std::int64_t number) {
    return fail(Code::kPrecondition, "no cache " + std::to_string(number));
  }
  /// Of the first cache that says one.
  [[nodiscard]] std::optional<std::string> broken_invariant() const {
    for (const auto& [number, entry] : entries_)
      if (auto broken = entry->broken_invariant()) return broken;
    return std::nullopt;
  }

 private:
  std::map<std::int64_t, Entry> entries_;
};

}  // namespace kvo
