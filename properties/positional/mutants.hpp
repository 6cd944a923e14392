// properties/positional/mutants.hpp: the mutants of contract `positional`.
#pragma once

#include <vector>

#include "properties/campaign/mutant.hpp"

namespace kvo::positional {

/// One for each row of faults(), in its order.
[[nodiscard]] std::vector<Mutant> mutants();

/// The copies that the mutants are made of, with no fault on: nothing may catch them, or else what
/// catches a mutant need not be its fault.
[[nodiscard]] std::vector<Subject> sound_copies();

}  // namespace kvo::positional
