// properties/cells/contract.hpp: what the machine is told of contract `cells`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/replay/lowering.hpp"
#include "properties/runner/law.hpp"

namespace kvo::cells {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();

/// One of each kind that requests can be replayed on.
[[nodiscard]] std::vector<replay::Lowering> lowerings();

/// Caches with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

/// Laws over two scripts.
[[nodiscard]] std::vector<const Law*> laws();

/// The parts of generators(). @{
[[nodiscard]] Generator meta_generator();
[[nodiscard]] std::vector<Generator> kv_generators();
[[nodiscard]] Generator recurrent_generator();
/// @}

}  // namespace kvo::cells
