// properties/prefix/contract.hpp: what the machine is told of contract `prefix`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/runner/law.hpp"

namespace kvo::prefix {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();

/// The parts of generators().
[[nodiscard]] Generator blocks_generator();
[[nodiscard]] Generator radix_generator();

}  // namespace kvo::prefix
