// reference/contract/subject/dispatch.hpp: sessions: from an operation to one overload.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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

template <class R>
Observation observe(Result<R> result) {
  if (!result) return {.error = std::move(result).error()};
  return {.returns = Record::of(std::move(*result))};
}
template <class R>
Observation observe(Answer<R> answer) {
  return {.error = std::move(answer.error), .returns = Record::of(std::move(answer.returns))};
}
inline Observation observe(const Status& status) {
  static const Record kNothing = Record::of(Nothing());
  if (!status) return {.error = status.error()};
  return {.returns = kNothing};
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
bool visit_op(boost::mp11::mp_list<Ops...> /*ops*/, const Op& op, Visitor&& visitor) {
  const auto attempt = [&]<class T>(const T* arguments) {
    if (arguments != nullptr) visitor(*arguments);
    return arguments != nullptr;
  };
  return (attempt(op.as<Ops>()) || ...);
}

/// Carries out an operation by the visitor's overload for its type, which returns Status,
/// Result<Returns> or Answer<Returns>. What it throws becomes an observation.
template <class... Ops, class Visitor>
Observation dispatch(boost::mp11::mp_list<Ops...> ops, const Op& op, Visitor&& visitor) {
  Observation seen{.error = fail(Code::kNotSupported, std::string(op.kind().name)),
                   .unsupported = true};
  try {
    visit_op(ops, op, [&](const auto& arguments) { seen = detail::observe(visitor(arguments)); });
  } catch (...) {
    return detail::observe_exception();
  }
  return seen;
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

/// A session with one overload of operator() for each of Ops: Status, Result<Returns> or
/// Answer<Returns> operator()(const Op&). `Base` may have some of them, for sessions that share
/// them: `using Base::operator();`.
template <class Derived, class Ops, std::derived_from<ProbedSession> Base = ProbedSession>
class DispatchSession : public Base {
 public:
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    this->set_probe(probe);
    return dispatch(Ops(), op, static_cast<Derived&>(*this));
  }
};

/// The caches of a case by the number that its operations give them. An Entry has a cache behind
/// its ->, as a unique_ptr has.
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
  /// Puts an entry in the place of the one that had the number. Requires  may_have(number).
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
