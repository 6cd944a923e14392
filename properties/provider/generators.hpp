// properties/provider/generators.hpp: the generator of each cache kind, one file each.
#pragma once

#include "properties/campaign/generator.hpp"

namespace kvo::provider {

[[nodiscard]] Generator contiguous_generator();
[[nodiscard]] Generator paged_generator();
[[nodiscard]] Generator device_generator();
[[nodiscard]] Generator tensor_generator();
[[nodiscard]] Generator tracing_generator();
[[nodiscard]] Generator context_generator();

}  // namespace kvo::provider
