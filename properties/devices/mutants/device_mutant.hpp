// properties/devices/mutants/device_mutant.hpp: faults of device work.
#pragma once

#include <vector>

#include "properties/campaign/mutant.hpp"

namespace kvo::devices {

/// Those of provider.contiguous, device and tensor.
[[nodiscard]] std::vector<DeviceMutant> provider_device_mutants();
/// Those of snapshot.kv and rotating.
[[nodiscard]] std::vector<DeviceMutant> snapshot_device_mutants();

}  // namespace kvo::devices
