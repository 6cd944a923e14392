// reference/contract/subject/subject.hpp: anything that claims to keep a contract, and how it is
// driven.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/conventions.hpp"
#include "reference/contract/subject/probe.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/quirk.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/contract/values/schedule.hpp"

namespace kvo {

/// What a case is set up with: the profile, and the config of the log's header.
struct Setup {
  Profile profile = Profile::kOriginal;
  Record config = {};  ///< of the kind's config type; without a value: all defaults
  /// Quirks by name that a cache has in profile documented all the same; only a reference can.
  std::vector<std::string> quirks = {};
  /// What a simulated device under the caches draws its order from.
  Schedule schedule = {};

  /// The config. Requires  Config is the config type of the case's kind.
  template <class Config>
  [[nodiscard]] Config config_as() const {
    return config ? config.as<Config>() : Config();
  }
};

/// A part of an operation's work that its caller does not see, for reports.
struct WorkStep {
  std::string work;     ///< "a forward of [7] behind 4 positions"
  std::string outcome;  ///< "token 5"
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
  /// The next operations, in order, unless the case ends before them: a session may carry them out
  /// now and give the answers in apply(). Called only where all earlier ones were applied.
  virtual void expect(std::span<const Op> /*ops*/) {}
  /// Ends the case, before the session is destroyed: nothing, or how the subject died of that.
  [[nodiscard]] virtual std::optional<std::string> end() { return std::nullopt; }
  /// Walks the caches' internal state; nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
  /// What the last operation did over the caches inside, the step under way included; valid until
  /// the next operation. Empty where nothing is told.
  [[nodiscard]] virtual std::span<const WorkStep> steps() const { return {}; }
  /// Makes the choices that `answer` shows in the next apply() of `op`, where the rules leave them
  /// to a cache (ConventionInfo::chooses). `answer` is that of `chooser`, another cache in the same
  /// case, which may be asked queries.
  virtual void follow(const Op& /*op*/, const Observation& /*answer*/, Session& /*chooser*/) {}
  /// The session that scripts look at.
  [[nodiscard]] virtual Session& shown_session() { return *this; }
  /// What was drawn of the setup's schedule so far; empty where nothing is told.
  [[nodiscard]] virtual std::vector<std::uint32_t> choices() const { return {}; }
};

/// A cache of a contract, whoever implements it: its name, its operations, and its config.
struct CacheKind {
  std::string_view contract;  ///< "provider"
  std::string_view cache;     ///< "paged"
  std::string_view doc;
  std::vector<const OpKind*> operations;
  const Type* config = &type_of<Nothing>();          ///< the described record of a case's config
  std::span<const QuirkInfo> quirks = {};            ///< those of the contract that concern it
  std::span<const ConventionInfo> conventions = {};  ///< beside general_conventions()
  /// Whether an operation that ran out of memory can be repeated. Not where it changes several
  /// caches in turn.
  bool repeatable = true;
  /// Names of the kinds ("provider.paged") whose caches its subjects can have inside, in the place
  /// of those that they bring; empty: there is nothing inside.
  std::vector<std::string_view> inner = {};

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

/// How far off a subject's rows may be in what an operation returns.
struct Tolerance {
  std::string operation;      ///< its name
  StorageFormat stored = {};  ///< what its rows go through: the error that this costs is allowed
};

/// An implementation of a cache kind. Where a case's caches stand on those of another contract,
/// what is inside is a subject, too, and the harness can put any other in its place (over_cache).
struct Subject {
  const CacheKind* kind = nullptr;
  std::string variant;  ///< "reference", "optimized", "mutant:name", ...
  std::string doc;
  /// Errors: kNotSupported when the setup asks for something that this subject lacks.
  std::function<Result<std::unique_ptr<Session>>(const Setup&)> open;
  /// The same over caches of another subject, of one of kind->inner; null: nothing is inside.
  std::function<Subject(const Subject& cache)> over = nullptr;
  /// The cache that over_cache put inside; null: those that the subject brings.
  std::shared_ptr<const Subject> inside = nullptr;
  /// Where its rows are compared with a baseline's by less than their bits; one row an operation.
  /// Oracles, which go by bits, judge it only where there is none.
  std::vector<Tolerance> tolerances = {};
  Conventions conventions = {};  ///< in what it lawfully differs; judged by them where compared
  /// The release that these conventions are of, where the subject is another one; empty: its own.
  std::string conventions_of = {};
  bool scheduled = false;      ///< its sessions draw from the setup's schedule
  bool on_request = false;     ///< takes part only where somebody names it
  bool guest = false;          ///< none of this tree's
  bool takes_batches = false;  ///< Session::expect makes its sessions faster
  /// Whether it promises that a failed allocation changes nothing. False: the law
  /// `failed_allocation_changes_nothing` leaves it out.
  bool survives_failed_allocation = true;
  /// Whether it refuses the setup, whose config it can read with `config_as`; null: it refuses
  /// none. It takes no part in a random case that it refuses. Must be a function of its argument
  /// alone.
  std::function<bool(const Setup&)> refuses = nullptr;

  /// "provider.paged@reference", and "generation.paged@reference/provider.paged@optimized"
  [[nodiscard]] std::string name() const { return kind->name() + "@" + variant; }
  /// As what the rows that an operation returns are compared; null: bit by bit.
  [[nodiscard]] const StorageFormat* stored_in(std::string_view operation) const {
    for (const Tolerance& each : tolerances)
      if (each.operation == operation) return &each.stored;
    return nullptr;
  }
};

/// `subject` judged by these conventions.
[[nodiscard]] inline Subject with_conventions(Subject subject, const Conventions& conventions) {
  subject.conventions = conventions;
  if (conventions.has(kNoPromiseAfterFailedAllocation)) subject.survives_failed_allocation = false;
  if (std::ranges::any_of(conventions.configs, [](const auto& row) { return row.plus != 0; }))
    subject.open = [open = subject.open, conventions, kind = subject.kind](const Setup& setup) {
      return open(setup_of_cache(conventions, *kind, setup));
    };
  return subject;
}

/// Whether `outer` can have caches of `inner` inside.
[[nodiscard]] inline bool can_stand_over(const Subject& outer, const Subject& inner) {
  if (!outer.over || outer.inside) return false;
  for (const std::string_view kind : outer.kind->inner)
    if (kind == inner.kind->name()) return true;
  return false;
}

/// `outer` over caches of `inner`, whose name says so. It promises what both promise. It refuses
/// what `outer` refuses: `inner` sees a config that `outer` makes when it is opened (Inner::open).
/// Requires  can_stand_over(outer, inner).
[[nodiscard]] inline Subject over_cache(const Subject& outer, const Subject& inner) {
  Subject composed = outer.over(inner);
  composed.variant = outer.variant + "/" + inner.name();
  composed.doc = outer.doc + ", over " + inner.name();
  composed.over = outer.over;
  composed.inside = std::make_shared<const Subject>(inner);
  composed.scheduled = outer.scheduled || inner.scheduled;
  composed.on_request = outer.on_request || inner.on_request;
  composed.guest = outer.guest || inner.guest;
  composed.survives_failed_allocation =
      outer.survives_failed_allocation && inner.survives_failed_allocation;
  composed.refuses = outer.refuses;
  return composed;
}

}  // namespace kvo
