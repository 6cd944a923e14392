// properties/devices/mutants/snapshot_device_mutants.hpp: faults of F07, F09, F10 in
// `snapshot.{kv,rotating}` over a device.
#pragma once

#include <vector>

#include "properties/devices/mutants/device_mutant.hpp"

namespace kvo::devices {

[[nodiscard]] std::vector<DeviceMutant> snapshot_device_mutants();

}  // namespace kvo::devices
