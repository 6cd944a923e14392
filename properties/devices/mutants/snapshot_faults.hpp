// properties/devices/mutants/snapshot_faults.hpp: what is done wrong in the device caches of
// `snapshot`.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::snapshot_devices {

[[nodiscard]] const std::vector<seeding::Fault>& faults();

}  // namespace kvo::snapshot_devices
