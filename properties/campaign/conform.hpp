// properties/campaign/conform.hpp: recorded logs replayed against subjects.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "properties/runner/run_case.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo {

/// The subjects that a case of this kind is replayed on.
using ChooseSubjects = std::function<std::vector<const Subject*>(const CacheKind&)>;

/// How recorded cases are replayed.
struct ConformOptions {
  /// Absent: that of the case's header, else original.
  std::optional<Profile> profile = std::nullopt;
  /// The law whose script the log is; null: that of the case's header, else what was recorded
  /// judges.
  const Law* law = nullptr;
  /// In how many schedules subjects that draw from one are judged. The first is that of the header,
  /// else a seed from the place of the case in its log.
  std::uint64_t schedules = 1;
};

/// What a case of a log is set up with; the profile is that of the header unless it is given.
[[nodiscard]] Setup setup_of(const traces::CaseHeader& header, std::optional<Profile> profile);

/// Replays the next case of a log, in profile original in constant memory. What the log recorded
/// judges every subject; operations without a record are judged by the first subject. A recorded
/// panic ends the case. In profile documented a kind that names its quirks is judged by its
/// reference, and the log only by where that parts from it: a difference that no quirk explains is
/// a mismatch of the reference. With a law the log is only its script.
/// Returns  nothing at the end of the log. The case's name is that of the log.
/// Errors   as LogReader; a law in the header that nobody knows.
[[nodiscard]] traces::TraceResult<std::optional<CaseResult>> conform_next(
    const Contracts& contracts, traces::LogReader& log, const ChooseSubjects& choose,
    const ConformOptions& options = {});

/// Replays a recorded case or a rule case on a reference.
/// Returns  what it observes in profile `profile`, of each operation; nothing where it does not
///          support the config
[[nodiscard]] std::vector<Observation> observe_case(const traces::Case& script,
                                                    const Subject& reference, Profile profile);

/// How a subject comes out of a recorded case where only what was recorded judges.
[[nodiscard]] Verdict run_recorded(const traces::Case& recorded, const Subject& subject,
                                   const Setup& setup);

/// The fewest operations of a recorded case in which the subject still parts from the recording in
/// the same place with the same values, the guilty operation last. Arguments and answers stay as
/// they were recorded: whether the recorded system would answer so without what was left out, only
/// the system can tell. A case that the subject conforms to is returned as it is.
[[nodiscard]] traces::Case shrink_recorded(traces::Case recorded, const Subject& subject,
                                           const Setup& setup);

}  // namespace kvo
