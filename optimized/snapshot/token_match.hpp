// optimized/snapshot/token_match.hpp: how far two rows of tokens agree.
#pragma once

#include <cstdint>
#include <span>

namespace kvo::optimized {

/// The number of tokens before the first one in which the two differ; at most the shorter length.
[[nodiscard]] std::int64_t matched_tokens(std::span<const std::int32_t> ours,
                                          std::span<const std::int32_t> theirs);

}  // namespace kvo::optimized
