// properties/sampling/faults.hpp: what is done wrong in the samplers of contract `sampling`.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::sampling {

/// One row a mutant. The corpus of real bugs is of caches and has none of sampling; origins name
/// the mistake.
[[nodiscard]] const std::vector<seeding::Fault>& faults();

}  // namespace kvo::sampling
