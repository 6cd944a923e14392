// cuda/provider/paged_device_cache.hpp: `provider.paged` with its rows on a device.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cuda/block_pool/device_pool.hpp"
#include "cuda/memory/staging.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::cuda {

/// Rows go to and come from the blocks of a DevicePool by jobs append_paged and gather_paged, which
/// read the block table from device memory. Rows of several channels are turned by pack_head_major,
/// since a position's channels lie together in a block. An operation has taken effect when it
/// returns.
class PagedDeviceCache final : public provider::Paged {
 public:
  /// Errors  as provider::MakePaged says; kNotSupported: the pool is no DevicePool.
  static Result<std::unique_ptr<provider::Paged>> make(const provider::PagedOptions& options,
                                                       QuirkSet<provider::Quirk> quirks);

  PagedDeviceCache(std::shared_ptr<DevicePool> pool, const provider::PagedOptions& options,
                   QuirkSet<provider::Quirk> quirks);

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(cursors_.size());
  }
  /// Errors beside those of the contract: kOutOfMemory, nothing has changed; the device's own.
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override { return cut(0, 0); }
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] Status free() override { return cut(0, 0); }
  [[nodiscard]] provider::ShownTable table() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  [[nodiscard]] Status check(std::int64_t layer, const provider::Rows& rows) const;
  /// How the original aborts when it copies `fits` positions (ZF-33, ZF-34, ZF-40).
  [[nodiscard]] Status check_copy(std::int64_t layer, const provider::Rows& rows,
                                  std::int64_t fits) const;
  /// Takes blocks until there are so many, and queues what the device does not know of the table.
  [[nodiscard]] Status extend(std::int64_t blocks);
  [[nodiscard]] Status take_blocks(std::int64_t blocks);
  class TakenBlocks;  ///< gives back what an update took that came to nothing
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
  void note_used(std::int64_t start, std::int64_t count);
  [[nodiscard]] Status cut(std::int64_t n, std::int64_t needed);
  [[nodiscard]] std::int64_t blocks_of(std::int64_t positions) const {
    return positions == 0 ? 0 : (positions - 1) / geometry_.block_size + 1;
  }
  void pin(const Tensor& k);
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::shared_ptr<DevicePool> pool_;
  std::shared_ptr<Device> device_;
  Staging staging_;
  block_pool::Geometry geometry_;
  block_pool::Owner owner_;
  QuirkSet<provider::Quirk> quirks_;
  std::int64_t channels_ = 0;
  std::int64_t dim_ = 0;
  std::int64_t size_ = 0;                 ///< blocks in the table
  std::vector<std::int32_t> entries_;     ///< [capacity] of ZF-5, kNull where nothing was written
  std::shared_ptr<DeviceStorage> table_;  ///< a copy of entries_
  std::int64_t known_ = 0;                ///< entries that it has; those behind may be others
  std::vector<std::int64_t> cursors_;     ///< [layer], positions
};

}  // namespace kvo::cuda
