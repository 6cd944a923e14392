// properties/replay/replay.hpp: a request trace as cases on caches.
//
// The requests are cut into windows; a case is one window on the subjects of one cache kind.
//
//   const replay::Replay replay(contracts(), requests, {{&provider::paged_kind(), subjects}});
//   for (std::uint64_t index = 0; index < replay.cases(); ++index) {
//     const CaseResult result = run_case(replay.plan(index), {});
//     for (const SubjectResult& subject : result.subjects) use(subject.verdict);
//   }
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "properties/replay/lowering.hpp"
#include "properties/replay/variation.hpp"
#include "properties/runner/run_case.hpp"

namespace kvo::replay {

/// Everything that the cases depend on beside requests and subjects.
struct ReplayOptions {
  SchedulePolicy schedule = {};  ///< `scale` plays no part
  LoweringPolicy lowering = {};
  Members varied = {};        ///< members of these that each case has its own values for
  std::int64_t requests = 0;  ///< only the first so many to arrive; 0: all
  std::int64_t scale = 0;     ///< what lengths are divided by; 0: for each kind what scale_of
                              ///< chooses for all requests, however many are replayed
  std::uint64_t seed = 1;     ///< of the first window; each further window has the next number
  Profile profile = Profile::kOriginal;
  /// Whether cases have figures about the prompt tokens that were not reused.
  bool keep_lookups = false;
  /// Operations between two walks over every structure: after each one they would dwarf the replay.
  std::uint64_t invariants_every = 4096;
};

/// A cache kind that is replayed by one of its lowerings.
struct ReplayedKind {
  Comparison comparison;
  const Lowering* lowering;
  MakeOracle oracle;   ///< judges beside the comparison; null: nothing does
  std::int64_t scale;  ///< what its lengths are divided by
};

/// The cases of a trace. The same arguments give the same cases.
class Replay {
 public:
  /// Sorts the requests by arrival: traces may hold rows out of order. Kinds without a lowering are
  /// left out. `contracts` outlives the cases. Requires  options.lowering.requests_per_case >= 1.
  Replay(const Contracts& contracts, std::vector<Request> requests,
         const std::vector<Comparison>& comparisons, ReplayOptions options = {});

  /// Windows times lowerings, fewer where a lowering takes several windows at a time; 0 without
  /// requests or kinds.
  [[nodiscard]] std::uint64_t cases() const { return windows_.size(); }
  /// Case `index`: all kinds from the first request on, then those of the next window. Its
  /// operations borrow the requests: it must not outlive the replay. Requires  index < cases().
  [[nodiscard]] CasePlan plan(std::uint64_t index) const;
  /// What case `index` is lowered by, but for the scale. Requires  index < cases().
  [[nodiscard]] Policies policies(std::uint64_t index) const;

  /// The requests of case `index`: the first one, by arrival, and how many. Requires  index <
  /// cases().
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> requests_of(std::uint64_t index) const {
    return {windows_[index].first, windows_[index].count};
  }

  [[nodiscard]] const std::vector<Request>& requests() const { return requests_; }
  [[nodiscard]] const ReplayOptions& options() const { return options_; }
  [[nodiscard]] std::span<const ReplayedKind> kinds() const { return kinds_; }

 private:
  /// What one case replays.
  struct Window {
    std::uint64_t first = 0;   ///< request
    std::size_t kind = 0;      ///< of kinds_
    std::uint64_t number = 0;  ///< among those of the kind
    std::uint64_t count = 0;   ///< requests
  };

  std::vector<Request> requests_;
  ReplayOptions options_;
  std::function<const Subject&(const CacheKind&)> reference_of_;
  std::vector<ReplayedKind> kinds_;
  std::vector<Window> windows_;
};

}  // namespace kvo::replay
