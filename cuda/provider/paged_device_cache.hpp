// cuda/provider/paged_device_cache.hpp: `provider.paged` with its rows on a device.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/block_pool/device_pool.hpp"
#include "cuda/jobs/rows.hpp"
#include "cuda/memory/staging.hpp"
#include "optimized/provider/paged_control.hpp"

namespace kvo::cuda {

/// Rows go to and come from the blocks of a DevicePool by jobs append_paged and gather_paged, which
/// read the block table from device memory. Rows of several channels are turned by pack_head_major,
/// since a position's channels lie together in a block. An operation has taken effect when it
/// returns.
class PagedDeviceCache final : public optimized::PagedControl<PagedDeviceCache> {
 public:
  /// Errors  as provider::MakePaged says; kNotSupported: the pool is no DevicePool.
  static Result<std::unique_ptr<provider::Paged>> make(const provider::PagedOptions& options,
                                                       QuirkSet<Quirk> quirks) {
    if (Status good = provider::check(options, quirks); !good) return good.error();
    const auto* const pool = dynamic_cast<const DevicePool*>(options.pool.get());
    if (pool == nullptr) return fail(Code::kNotSupported, "pool: its blocks are not on a device");
    return std::make_unique<PagedDeviceCache>(*pool, options, quirks);
  }

  PagedDeviceCache(const DevicePool& pool, const provider::PagedOptions& options,
                   QuirkSet<Quirk> quirks)
      : PagedControl(options, quirks), device_(pool.device()), staging_(device_) {}

  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    if (!has(layer)) return std::nullopt;
    const std::int64_t cursor = cursors_[static_cast<std::size_t>(layer)];
    if (cursor == 0) return std::nullopt;
    const std::int64_t side = head_dim_ * cursor;
    auto both = make_cells(device_, 2 * side);  // one allocation holds both sides
    if (!both) return both.error();
    if (Status there = staging_.reserve(channels_ > 1 ? side * kCellBytes : 0); !there)
      return there.error();
    const auto take = [&](std::size_t which) -> Status {
      const DevicePtr out = (*both)->ptr() + static_cast<std::int64_t>(which) * side * kCellBytes;
      const DevicePtr gathered = channels_ > 1 ? staging_.room(which) : out;
      Status queued = device_->run(PagedRows{.pool = this->rows(which, layer),
                                             .rows = gathered,
                                             .table = table_->ptr(),
                                             .block = block_size_,
                                             .row_bytes = head_dim_ * kCellBytes,
                                             .first = 0,
                                             .count = cursor}
                                       .gather());
      if (!queued || channels_ == 1) return queued;
      return device_->run(
          pack_head_major(out, gathered, cursor, channels_, dim_ * kCellBytes, 0, cursor));
    };
    Status taken = staging_.carry_out([&]() -> Status {
      if (Status shown = show_table(size_); !shown) return shown;  // an upload may have failed
      Status keys = take(0);
      return keys ? take(1) : keys;
    });
    if (!taken) return taken.error();
    known_ = size_;
    const Shape shape{channels_, cursor, dim_};
    return KvPair{{shape, *both, 0}, {shape, *both, side}};
  }

 private:
  friend PagedControl;
  /// Errors  kOutOfMemory, nothing has changed; the device's own.
  [[nodiscard]] Status put(std::int64_t layer, const Rows& rows, std::int64_t fits) {
    if (fits <= 0) return {};
    const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
    // Rows as they come and, where they are turned, after them as a block has them.
    const std::int64_t bytes = fits * head_dim_ * kCellBytes;
    const bool turns = rows.k->shape[0] > 1;
    if (Status there = staging_.reserve(turns ? 2 * bytes : bytes); !there) return there;
    const std::int64_t blocks = blocks_of(start + fits);
    TakenBlocks taken(*this, blocks);
    Status stored = staging_.carry_out([&] {
      const Status shown = show_table(blocks);
      return shown ? store(layer, rows, fits) : shown;
    });
    if (!stored) return stored;
    taken.keep();
    known_ = size_;
    for (std::int64_t i = start / block_size_; i < blocks; ++i)
      note_used(entries_[static_cast<std::size_t>(i)],
                std::min(block_size_, start + fits - i * block_size_));
    return {};
  }
  [[nodiscard]] Status reserve_table(std::size_t capacity) {
    auto made = make_cells(device_, static_cast<std::int64_t>(capacity));
    if (!made) return made.error();
    larger_ = std::move(*made);
    return {};
  }
  void moved_table() {
    table_ = std::move(larger_);
    known_ = 0;
  }
  void cut_table() { known_ = std::min(known_, size_); }
  /// Takes blocks until there are so many, and queues what the device does not know of the table.
  [[nodiscard]] Status show_table(std::int64_t blocks) {
    if (Status taken = extend(blocks); !taken) return taken;
    if (size_ <= known_) return {};
    fresh_.assign(entries_.begin() + known_, entries_.begin() + size_);
    return staging_.upload(0, table_->ptr() + known_ * kCellBytes,
                           std::as_bytes(std::span<const std::int32_t>(fresh_)));
  }
  /// Gives back what an update took that came to nothing
  class TakenBlocks {
   public:
    TakenBlocks(PagedDeviceCache& cache, std::int64_t blocks) : cache_(&cache), size_(cache.size_) {
      if (blocks > size_) entries_ = cache.entries_;
    }
    TakenBlocks(const TakenBlocks&) = delete;
    TakenBlocks& operator=(const TakenBlocks&) = delete;
    ~TakenBlocks() {
      if (cache_ == nullptr || cache_->size_ == size_) return;
      // The last one first, so that the pool hands them out in the same order again.
      for (; cache_->size_ > size_; --cache_->size_) {
        const std::int64_t block = cache_->entries_[static_cast<std::size_t>(cache_->size_ - 1)];
        cache_->pool_->free(cache_->owner_, {&block, 1});
      }
      cache_->entries_.swap(entries_);
      cache_->known_ = std::min(cache_->known_, size_);
    }
    void keep() { cache_ = nullptr; }

