#include "optimized/views/block_store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "optimized/memory/poison.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::optimized {
namespace {

// What one allocation of many blocks is worth.
constexpr std::size_t kSlabBytes = std::size_t{16} << 20U;

}  // namespace

BlockStore::BlockStore(const views::Options& options)
    : limit_(options.blocks),
      side_bytes_(static_cast<std::size_t>(options.block_size) * options.token_bytes()) {}

void BlockStore::prepare(std::int64_t count) {
  KVO_CHECK(count <= available());
  if (std::ssize(free_) >= count) return;
  const std::int64_t missing = count - std::ssize(free_);
  // As many again as there are, so that a pool that is hardly used costs little.
  const std::int64_t most = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kSlabBytes / std::max<std::size_t>(1, 2 * side_bytes_)));
  const std::int64_t room = limit_ - std::ssize(blocks_);
  const std::int64_t made =
      std::min(room, std::max(missing, std::min(std::ssize(blocks_) + 8, most)));
  const std::size_t used = (2 * side_bytes_ + sizeof(float) - 1) / sizeof(float);
  const std::size_t block_cells = used + guard_cells(used);
  Cells slab = make_cells(static_cast<std::size_t>(made) * block_cells);
  const auto before = blocks_.size();
  KVO_CHECK(before + static_cast<std::size_t>(made) <= std::numeric_limits<Number>::max());
  // All of them can be free at once: release never allocates.
  make_room(free_, before + static_cast<std::size_t>(made) - free_.size());
  make_room(blocks_, static_cast<std::size_t>(made));
  slabs_.push_back(std::move(slab));
  auto* data = reinterpret_cast<std::byte*>(slabs_.back().get());  // NOLINT: cells of any type
  const std::size_t block_bytes = block_cells * sizeof(float);
  poison(data, static_cast<std::size_t>(made) * block_bytes);
  for (std::int64_t i = made; i-- > 0;)
    free_.push_back(static_cast<Number>(before + static_cast<std::size_t>(i)));
  for (std::int64_t i = 0; i < made; ++i, data += block_bytes) blocks_.push_back({data, 0});
}

BlockStore::Number BlockStore::take() {
  const Number block = free_.back();
  free_.pop_back();
  ++taken_;
  blocks_[block].holders = 1;
  unpoison(blocks_[block].data, 2 * side_bytes_);
  return block;
}

void BlockStore::release(Number block) {
  if (--blocks_[block].holders > 0) return;
  --taken_;
  free_.push_back(block);
  poison(blocks_[block].data, 2 * side_bytes_);
}

std::optional<std::string> BlockStore::broken_invariant() const {
  const auto held = std::ranges::count_if(blocks_, [](const Block& b) { return b.holders > 0; });
  if (held != taken_ || std::ssize(free_) + taken_ != std::ssize(blocks_))
    return "free and held blocks do not add up";
  return std::nullopt;
}

}  // namespace kvo::optimized
