#include "optimized/block_pool/arena_pool.hpp"

#include <algorithm>

namespace kvo::optimized {

using block_pool::Geometry;
using block_pool::Owner;
using block_pool::Quirk;
using block_pool::Sides;
using block_pool::Sizes;

Result<std::unique_ptr<block_pool::BlockPool>> ArenaPool::make(const Geometry& geometry,
                                                               QuirkSet<Quirk> quirks) {
  const auto sizes = block_pool::sizes_of(geometry, quirks);
  if (!sizes) return sizes.error();
  return std::make_unique<ArenaPool>(geometry, *sizes, quirks);
}

ArenaPool::ArenaPool(const Geometry& geometry, const Sizes& sizes, QuirkSet<Quirk> quirks)
    : PoolControl(geometry, sizes.blocks, quirks),
      side_bytes_(static_cast<std::size_t>(sizes.side_bytes)),
      side_(cells_of_bytes(side_bytes_)),
      stride_(side_ + guard_cells(side_)),
      cells_(make_cells(static_cast<std::size_t>(sizes.blocks) * 2 * stride_)) {
  const std::size_t sides = static_cast<std::size_t>(sizes.blocks) * 2;
  std::fill_n(cells_.get(), sides * stride_, 0.0F);
  for (std::size_t side = 0; side < sides; ++side) put_guard(cells_.get() + side * stride_, side_);
}

Sides ArenaPool::sides(std::int64_t block) {
  float* const k = cells_.get() + static_cast<std::size_t>(block) * 2 * stride_;
  return {{reinterpret_cast<std::byte*>(k), side_bytes_},
          {reinterpret_cast<std::byte*>(k + stride_), side_bytes_}};
}

std::optional<std::string> ArenaPool::broken_invariant() const {
  for (std::size_t side = 0; stride_ > side_ && side < 2 * static_cast<std::size_t>(cap()); ++side)
    if (!guard_holds(cells_.get() + side * stride_, side_)) return "cells lie behind a side";
  return PoolControl::broken_invariant();
}

}  // namespace kvo::optimized
