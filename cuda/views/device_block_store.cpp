#include "cuda/views/device_block_store.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "reference/contract/values/check.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo::cuda {

DeviceBlockStore::DeviceBlockStore(std::shared_ptr<kvo::Device> device,
                                   const views::Options& options)
    : device_(std::move(device)),
      limit_(options.blocks),
      side_bytes_(options.block_size * static_cast<std::int64_t>(options.token_bytes())) {
  std::int64_t bytes = 0;
  if (limit_ > std::numeric_limits<Number>::max() ||
      __builtin_mul_overflow(limit_, side_bytes_, &bytes))
    throw std::bad_alloc();
  for (std::shared_ptr<DeviceStorage>& side : cells_) {
    auto made = make_cells(device_, bytes / kCellBytes + 1);
    if (!made) demand(made.error());
    side = std::move(*made);
  }
}

void DeviceBlockStore::prepare(std::int64_t count) {
  KVO_CHECK(count <= available());
  while (std::ssize(free_) < count) {
    Block made{.mirror = std::vector<std::byte>(static_cast<std::size_t>(2 * side_bytes_))};
    // Blocks never outnumber this, so that to give one back does not allocate.
    if (free_.capacity() <= blocks_.size()) free_.reserve(2 * blocks_.size() + 1);
    blocks_.push_back(std::move(made));
    free_.push_back(static_cast<Number>(blocks_.size() - 1));
  }
}

DeviceBlockStore::Number DeviceBlockStore::take() {
  KVO_CHECK(!free_.empty());
  const Number block = free_.back();
  free_.pop_back();
  at(block).holders = 1;
  ++taken_;
  return block;
}

void DeviceBlockStore::release(Number block) {
  if (--at(block).holders > 0) return;
  free_.push_back(block);
  --taken_;
}

std::optional<std::string> DeviceBlockStore::broken_invariant() const {
  const auto held =
      std::ranges::count_if(blocks_, [](const Block& block) { return block.holders > 0; });
  if (held != taken_) return "held blocks are not as many as were taken";
  return std::nullopt;
}

}  // namespace kvo::cuda
