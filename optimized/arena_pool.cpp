#include "optimized/arena_pool.hpp"

#include <algorithm>

namespace kvo::optimized {

using block_pool::Geometry;
using block_pool::Owner;
using block_pool::Sides;
using block_pool::Sizes;

Result<std::unique_ptr<block_pool::BlockPool>> ArenaPool::make(const Geometry& geometry,
                                                               Profile profile) {
  const auto sizes = block_pool::sizes_of(geometry, profile);
  if (!sizes) return sizes.error();
  return std::make_unique<ArenaPool>(geometry, *sizes, profile);
}

ArenaPool::ArenaPool(const Geometry& geometry, const Sizes& sizes, Profile profile)
    : geometry_(geometry),
      blocks_(sizes.blocks),
      side_(static_cast<std::size_t>(sizes.side)),
      documented_(profile == Profile::kDocumented),
      cells_(std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(sizes.blocks) * 2 *
                                                     side_)),
      states_(static_cast<std::size_t>(sizes.blocks)) {}

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
    state.owned = true;
    if (documented_) state.used = 0;  // ZF-23
  }
  return {};
}

void ArenaPool::free(Owner owner, std::span<const std::int64_t> blocks) {
  const std::scoped_lock locked(lock_);
  if (recycled_.capacity() - recycled_.size() < blocks.size())
    recycled_.reserve(std::max(2 * recycled_.capacity(), recycled_.size() + blocks.size()));
  for (const std::int64_t block : blocks) {
    State& state = states_[static_cast<std::size_t>(block)];
    if (documented_ && !(state.owned && state.owner == owner)) continue;  // ZF-24
    state.used = 0;
    state.owned = false;
    recycled_.push_back(block);
  }
}

Sides ArenaPool::sides(std::int64_t block) {
  const auto b = static_cast<std::size_t>(block);
  const std::span<float> both(cells_.get() + b * 2 * side_, 2 * side_);
  if (!states_[b].cleared) {
    std::ranges::fill(both, 0.0F);
    states_[b].cleared = true;
  }
  return {both.first(side_), both.last(side_)};
}

std::optional<std::string> ArenaPool::broken_invariant() const {
  if (!documented_) return std::nullopt;
  const std::scoped_lock locked(lock_);
  const auto owned = std::ranges::count_if(states_, &State::owned);
  if (free_count() + static_cast<std::size_t>(owned) != states_.size())
    return "free and owned blocks do not add up";
  return std::nullopt;
}

}  // namespace kvo::optimized
