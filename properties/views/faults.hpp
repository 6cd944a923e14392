// properties/views/faults.hpp: what is done wrong in the caches of contract `views`.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::views {

/// One row a mutant. Numbers and classes (B001, F01) are those of the corpus of real bugs.
[[nodiscard]] const std::vector<seeding::Fault>& faults();

}  // namespace kvo::views
