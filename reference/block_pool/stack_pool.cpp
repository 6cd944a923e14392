#include "reference/block_pool/stack_pool.hpp"

#include <algorithm>
#include <numeric>

namespace kvo::block_pool {

Result<std::unique_ptr<BlockPool>> StackPool::make(const Geometry& geometry,
                                                   QuirkSet<Quirk> quirks) {
  const auto sizes = sizes_of(geometry, quirks);
  if (!sizes) return sizes.error();
  return std::make_unique<StackPool>(geometry, *sizes, quirks);
}

StackPool::StackPool(const Geometry& geometry, const Sizes& sizes, QuirkSet<Quirk> quirks)
    : geometry_(geometry),
      sizes_(sizes),
      quirks_(quirks),
      cells_(static_cast<std::size_t>(sizes.blocks * 2 * sizes.side_bytes)),
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
    if (!quirks_.has(Quirk::kAllocKeepsUsed)) used_[b] = 0;  // ZF-23
  }
  return {};
}

bool StackPool::may_free(Owner owner, std::size_t block) const {
  if (!owners_[block]) return quirks_.has(Quirk::kFreeTakesFreeBlocks);
  return owners_[block] == owner || quirks_.has(Quirk::kFreeTakesForeignBlocks);
}

void StackPool::free(Owner owner, std::span<const std::int64_t> blocks) {
  const std::scoped_lock locked(lock_);
  free_.reserve(free_.size() + blocks.size());
  for (const std::int64_t block : blocks) {
    const auto b = static_cast<std::size_t>(block);
    if (!may_free(owner, b)) continue;
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
  const auto side = static_cast<std::size_t>(sizes_.side_bytes);
  const std::span<std::byte> both =
      std::span(cells_).subspan(static_cast<std::size_t>(block) * 2 * side, 2 * side);
  return {both.first(side), both.last(side)};
}

std::optional<std::string> StackPool::broken_invariant() const {
  if (quirks_.has(Quirk::kFreeTakesFreeBlocks)) return std::nullopt;
  const std::scoped_lock locked(lock_);
  const auto owned = std::ranges::count_if(owners_, [](const auto& o) { return o.has_value(); });
  if (free_.size() + static_cast<std::size_t>(owned) != owners_.size())
    return "free and owned blocks do not add up";
  for (const std::int64_t block : free_)
    if (owners_[static_cast<std::size_t>(block)]) return "a free block has an owner";
  return std::nullopt;
}

}  // namespace kvo::block_pool
