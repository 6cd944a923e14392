// properties/cells/contract.hpp: what the machine is told of contract `cells`.
#pragma once

#include <vector>

#include "properties/campaign/generator.hpp"

namespace kvo::cells {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();

/// The parts of generators(). @{
[[nodiscard]] Generator meta_generator();
[[nodiscard]] std::vector<Generator> kv_generators();
[[nodiscard]] Generator recurrent_generator();
/// @}

}  // namespace kvo::cells
