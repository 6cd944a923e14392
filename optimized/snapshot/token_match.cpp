#include "optimized/snapshot/token_match.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace kvo::optimized {
namespace {

// Tokens that memcmp gets at once: of 4 KiB, down to 64 bytes.
constexpr std::size_t kMost = 1024;
constexpr std::size_t kBlock = 16;

bool same(const std::int32_t* a, const std::int32_t* b, std::size_t tokens) {
  return std::memcmp(a, b, tokens * sizeof(std::int32_t)) == 0;
}

}  // namespace

// Token by token is a branch a token, and what compilers make of a loop over 16 is no faster.
// memcmp has the widest instructions that the machine knows, and is five times as fast, but does
// not tell where rows differ: so what does is looked at in quarters, and a last block by token.
std::int64_t matched_tokens(std::span<const std::int32_t> ours,
                            std::span<const std::int32_t> theirs) {
  const std::size_t count = std::min(ours.size(), theirs.size());
  const std::int32_t* a = ours.data();
  const std::int32_t* b = theirs.data();
  std::size_t at = 0;
  for (std::size_t block = kMost; block >= kBlock; block /= 4)
    while (at + block <= count && same(a + at, b + at, block)) at += block;
  while (at < count && a[at] == b[at]) ++at;
  return static_cast<std::int64_t>(at);
}

}  // namespace kvo::optimized
