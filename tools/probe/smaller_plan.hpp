// tools/probe/smaller_plan.hpp: the fewest and shortest requests whose last one is answered
// wrongly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// Requests that are sent one after the other.
using ProbeRequests = std::vector<ProbeRequest>;

/// Whether the last of some requests is answered wrongly.
using LastIsWrong = std::function<bool(const ProbeRequests& requests)>;

/// The same requests with other values: an engine knows none of them, and they share with each
/// other what they shared before.
[[nodiscard]] ProbeRequests with_other_values(ProbeRequests requests, std::uint64_t number);

/// Leaves out requests, cuts the same positions out of all prompts, and generates fewer tokens, as
/// long as the last answer is wrong. Asks `wrong` about at most `attempts` lists.
/// Requires  wrong(requests).
[[nodiscard]] ProbeRequests smaller_requests(ProbeRequests requests, std::size_t attempts,
                                             const LastIsWrong& wrong);

}  // namespace kvo::tools
