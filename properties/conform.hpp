// properties/conform.hpp: recorded logs replayed against subjects, in constant memory.
#pragma once

#include <functional>
#include <vector>

#include "properties/run_case.hpp"
#include "traces/kvlog.hpp"

namespace kvo {

/// The subjects that a case of this kind is replayed on.
using ChooseSubjects = std::function<std::vector<const Subject*>(const CacheKind&)>;

/// Replays the next case of a log. What the log recorded judges every subject; operations without a
/// record are judged by the first subject. A recorded panic ends the case. In profile documented a
/// kind that names its quirks is judged by its reference, and the log only by where that parts from
/// it: a parting that no quirk explains is a mismatch of the reference.
/// Returns  nothing at the end of the log. The case's name is that of the log.
/// Errors   as LogReader.
[[nodiscard]] traces::TraceResult<std::optional<CaseResult>> conform_next(
    traces::LogReader& log, const ChooseSubjects& choose, Profile profile,
    const LockstepOptions& options = {});

}  // namespace kvo
