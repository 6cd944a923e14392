// properties/views/contract.hpp: what the machine is told of contract `views`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/replay/lowering.hpp"
#include "properties/runner/law.hpp"

namespace kvo::views {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();
/// How requests become operations.
[[nodiscard]] std::vector<replay::Lowering> lowerings();
/// Its metamorphic laws.
[[nodiscard]] std::vector<const Law*> laws();
/// Caches with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

}  // namespace kvo::views
