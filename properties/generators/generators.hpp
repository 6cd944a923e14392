// properties/generators/generators.hpp: the generator of each cache kind, one file each.
#pragma once

#include "properties/generator.hpp"

namespace kvo {

[[nodiscard]] Generator layered_generator();

}  // namespace kvo
