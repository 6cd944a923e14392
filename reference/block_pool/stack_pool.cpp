#include "reference/block_pool/stack_pool.hpp"

#include <algorithm>
#include <numeric>

namespace kvo::block_pool {

StackPool::Quirks StackPool::Quirks::of(Profile profile) {
  const bool original = profile == Profile::kOriginal;
  return {.alloc_keeps_used = original, .free_takes_any = original};
}

Result<std::unique_ptr<BlockPool>> StackPool::make(const Geometry& geometry, Profile profile) {
  const auto sizes = sizes_of(geometry, profile);
  if (!sizes) return sizes.error();
  return std::make_unique<StackPool>(geometry, *sizes, profile);
}

StackPool::StackPool(const Geometry& geometry, const Sizes& sizes, Profile profile)
    : geometry_(geometry),
      sizes_(sizes),
      quirks_(Quirks::of(profile)),
      cells_(static_cast<std::size_t>(sizes.blocks * 2 * sizes.side)),
      used_(static_cast<std::size_t>(sizes.blocks)),
      owners_(used_.size()),
      free_(used_.size()) {
  std::iota(free_.rbegin(), free_.rend(), 0);  // ZF-22
}

std::int64_t StackPool::available() const {
  const std::scoped_lock locked(lock_);
  return static_cast<std::int64_t>(free_.size());
}

Status StackPool::alloc(Owner owner, std::span<std::int64_t> blocks) {
  const std::scoped_lock locked(lock_);
  if (blocks.size() > free_.size()) return fail(Code::kExhausted);
  for (std::int64_t& block : blocks) {
    block = free_.back();
    free_.pop_back();
    const auto b = static_cast<std::size_t>(block);
    owners_[b] = owner;
    if (!quirks_.alloc_keeps_used) used_[b] = 0;
  }
  return {};
}

void StackPool::free(Owner owner, std::span<const std::int64_t> blocks) {
  const std::scoped_lock locked(lock_);
  free_.reserve(free_.size() + blocks.size());
  for (const std::int64_t block : blocks) {
    const auto b = static_cast<std::size_t>(block);
    if (!quirks_.free_takes_any && owners_[b] != owner) continue;
    used_[b] = 0;
    owners_[b] = std::nullopt;
    free_.push_back(block);
  }
}

std::int64_t StackPool::used(std::int64_t block) const {
  return used_[static_cast<std::size_t>(block)];
}

void StackPool::set_used(std::int64_t block, std::int64_t used) {
  used_[static_cast<std::size_t>(block)] = used;
}

Sides StackPool::sides(std::int64_t block) {
  const auto side = static_cast<std::size_t>(sizes_.side);
  const std::span<float> both =
      std::span(cells_).subspan(static_cast<std::size_t>(block) * 2 * side, 2 * side);
  return {both.first(side), both.last(side)};
}

std::optional<std::string> StackPool::broken_invariant() const {
  if (quirks_.free_takes_any) return std::nullopt;
  const std::scoped_lock locked(lock_);
  const auto owned = std::ranges::count_if(owners_, [](const auto& o) { return o.has_value(); });
  if (free_.size() + static_cast<std::size_t>(owned) != owners_.size())
    return "free and owned blocks do not add up";
  for (const std::int64_t block : free_)
    if (owners_[static_cast<std::size_t>(block)]) return "a free block has an owner";
  return std::nullopt;
}

}  // namespace kvo::block_pool
