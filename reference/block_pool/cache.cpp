#include "reference/block_pool/cache.hpp"

#include <algorithm>

#include "reference/contract/values/check.hpp"

namespace kvo::block_pool {

Result<Sizes> sizes_of(const Geometry& geometry, QuirkSet<Quirk> quirks) {
  if (Status good = check(geometry.storage); !good) return good.error();
  const auto [layers, block_size, head_dim, megabytes, storage] = geometry;
  if (std::min({layers, block_size, head_dim, megabytes}) <= 0)
    return fail(Code::kOutOfRange, "non_positive");
  std::int64_t positions = 0;  // of all layers
  std::int64_t side = 0;
  std::int64_t f32_bytes = 0;
  std::int64_t side_bytes = 0;
  std::int64_t block_bytes = 0;
  std::int64_t budget = 0;
  constexpr auto kBytesOfAPair = static_cast<std::int64_t>(2 * sizeof(float));
  constexpr std::int64_t kMegabyte = 1 << 20;
  if (__builtin_mul_overflow(layers, block_size, &positions) ||
      __builtin_mul_overflow(positions, head_dim, &side) ||
      __builtin_mul_overflow(side, kBytesOfAPair, &f32_bytes) ||
      __builtin_mul_overflow(positions, stored_bytes(storage, static_cast<std::size_t>(head_dim)),
                             &side_bytes) ||
      __builtin_mul_overflow(side_bytes, 2, &block_bytes) ||
      __builtin_mul_overflow(megabytes, kMegabyte, &budget))
    return fail(
        quirks.has(Quirk::kPoolSizeOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
        "a size product overflows");
  if (budget < block_bytes) return fail_other("budget_too_small");
  return Sizes{.side = side, .side_bytes = side_bytes, .blocks = budget / block_bytes};
}

std::span<std::byte> BlockPool::stored(std::int64_t block, Side side, std::int64_t index,
                                       std::int64_t count) {
  const Geometry sizes = geometry();
  const Sides both = sides(block);
  const std::span<std::byte> bytes = side == Side::kK ? both.k : both.v;
  KVO_CHECK(index >= 0 && count >= 0);
  const auto in_bytes = [&](std::int64_t cells) {
    return stored_bytes(sizes.storage, static_cast<std::size_t>(cells));
  };
  const std::size_t begin =
      static_cast<std::size_t>(index / sizes.head_dim) * in_bytes(sizes.head_dim) +
      in_bytes(index % sizes.head_dim);
  KVO_CHECK(begin <= bytes.size() && in_bytes(count) <= bytes.size() - begin);
  return bytes.subspan(begin, in_bytes(count));
}

namespace {

// Calls visit(index, first, count) for pieces of `count` cells that lie together: of codes those of
// a position, of other types all.
template <class Visit>
void for_each_piece(const Geometry& sizes, std::int64_t index, std::size_t count,
                    const Visit& visit) {
  const auto cells = static_cast<std::int64_t>(count);
  for (std::int64_t done = 0, piece = 0; done < cells; done += piece) {
    piece = cells - done;
    if (in_groups(sizes.storage.type))
      piece = std::min(piece, sizes.head_dim - (index + done) % sizes.head_dim);
    visit(index + done, static_cast<std::size_t>(done), static_cast<std::size_t>(piece));
  }
}

}  // namespace

void BlockPool::write(std::int64_t block, Side side, std::int64_t index,
                      std::span<const float> cells) {
  const Geometry sizes = geometry();
  for_each_piece(sizes, index, cells.size(),
                 [&](std::int64_t at, std::size_t first, std::size_t count) {
                   encode(sizes.storage, cells.subspan(first, count),
                          stored(block, side, at, static_cast<std::int64_t>(count)).data());
                 });
}

void BlockPool::read(std::int64_t block, Side side, std::int64_t index, std::span<float> out) {
  const Geometry sizes = geometry();
  for_each_piece(
      sizes, index, out.size(), [&](std::int64_t at, std::size_t first, std::size_t count) {
        decode(sizes.storage, stored(block, side, at, static_cast<std::int64_t>(count)).data(),
               out.subspan(first, count));
      });
}

}  // namespace kvo::block_pool
