// tools/probe/smaller_plan.hpp: the fewest and shortest requests whose last one is answered
// wrongly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// Requests in waves, as in ProbePlan.
using ProbeWaves = std::vector<std::vector<ProbeRequest>>;

/// Each request in a wave of its own.
[[nodiscard]] ProbeWaves one_by_one(const ProbeWaves& waves);

/// Whether a request of the last wave is answered wrongly.
using LastIsWrong = std::function<bool(const ProbeWaves& waves)>;

/// The same requests with other values: an engine knows none of them, and they share with each
/// other what they shared before.
[[nodiscard]] ProbeWaves with_other_values(ProbeWaves waves, std::uint64_t number);

/// Leaves out requests, cuts the same positions out of all prompts, and generates fewer tokens, as
/// long as the last wave is answered wrongly. The last request of it stays. Asks `wrong` about at
/// most `attempts` plans.
/// Requires  wrong(waves).
[[nodiscard]] ProbeWaves smaller_waves(ProbeWaves waves, std::size_t attempts,
                                       const LastIsWrong& wrong);

}  // namespace kvo::tools
