#include "optimized/block_pool/pool_control.hpp"

#include <algorithm>
#include <mutex>

namespace kvo::optimized {

using block_pool::Geometry;
using block_pool::Owner;
using block_pool::Quirk;

PoolControl::PoolControl(const Geometry& geometry, std::int64_t blocks, QuirkSet<Quirk> quirks)
    : geometry_(geometry), quirks_(quirks), states_(static_cast<std::size_t>(blocks)) {
  recycled_.reserve(states_.size());  // so that correct use never grows it under the lock
}

std::int64_t PoolControl::available() const {
  const std::scoped_lock locked(lock_);
  return static_cast<std::int64_t>(free_count());
}

Status PoolControl::alloc(Owner owner, std::span<std::int64_t> blocks) {
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

bool PoolControl::may_free(Owner owner, Owner holder) const {
  if (holder == kFree) return quirks_.has(Quirk::kFreeTakesFreeBlocks);
  return holder == owner || quirks_.has(Quirk::kFreeTakesForeignBlocks);
}

void PoolControl::free(Owner owner, std::span<const std::int64_t> blocks) {
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

std::optional<std::string> PoolControl::broken_invariant() const {
  if (quirks_.has(Quirk::kFreeTakesFreeBlocks)) return std::nullopt;
  const std::scoped_lock locked(lock_);
  const auto owned =
      std::ranges::count_if(states_, [](const State& s) { return s.owner != kFree; });
  if (free_count() + static_cast<std::size_t>(owned) != states_.size())
    return "free and owned blocks do not add up";
  return std::nullopt;
}

}  // namespace kvo::optimized
