// properties/snapshot/contract.hpp: what the machine is told of contract `snapshot`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/replay/lowering.hpp"
#include "properties/runner/law.hpp"

namespace kvo::snapshot {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();
/// Requests as operations of each kind.
[[nodiscard]] std::vector<replay::Lowering> lowerings();
/// Its metamorphic laws.
[[nodiscard]] std::vector<const Law*> laws();
/// Caches with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

/// The parts of generators().
[[nodiscard]] std::vector<Generator> rows_generators();
[[nodiscard]] Generator recurrent_generator();
[[nodiscard]] Generator trie_generator();

}  // namespace kvo::snapshot
