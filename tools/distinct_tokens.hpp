// tools/distinct_tokens.hpp: texts of requests that have nothing in common, for benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

/// So many tokens, at least one, the first of which is `number`: no other number has them.
inline Tokens tokens_of(std::int64_t number, std::int64_t count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::uint32_t state = 0x9E3779B9U * static_cast<std::uint32_t>(number + 1);
  for (Token& token : tokens) {
    state = state * 1664525U + 1013904223U;
    token = static_cast<Token>(state >> 1U);
  }
  tokens.front() = static_cast<Token>(number);
  return tokens;
}

}  // namespace kvo::prefix
