// properties/block_pool/contract.hpp: what the machine is told of contract `block_pool`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"

namespace kvo::block_pool {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();
/// Caches with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

}  // namespace kvo::block_pool
