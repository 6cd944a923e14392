// properties/devices/graphed_tensor.hpp: decode steps from a graph, under generated scripts.
#pragma once

#include <string>

#include "reference/contract/device/device.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::devices {

/// `provider.tensor` over the copy of its device cache. Decode steps come from a graph where that
/// shows the same: of a cache with one layer, in profile documented, while no launch is to fail.
/// The graph is captured once and lives until the cache refuses it; truncate, reset and everything
/// else come between replays.
[[nodiscard]] Subject graphed_tensor(const std::string& variant, const OpenDevice& open);

}  // namespace kvo::devices
