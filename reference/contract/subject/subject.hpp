// reference/contract/subject/subject.hpp: anything that claims to keep a contract, and how it is
// driven.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/probe.hpp"
#include "reference/contract/values/profile.hpp"
#include "reference/contract/values/quirk.hpp"
#include "reference/contract/values/result.hpp"

namespace kvo {

/// What a case is set up with: the profile, and the config of the log's header.
struct Setup {
  Profile profile = Profile::kOriginal;
  Record config = {};  ///< of the kind's config type; without a value: all defaults
  /// Quirks by name that a cache has in profile documented all the same; only a reference can.
  std::vector<std::string> quirks = {};

  /// The config. Requires  Config is the config type of the case's kind.
  template <class Config>
  [[nodiscard]] Config config_as() const {
    return config ? config.as<Config>() : Config();
  }
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

/// A cache of a contract, whoever implements it: its name, its operations, and its config.
struct CacheKind {
  std::string_view contract;  ///< "provider"
  std::string_view cache;     ///< "paged"
  std::string_view doc;
  std::vector<const OpKind*> operations;
  const Type* config = &type_of<Nothing>();  ///< the described record of a case's config
  std::span<const QuirkInfo> quirks = {};    ///< those of the contract that concern it
  /// Whether an operation that ran out of memory can be repeated. Not where it changes several
  /// caches in turn.
  bool repeatable = true;

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

/// An implementation of a cache kind.
struct Subject {
  const CacheKind* kind = nullptr;
  std::string variant;  ///< "reference", "optimized", "mutant:name", ...
  std::string doc;
  /// Errors: kNotSupported when the setup asks for something that this subject lacks.
  std::function<Result<std::unique_ptr<Session>>(const Setup&)> open;

  /// "provider.paged@reference"
  [[nodiscard]] std::string name() const { return kind->name() + "@" + variant; }
};

}  // namespace kvo
