#include "cuda/views/device_rows.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/rows.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo::cuda {

using optimized::AppendedRows;
using views::Options;
using views::PackedView;
using views::View;

namespace {

constexpr std::int64_t kNumberBytes = sizeof(DeviceBlockStore::Number);
constexpr std::int64_t kPair = 2;

}  // namespace

DeviceBlockStore::DeviceBlockStore(std::shared_ptr<kvo::Device> device, const Options& options)
    : BlockStore(options), device_(std::move(device)) {
  std::int64_t bytes = 0;
  if (options.blocks > std::numeric_limits<std::int32_t>::max() ||
      __builtin_mul_overflow(options.blocks, static_cast<std::int64_t>(side_bytes()), &bytes))
    throw std::bad_alloc();
  for (std::shared_ptr<DeviceStorage>& side : cells_) {
    auto made = make_cells(device_, bytes / kCellBytes + 1);
    if (!made) demand(made.error());
    side = std::move(*made);
  }
}

DeviceViewRows::DeviceViewRows(const Options& options, std::shared_ptr<Store> store)
    : options_(options),
      store_(std::move(store)),
      device_(store_->device()),
      staging_(device_),
      row_bytes_(static_cast<std::int64_t>(options_.token_bytes())) {}

Status DeviceViewRows::make_numbers(std::size_t count) {
  if (count <= most_numbers_) return {};
  const std::size_t room = std::max(count, 2 * most_numbers_);
  auto made = make_cells(device_, static_cast<std::int64_t>(room));
  if (!made) return made.error();
  numbers_ = std::move(*made);
  most_numbers_ = room;
  return {};
}

Status DeviceViewRows::put(const AppendedRows& of) {
  // The block to copy, the one that becomes its copy, and then the blocks of the rows.
  std::vector<Number> numbers{of.copied.value_or(0), of.table[of.first]};
  numbers.insert(numbers.end(), of.table.begin() + static_cast<std::ptrdiff_t>(of.first),
                 of.table.end());
  const std::int64_t n = of.k.shape[0];
  const std::int64_t bytes = n * options_.kv_dim() * kCellBytes;
  if (Status there = staging_.reserve(bytes + (narrow() ? n * row_bytes_ : 0)); !there)
    return there;
  if (Status there = make_numbers(numbers.size()); !there) return there;
  return staging_.carry_out([&]() -> Status {
    Status queued = staging_.upload(0, numbers_->ptr(), std::as_bytes(std::span(numbers)));
    for (const std::size_t side : {0U, 1U}) {
      if (queued && of.copied)
        queued = device_->run(copy_blocks(store_->cells(side), numbers_->ptr(), 1,
                                          static_cast<std::int64_t>(store_->side_bytes())));
      if (queued) queued = put_side(side, of);
    }
    // A copy is shown from its first token on.
    std::int64_t slot = of.copied ? 0 : of.slot;
    std::int64_t left = of.slot + n;  // tokens from the first block on
    for (std::size_t i = kPair; queued && i < numbers.size(); ++i, slot = 0) {
      queued = show(numbers[i], slot, std::min(options_.block_size, left));
      left -= options_.block_size;
    }
    return queued;
  });
}

Status DeviceViewRows::put_side(std::size_t side, const AppendedRows& of) {
  const Tensor& rows = side == 0 ? of.k : of.v;
  const std::int64_t cells = rows.shape[0] * options_.kv_dim();
  DevicePtr from = staging_.room(side);
  if (Status queued = staging_.upload(side, from, rows.bytes); !queued) return queued;
  if (narrow()) {
    const DevicePtr stored = from + cells * kCellBytes;
    Status queued =
        device_->run(narrow_cells(stored, dtype_of(options_.storage.type), from, cells));
    if (!queued) return queued;
    from = stored;
  }
  return device_->run(PagedRows{.pool = store_->cells(side),
                                .rows = from,
                                .table = numbers_->ptr() + kPair * kNumberBytes,
                                .block = options_.block_size,
                                .row_bytes = row_bytes_,
                                .first = of.slot,
                                .count = rows.shape[0]}
                          .append());
}

