// properties/snapshot/contract.hpp: what the machine is told of contract `snapshot`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"

namespace kvo::snapshot {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();
/// Caches with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

/// The parts of generators().
[[nodiscard]] std::vector<Generator> rows_generators();
[[nodiscard]] Generator recurrent_generator();
[[nodiscard]] Generator trie_generator();

}  // namespace kvo::snapshot
