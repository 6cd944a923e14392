// properties/generators/generators.hpp: the generator of each cache kind, one file each.
#pragma once

#include "properties/generator.hpp"

namespace kvo {

[[nodiscard]] Generator layered_generator();
[[nodiscard]] Generator block_pool_generator();
[[nodiscard]] Generator contiguous_generator();
[[nodiscard]] Generator paged_generator();
[[nodiscard]] Generator device_generator();
[[nodiscard]] Generator tensor_generator();
[[nodiscard]] Generator tracing_generator();
[[nodiscard]] Generator context_generator();
[[nodiscard]] Generator positional_causal_generator();
[[nodiscard]] Generator positional_swa_generator();
[[nodiscard]] Generator positional_swa_mem_generator();
[[nodiscard]] Generator positional_chunked_generator();
[[nodiscard]] Generator positional_encoder_generator();
[[nodiscard]] Generator positional_wrapper_generator();

}  // namespace kvo
