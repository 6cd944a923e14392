#include "cuda/block_pool/device_pool.hpp"

#include <algorithm>
#include <limits>

#include "cuda/memory/staging.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo::cuda {

using block_pool::Geometry;
using block_pool::Quirk;
using block_pool::Side;
using block_pool::Sizes;

Result<std::unique_ptr<block_pool::BlockPool>> DevicePool::make(
    const std::shared_ptr<Device>& device, const Geometry& geometry, QuirkSet<Quirk> quirks) {
  if (Status good = store_f32_only(geometry.storage); !good) return good.error();
  const auto sizes = block_pool::sizes_of(geometry, quirks);
  if (!sizes) return sizes.error();
  if (sizes->blocks > std::numeric_limits<std::int32_t>::max())
    return fail(Code::kNotSupported, "max_memory_mb: more than 2^31 blocks");
  auto pool = std::make_unique<DevicePool>(device, geometry, *sizes, quirks);
  for (std::shared_ptr<DeviceStorage>& cells : pool->cells_) {
    auto made = make_cells(device, sizes->blocks * sizes->side);
    if (!made) return made.error();
    cells = std::move(*made);
  }
  return pool;
}

DevicePool::DevicePool(std::shared_ptr<Device> device, const Geometry& geometry, const Sizes& sizes,
                       QuirkSet<Quirk> quirks)
    : PoolControl(geometry, sizes.blocks, quirks), device_(std::move(device)), sizes_(sizes) {}

DevicePtr DevicePool::rows(std::size_t side, std::int64_t layer) const {
  const std::int64_t block = geometry_.block_size * geometry_.head_dim;
  return cells_[side]->ptr() + layer * sizes_.blocks * block * kCellBytes;
}

template <class Copy>
void DevicePool::for_each_piece(std::int64_t block, Side side, std::int64_t index,
                                std::size_t count, const Copy& copy) const {
  const auto cells = static_cast<std::int64_t>(count);
  KVO_CHECK(index >= 0 && index <= sizes_.side && cells <= sizes_.side - index);
  const std::int64_t of_layer = geometry_.block_size * geometry_.head_dim;
  for (std::int64_t done = 0; done < cells;) {
    const std::int64_t layer = (index + done) / of_layer;
    const std::int64_t first = (index + done) % of_layer;
    const std::int64_t run = std::min(of_layer - first, cells - done);
    const DevicePtr at = rows(side == Side::kK ? 0 : 1, layer);
    demand(copy(at + (block * of_layer + first) * kCellBytes, static_cast<std::size_t>(done),
                static_cast<std::size_t>(run)));
    done += run;
  }
}

void DevicePool::write(std::int64_t block, Side side, std::int64_t index,
                       std::span<const float> cells) {
  for_each_piece(block, side, index, cells.size(),
                 [&](DevicePtr at, std::size_t first, std::size_t count) {
                   return device_->to_device(at, std::as_bytes(cells.subspan(first, count)));
                 });
}

void DevicePool::read(std::int64_t block, Side side, std::int64_t index, std::span<float> out) {
  for_each_piece(block, side, index, out.size(),
                 [&](DevicePtr at, std::size_t first, std::size_t count) {
                   return device_->to_host(std::as_writable_bytes(out.subspan(first, count)), at);
                 });
}

}  // namespace kvo::cuda
