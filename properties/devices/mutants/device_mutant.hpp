// properties/devices/mutants/device_mutant.hpp: faults of device work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "properties/campaign/mutant.hpp"

namespace kvo::devices {

/// Those of a contract, in the order of properties/devices/faults.txt.
[[nodiscard]] std::vector<DeviceMutant> device_mutants(std::string_view contract);
/// `provider.tensor` over the copy of its device cache, which the mutants of graphs are made of.
/// Decode steps come from a graph where that shows the same: of a cache with one layer, in profile
/// documented, while no launch is to fail. The graph is captured once and lives until the cache
/// refuses it; truncate, reset and everything else come between replays.
[[nodiscard]] Subject graphed_tensor(const std::string& variant, const OpenDevice& open);
/// The one of a kind that shows only in more than 2^32 cells, and so in no cache that a reference
/// can hold. Requires that far_cells/faults.txt has a row of the kind.
[[nodiscard]] DeviceMutant far_mutant(std::string_view kind);

}  // namespace kvo::devices
