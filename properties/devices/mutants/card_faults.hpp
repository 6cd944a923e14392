// properties/devices/mutants/card_faults.hpp: what is done wrong in CudaDevice and the launches.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::card {

[[nodiscard]] const std::vector<seeding::Fault>& faults();

}  // namespace kvo::card
