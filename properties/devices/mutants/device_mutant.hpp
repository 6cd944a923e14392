// properties/devices/mutants/device_mutant.hpp: faults of device work.
#pragma once

#include <vector>

#include "properties/campaign/mutant.hpp"

namespace kvo::devices {

/// Those of provider.contiguous, device and tensor.
[[nodiscard]] std::vector<DeviceMutant> provider_device_mutants();
/// Those of snapshot.kv and rotating.
[[nodiscard]] std::vector<DeviceMutant> snapshot_device_mutants();

/// Those of the causal caches of positional.
[[nodiscard]] std::vector<DeviceMutant> positional_device_mutants();
/// One that shows in a pool of more than 2^32 elements alone, and so in none that a reference can
/// hold.
[[nodiscard]] DeviceMutant narrow_offsets_mutant();

}  // namespace kvo::devices
