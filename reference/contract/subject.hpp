// reference/contract/subject.hpp: anything that claims to keep a contract, and how it is driven.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "reference/contract/operation.hpp"
#include "reference/contract/probe.hpp"
#include "reference/contract/result.hpp"

namespace kvo {

/// `original` is what the followed system does, quirks included; `documented` what it promises.
enum class Profile : std::uint8_t { kOriginal, kDocumented };
BOOST_DESCRIBE_ENUM(Profile, kOriginal, kDocumented)

/// One way in which the followed system does not do what it promises: what sets the profiles apart.
struct QuirkInfo {
  std::string_view rule;  ///< "OK-54", the spec's rule that it is part of
  std::string_view name;  ///< "copy_onto_itself_empties"
};

/// What a case is set up with: the profile, and the "config" of the log's header.
struct Setup {
  Profile profile = Profile::kOriginal;
  boost::json::object config = {};
  /// Quirks by name that a cache has in profile documented all the same; only a reference can.
  std::vector<std::string_view> quirks = {};
};

/// One case against one subject: holds the caches that its operations made.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  /// Carries out one operation. Never throws: a failed allocation is kOutOfMemory with the state as
  /// before, any other exception kThrew.
  [[nodiscard]] virtual Observation apply(const Op& op, Probe& probe) = 0;
  /// Walks the caches' internal state; nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// A cache of a contract, whoever implements it: its name and its operations.
struct CacheKind {
  std::string_view contract;  ///< "provider"
  std::string_view cache;     ///< "paged"
  std::string_view doc;
  std::vector<const OpKind*> operations;
  std::span<const QuirkInfo> quirks = {};  ///< those that are named; none where none is

  /// "provider.paged"
  [[nodiscard]] std::string name() const {
    return std::string(contract) + "." + std::string(cache);
  }
  /// The operation of that name, or null.
  [[nodiscard]] const OpKind* operation(std::string_view op) const {
    for (const OpKind* kind : operations)
      if (kind->name == op) return kind;
    return nullptr;
  }
};

/// An implementation of a cache kind. `engine` is "reference", "optimized", "mutant:name", ...
struct Subject {
  const CacheKind* kind = nullptr;
  std::string engine;
  std::string doc;
  /// Errors: kNotSupported when the setup asks for something that this subject lacks.
  std::function<Result<std::unique_ptr<Session>>(const Setup&)> open;

  /// "provider.paged@reference"
  [[nodiscard]] std::string name() const { return kind->name() + "@" + engine; }
};

/// What a visitor answers when an error comes together with values.
template <class R>
struct Answer {
  std::optional<Error> error = std::nullopt;
  R returns = {};
};

namespace detail {

template <class R>
Observation observe(Result<R> result) {
  if (!result) return {.error = std::move(result).error()};
  return {.returns = std::make_shared<const R>(std::move(*result))};
}
template <class R>
Observation observe(Answer<R> answer) {
  return {.error = std::move(answer.error),
          .returns = std::make_shared<const R>(std::move(answer.returns))};
}
inline Observation observe(const Status& status) {
  static const auto kNothing = std::make_shared<const Nothing>();
  if (!status) return {.error = status.error()};
  return {.returns = kNothing};
}

}  // namespace detail

/// Calls the visitor's overload for the operation's type. A visitor that lacks one does not
/// compile. Each overload returns Status, Result<Returns> or Answer<Returns>.
template <class... Ops, class Visitor>
Observation dispatch(boost::mp11::mp_list<Ops...> /*ops*/, const Op& op, Visitor&& visitor) {
  Observation seen{.error = fail(Code::kNotSupported, std::string(op.kind().name))};
  const auto attempt = [&]<class T>(const T* arguments) {
    if (arguments != nullptr) seen = detail::observe(visitor(*arguments));
    return arguments != nullptr;
  };
  try {
    (void)(attempt(op.as<Ops>()) || ...);
  } catch (const std::bad_alloc&) {
    return {.error = fail(Code::kOutOfMemory)};
  } catch (const std::length_error& error) {
    return {.error = fail(Code::kOutOfMemory, error.what())};
  } catch (const std::exception& error) {
    return {.error = fail(Code::kThrew, error.what())};
  }
  return seen;
}

}  // namespace kvo
