// properties/positional/faults.hpp: what is done wrong in the mutants of contract `positional`.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::positional {

/// One row a mutant. Numbers and classes (B001, F01) are those of the corpus of real bugs.
[[nodiscard]] const std::vector<seeding::Fault>& faults();

}  // namespace kvo::positional
