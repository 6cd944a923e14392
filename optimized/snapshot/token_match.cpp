#include "optimized/snapshot/token_match.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace kvo::optimized {
namespace {

constexpr std::size_t kBlock = 16;    // tokens of 64 bytes
constexpr std::size_t kStride = 512;  // tokens that memcmp gets at once

bool same(const std::int32_t* a, const std::int32_t* b, std::size_t tokens) {
  return std::memcmp(a, b, tokens * sizeof(std::int32_t)) == 0;
}

// Compilers make vector instructions of it.
bool same_block(const std::int32_t* a, const std::int32_t* b) {
  std::int32_t differs = 0;
  for (std::size_t i = 0; i < kBlock; ++i) differs |= a[i] ^ b[i];
  return differs == 0;
}

}  // namespace

// Token by token a comparison is a branch a token. memcmp has the widest instructions that the
// machine knows, whatever this was compiled for, but does not tell where: so it goes over what
// agrees, and only the stride that does not is looked at in blocks, and the last of these by token.
std::int64_t matched_tokens(std::span<const std::int32_t> ours,
                            std::span<const std::int32_t> theirs) {
  const std::size_t count = std::min(ours.size(), theirs.size());
  const std::int32_t* a = ours.data();
  const std::int32_t* b = theirs.data();
  std::size_t at = 0;
  while (at + kStride <= count && same(a + at, b + at, kStride)) at += kStride;
  while (at + kBlock <= count && same_block(a + at, b + at)) at += kBlock;
  while (at < count && a[at] == b[at]) ++at;
  return static_cast<std::int64_t>(at);
}

}  // namespace kvo::optimized
