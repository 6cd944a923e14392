// properties/arenas/faults.hpp: what is done wrong in the fast caches that keep their rows in
// arenas.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::arenas {

/// One row a mutant. Numbers and classes (B001, F01) are those of the corpus of real bugs. No fault
/// reads or writes outside of an allocation: a crash would tell nothing about the laws.
[[nodiscard]] const std::vector<seeding::Fault>& faults();

}  // namespace kvo::arenas