Status DeviceViewRows::show(Number block, std::int64_t begin, std::int64_t end) {
  const std::int64_t first = begin * row_bytes_;
  for (const std::size_t side : {0U, 1U}) {
    const std::span<std::byte> mirror((side == 0 ? store_->k(block) : store_->v(block)) + first,
                                      static_cast<std::size_t>((end - begin) * row_bytes_));
    Status queued = device_->to_host_async(mirror, store_->cells(side, block) + first, Stream());
    if (!queued) return queued;
  }
  return {};
}

Status DeviceViewRows::copy(std::span<const Number> pairs, std::int64_t tokens) {
  if (pairs.empty()) return {};
  if (Status there = staging_.reserve(0); !there) return there;
  if (Status there = make_numbers(pairs.size()); !there) return there;
  return staging_.carry_out([&]() -> Status {
    Status queued = staging_.upload(0, numbers_->ptr(), std::as_bytes(pairs));
    for (const std::size_t side : {0U, 1U})
      if (queued)
        queued = device_->run(copy_blocks(store_->cells(side), numbers_->ptr(),
                                          std::ssize(pairs) / kPair,
                                          static_cast<std::int64_t>(store_->side_bytes())));
    for (std::size_t i = 1; queued && i < pairs.size(); i += kPair)
      queued = show(pairs[i], 0, tokens);
    return queued;
  });
}

std::span<const PackedView> DeviceViewRows::pack(Packed& /*packed*/, std::span<const Number> table,
                                                 std::span<const View> shown) {
  packed_.clear();
  if (shown.empty()) return {};
  const std::int64_t block = options_.block_size * options_.kv_dim();
  const auto cells = static_cast<std::size_t>(std::ssize(shown) * block);
  for (std::vector<float>& side : packed_cells_) side.resize(cells);
  packed_.reserve(shown.size());
  // Packed cells, and after them a block's rows as f32 where they are stored in less.
  const std::int64_t wide = static_cast<std::int64_t>(cells) + (narrow() ? block : 0);
  demand(staging_.reserve(wide * kCellBytes));
  demand(staging_.carry_out([&] {
    Status keys = pack_side(0, table, shown);
    return keys ? pack_side(1, table, shown) : keys;
  }));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto side = [&](std::size_t which) {
      const auto size = static_cast<std::size_t>(block);
      return std::span<const float>(packed_cells_[which]).subspan(i * size, size);
    };
    packed_.push_back({shown[i].start, shown[i].length, options_.block_size, options_.head_dim,
                       options_.num_kv_heads, side(0), side(1)});
  }
  return packed_;
}

Status DeviceViewRows::pack_side(std::size_t side, std::span<const Number> table,
                                 std::span<const View> shown) {
  const bool by_length = options_.packed_stride == views::PackedStride::kLength;
  const std::int64_t block = options_.block_size * options_.kv_dim();
  const DevicePtr room = staging_.room(side);
  const DevicePtr widened = room + std::ssize(shown) * block * kCellBytes;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    DevicePtr from = store_->cells(side, table[i]);
    if (narrow()) {
      const DType type = dtype_of(options_.storage.type);
      Status queued =
          device_->run(widen_cells(widened, from, type, shown[i].length * options_.kv_dim()));
      if (!queued) return queued;
      from = widened;
    }
    Status queued = device_->run(
        pack_head_major(room + static_cast<std::int64_t>(i) * block * kCellBytes, from,
                        shown[i].length, options_.num_kv_heads, options_.head_dim * kCellBytes, 0,
                        by_length ? shown[i].length : options_.block_size));
    if (!queued) return queued;
  }
  return device_->to_host_async(std::as_writable_bytes(std::span(packed_cells_[side])), room,
                                Stream());
}

Result<std::unique_ptr<views::Pool>> make_paged_views(const std::shared_ptr<kvo::Device>& device,
                                                      const Options& options) {
  if (in_groups(options.storage.type)) return not_on_device(options.storage.type);
  return std::make_unique<optimized::PagedViewsPool<DeviceViewRows>>(
      options, std::make_shared<DeviceBlockStore>(device, options));
}

}  // namespace kvo::cuda
