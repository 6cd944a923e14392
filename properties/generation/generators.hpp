// properties/generation/generators.hpp: the parts of generators().
#pragma once

#include "properties/campaign/generator.hpp"

namespace kvo::generation {

[[nodiscard]] kvo::Generator speculative_generator();
[[nodiscard]] kvo::Generator adaptive_generator();

}  // namespace kvo::generation
