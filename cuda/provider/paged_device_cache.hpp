// cuda/provider/paged_device_cache.hpp: `provider.paged` with its rows on a device.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "cuda/block_pool/device_pool.hpp"
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
                                                       QuirkSet<provider::Quirk> quirks);

  PagedDeviceCache(const DevicePool& pool, const provider::PagedOptions& options,
                   QuirkSet<provider::Quirk> quirks)
      : PagedControl(options, quirks), device_(pool.device()), staging_(device_) {}

  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;

 private:
  friend PagedControl;
  /// Errors  kOutOfMemory, nothing has changed; the device's own.
  [[nodiscard]] Status put(std::int64_t layer, const Rows& rows, std::int64_t fits);
  [[nodiscard]] Status reserve_table(std::size_t capacity);
  void moved_table();
  void cut_table() { known_ = std::min(known_, size_); }
  /// Takes blocks until there are so many, and queues what the device does not know of the table.
  [[nodiscard]] Status show_table(std::int64_t blocks);
  class TakenBlocks;  ///< gives back what an update took that came to nothing
  [[nodiscard]] DevicePtr rows(std::size_t side, std::int64_t layer) const {
    return static_cast<const DevicePool&>(*pool_).rows(side, layer);
  }
  /// Queues the first `count` positions on their way to their blocks.
  [[nodiscard]] Status store(std::int64_t layer, const provider::Rows& rows, std::int64_t count);
  /// Queues the copy of lanes that lie at `cells` in device memory, lane behind lane, to `room`.
  [[nodiscard]] Status take(DevicePtr room, DevicePtr cells, const HostLanes& lanes);
  /// Queues rows, [count, head_dim], on their way to positions [start, start + count). A block that
  /// stands there twice, as it may where a free takes free blocks (ZF-24), keeps the later rows:
  /// then a launch a block, `one_by_one`, since threads of one have no order. Allocates nothing.
  [[nodiscard]] Status place(DevicePtr pool, DevicePtr rows, std::int64_t start, std::int64_t count,
                             bool one_by_one);
  /// Whether a block stands twice among those of the positions [start, start + count).
  [[nodiscard]] bool repeats(std::int64_t start, std::int64_t count) const;

  std::shared_ptr<Device> device_;
  Staging staging_;
  std::shared_ptr<DeviceStorage> table_;   ///< a copy of entries_, of i32
  std::shared_ptr<DeviceStorage> larger_;  ///< takes its place
  std::int64_t known_ = 0;                 ///< entries that it has; those behind may be others
  std::vector<std::int32_t> fresh_;        ///< entries that are uploaded
};

}  // namespace kvo::cuda
