// properties/cells/faults.hpp: what is done wrong in copies of this contract's caches.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::cells {

[[nodiscard]] const std::vector<seeding::Fault>& faults();

}  // namespace kvo::cells