   private:
    PagedDeviceCache* cache_;
    std::int64_t size_;
    std::vector<std::int64_t> entries_;  ///< those behind size_ count, too: a truncate may extend
  };
  [[nodiscard]] DevicePtr rows(std::size_t side, std::int64_t layer) const {
    return static_cast<const DevicePool&>(*pool_).rows(side, layer);
  }
  /// Queues the first `count` positions on their way to their blocks.
  [[nodiscard]] Status store(std::int64_t layer, const Rows& rows, std::int64_t count) {
    const Shape& shape = rows.k->shape;
    const std::int64_t bytes = count * head_dim_ * kCellBytes;
    std::array<DevicePtr, 2> packed{staging_.room(0), staging_.room(1)};
    const auto pack = [&](std::size_t side, const Tensor& from, DevicePtr cells) -> Status {
      const DevicePtr room = packed.at(side);
      const HostLanes lanes{from.floats().data(), shape[0], count * shape[2], shape[1] * shape[2]};
      Status queued = cells ? take(room, cells, lanes) : staging_.upload(side, room, lanes);
      if (!queued || shape[0] == 1) return queued;
      packed.at(side) = room + bytes;
      return device_->run(
          pack_head_major(room + bytes, room, shape[0], count, shape[2] * kCellBytes, 0, shape[0]));
    };
    if (Status keys = pack(0, *rows.k, rows.k_device); !keys) return keys;
    if (Status values = pack(1, *rows.v, rows.v_device); !values) return values;
    // Others may see a block (ZF-24): it is written when nothing more can want for memory.
    const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
    const bool one_by_one = repeats(start, count);
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      Status placed = place(this->rows(side, layer), packed.at(side), start, count, one_by_one);
      if (!placed) return placed;
    }
    return {};
  }
  /// Queues the copy of lanes that lie at `cells` in device memory, lane behind lane, to `room`.
  [[nodiscard]] Status take(DevicePtr room, DevicePtr cells, const HostLanes& lanes) {
    for (std::int64_t lane = 0; lane < lanes.lanes; ++lane) {
      Status queued =
          device_->copy(room + lane * lanes.run * kCellBytes,
                        cells + lane * lanes.stride * kCellBytes, lanes.run * kCellBytes);
      if (!queued) return queued;
    }
    return {};
  }
  /// Queues rows, [count, head_dim], on their way to positions [start, start + count). A block that
  /// stands there twice, as it may where a free takes free blocks (ZF-24), keeps the later rows:
  /// then a launch a block, `one_by_one`, since threads of one have no order. Allocates nothing.
  [[nodiscard]] Status place(DevicePtr pool, DevicePtr rows, std::int64_t start, std::int64_t count,
                             bool one_by_one) {
    PagedRows work{.pool = pool,
                   .rows = rows,
                   .table = table_->ptr(),
                   .block = block_size_,
                   .row_bytes = head_dim_ * kCellBytes,
                   .first = start,
                   .count = count};
    if (!one_by_one) return device_->run(work.append());
    for (const std::int64_t end = start + count; work.first < end; work.first += work.count) {
      work.count = std::min(block_size_ - work.first % block_size_, end - work.first);
      if (Status queued = device_->run(work.append()); !queued) return queued;
      work.rows = work.rows + work.count * work.row_bytes;
    }
    return {};
  }
  /// Whether a block stands twice among those of the positions [start, start + count).
  [[nodiscard]] bool repeats(std::int64_t start, std::int64_t count) const {
    std::vector<std::int64_t> blocks(entries_.begin() + start / block_size_,
                                     entries_.begin() + blocks_of(start + count));
    std::ranges::sort(blocks);
    return std::ranges::adjacent_find(blocks) != blocks.end();
  }

  std::shared_ptr<Device> device_;
  Staging staging_;
  std::shared_ptr<DeviceStorage> table_;   ///< a copy of entries_, of i32
  std::shared_ptr<DeviceStorage> larger_;  ///< takes its place
  std::int64_t known_ = 0;                 ///< entries that it has; those behind may be others
  std::vector<std::int32_t> fresh_;        ///< entries that are uploaded
};

}  // namespace kvo::cuda
