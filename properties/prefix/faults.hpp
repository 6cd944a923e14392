// properties/prefix/faults.hpp: what is done wrong in copies of this contract's caches.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::prefix {

[[nodiscard]] const std::vector<seeding::Fault>& faults();

/// Those of them inside the optimized caches.
[[nodiscard]] std::vector<seeding::Fault> optimized_faults();

}  // namespace kvo::prefix
