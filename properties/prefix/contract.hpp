// properties/prefix/contract.hpp: what the machine is told of contract `prefix`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/replay/lowering.hpp"
#include "properties/runner/law.hpp"

namespace kvo::prefix {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();

/// One of each kind that requests can be replayed on, or several.
[[nodiscard]] std::vector<replay::Lowering> lowerings();

/// Caches with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

/// Laws over two scripts.
[[nodiscard]] std::vector<const Law*> laws();

/// The parts of generators().
[[nodiscard]] Generator blocks_generator();
[[nodiscard]] Generator radix_generator();

}  // namespace kvo::prefix
