// properties/generation/contract.hpp: what the machine is told of contract `generation`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/runner/law.hpp"

namespace kvo::generation {

/// One of each kind.
[[nodiscard]] std::vector<kvo::Generator> generators();
/// Its metamorphic laws.
[[nodiscard]] std::vector<const Law*> laws();
/// Generations over caches with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

}  // namespace kvo::generation
