// properties/provider/mutants.hpp: the mutants of contract `provider` whose caches are on a device.
#pragma once

#include <vector>

#include "properties/campaign/mutant.hpp"

namespace kvo::provider {

/// Those of provider.tensor.
[[nodiscard]] std::vector<Mutant> tensor_mutants();
/// Those of provider.device.
[[nodiscard]] std::vector<Mutant> device_mutants();

}  // namespace kvo::provider
