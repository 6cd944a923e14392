#include "reference/block_pool/cache.hpp"

#include <algorithm>

#include "reference/contract/values/check.hpp"

namespace kvo::block_pool {
namespace {

std::span<float> cells_of(BlockPool& pool, std::int64_t block, Side side, std::int64_t index,
                          std::size_t count) {
  const Sides sides = pool.sides(block);
  const std::span<float> cells = side == Side::kK ? sides.k : sides.v;
  KVO_CHECK(index >= 0 && static_cast<std::size_t>(index) <= cells.size());
  KVO_CHECK(count <= cells.size() - static_cast<std::size_t>(index));
  return cells.subspan(static_cast<std::size_t>(index), count);
}

}  // namespace

Result<Sizes> sizes_of(const Geometry& geometry, QuirkSet<Quirk> quirks) {
  const auto [layers, block_size, head_dim, megabytes] = geometry;
  if (std::min({layers, block_size, head_dim, megabytes}) <= 0)
    return fail(Code::kOutOfRange, "non_positive");
  std::int64_t side = 0;
  std::int64_t block_bytes = 0;
  std::int64_t budget = 0;
  constexpr auto kBytesOfAPair = static_cast<std::int64_t>(2 * sizeof(float));
  constexpr std::int64_t kMegabyte = 1 << 20;
  if (__builtin_mul_overflow(layers, block_size, &side) ||
      __builtin_mul_overflow(side, head_dim, &side) ||
      __builtin_mul_overflow(side, kBytesOfAPair, &block_bytes) ||
      __builtin_mul_overflow(megabytes, kMegabyte, &budget))
    return fail(
        quirks.has(Quirk::kPoolSizeOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
        "a size product overflows");
  if (budget < block_bytes) return fail_other("budget_too_small");
  return Sizes{.side = side, .blocks = budget / block_bytes};
}

void BlockPool::write(std::int64_t block, Side side, std::int64_t index,
                      std::span<const float> cells) {
  std::ranges::copy(cells, cells_of(*this, block, side, index, cells.size()).begin());
}

void BlockPool::read(std::int64_t block, Side side, std::int64_t index, std::span<float> out) {
  std::ranges::copy(cells_of(*this, block, side, index, out.size()), out.begin());
}

}  // namespace kvo::block_pool
