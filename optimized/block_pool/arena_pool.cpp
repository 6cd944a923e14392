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
    : geometry_(geometry),
      blocks_(sizes.blocks),
      side_bytes_(static_cast<std::size_t>(sizes.side_bytes)),
      side_(cells_of_bytes(side_bytes_)),
      stride_(side_ + guard_cells(side_)),
      quirks_(quirks),
      cells_(make_cells(static_cast<std::size_t>(sizes.blocks) * 2 * stride_)),
      states_(static_cast<std::size_t>(sizes.blocks)) {
  recycled_.reserve(states_.size());  // so that correct use never grows it under the lock
  std::fill_n(cells_.get(), states_.size() * 2 * stride_, 0.0F);
  for (std::size_t side = 0; side < 2 * states_.size(); ++side)
    put_guard(cells_.get() + side * stride_, side_);
}

std::int64_t ArenaPool::available() const {
  const std::scoped_lock locked(lock_);
  return static_cast<std::int64_t>(free_count());
}

Status ArenaPool::alloc(Owner owner, std::span<std::int64_t> blocks) {
  const std::scoped_lock locked(lock_);
  if (blocks.size() > free_count()) return fail(Code::kExhausted);
  for (std::int64_t& block : blocks) {
    if (recycled_.empty()) {
      block = untouched_++;
    } else {
      block = recycled_.back();
      recycled_.pop_back();
    }
    State& state = states_[static_cast<std::size_t>(block)];
    state.owner = owner;
    if (!quirks_.has(Quirk::kAllocKeepsUsed)) state.used = 0;  // ZF-23
  }
  return {};
}

bool ArenaPool::may_free(Owner owner, Owner holder) const {
  if (holder == kFree) return quirks_.has(Quirk::kFreeTakesFreeBlocks);
  return holder == owner || quirks_.has(Quirk::kFreeTakesForeignBlocks);
}

void ArenaPool::free(Owner owner, std::span<const std::int64_t> blocks) {
  const std::scoped_lock locked(lock_);
  if (recycled_.capacity() - recycled_.size() < blocks.size())
    recycled_.reserve(std::max(2 * recycled_.capacity(), recycled_.size() + blocks.size()));
  for (const std::int64_t block : blocks) {
    State& state = states_[static_cast<std::size_t>(block)];
    if (!may_free(owner, state.owner)) continue;
    state = {.used = 0, .owner = kFree};
    recycled_.push_back(block);
  }
}

Sides ArenaPool::sides(std::int64_t block) {
  float* const k = cells_.get() + static_cast<std::size_t>(block) * 2 * stride_;
  return {{reinterpret_cast<std::byte*>(k), side_bytes_},
          {reinterpret_cast<std::byte*>(k + stride_), side_bytes_}};
}

std::optional<std::string> ArenaPool::broken_invariant() const {
  for (std::size_t side = 0; stride_ > side_ && side < 2 * states_.size(); ++side)
    if (!guard_holds(cells_.get() + side * stride_, side_)) return "cells lie behind a side";
  if (quirks_.has(Quirk::kFreeTakesFreeBlocks)) return std::nullopt;
  const std::scoped_lock locked(lock_);
  const auto owned =
      std::ranges::count_if(states_, [](const State& s) { return s.owner != kFree; });
  if (free_count() + static_cast<std::size_t>(owned) != states_.size())
    return "free and owned blocks do not add up";
  return std::nullopt;
}

}  // namespace kvo::optimized
