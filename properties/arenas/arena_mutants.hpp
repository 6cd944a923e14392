// properties/arenas/arena_mutants.hpp: mutants of the fast caches of layered, block_pool and
// provider.
#pragma once

#include <string_view>
#include <vector>

#include "properties/campaign/mutant.hpp"

namespace kvo::arenas {

/// One for each row of faults() about a kind of this contract, in its order.
[[nodiscard]] std::vector<Mutant> mutants_of(std::string_view contract);

/// The copies that the mutants are made of, with no fault on: nothing may catch them, or else what
/// catches a mutant need not be its fault.
[[nodiscard]] std::vector<Subject> sound_copies();

}  // namespace kvo::arenas
