// cuda/views/device_rows.hpp: the blocks and rows of `views.paged` on a device.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "optimized/views/paged_views_cache.hpp"

namespace kvo::cuda {

/// A side is one buffer on the device, [block][token][kv_dim]. A view of the contract is an address
/// of the host: the memory of the base class mirrors the blocks there.
class DeviceBlockStore : public optimized::BlockStore {
 public:
  /// Throws std::bad_alloc without memory on the device; ErrorThrown when it fails.
  DeviceBlockStore(std::shared_ptr<kvo::Device> device, const views::Options& options);

  /// All blocks of a side. Requires side 0 (K) or 1 (V).
  [[nodiscard]] DevicePtr cells(std::size_t side) const { return cells_[side]->ptr(); }
  [[nodiscard]] DevicePtr cells(std::size_t side, Number block) const {
    return cells(side) + static_cast<std::int64_t>(block * side_bytes());
  }
  [[nodiscard]] const std::shared_ptr<kvo::Device>& device() const { return device_; }

 private:
  std::shared_ptr<kvo::Device> device_;
  std::array<std::shared_ptr<DeviceStorage>, 2> cells_;  ///< K, V
};

/// An append uploads its rows and the numbers of their blocks. Jobs convert rows to 16 bits where
/// they are stored so, copy a block that a fork shares, and put the rows in place. Then changed
/// rows are copied to the mirrors. Packed views are made on the device. An operation has taken
/// effect when it returns. After an error of the device, rows at the positions of an append may
/// have changed.
class DeviceViewRows {
 public:
  using Store = DeviceBlockStore;
  using Number = Store::Number;
  /// Nothing is kept from call to call.
  struct Packed {
    void forget(std::int64_t /*position*/) {}
    void clear() {}
  };

  DeviceViewRows(const views::Options& options, std::shared_ptr<Store> store);

  [[nodiscard]] Status put(const optimized::AppendedRows& of);
  /// One launch a side for all pairs.
  [[nodiscard]] Status copy(std::span<const Number> pairs, std::int64_t tokens);
  [[nodiscard]] std::span<const views::PackedView> pack(Packed& packed,
                                                        std::span<const Number> table,
                                                        std::span<const views::View> shown);

 private:
  /// Whether rows are stored in less than f32.
  [[nodiscard]] bool narrow() const { return options_.storage.type != StorageType::kF32; }
  /// Memory on the device for that many numbers of blocks.
  [[nodiscard]] Status make_numbers(std::size_t count);
  /// Queues one side's rows on their way to their blocks.
  [[nodiscard]] Status put_side(std::size_t side, const optimized::AppendedRows& of);
  /// Queues the copy of a block's tokens [begin, end) to its mirror.
  [[nodiscard]] Status show(Number block, std::int64_t begin, std::int64_t end);
  [[nodiscard]] Status pack_side(std::size_t side, std::span<const Number> table,
                                 std::span<const views::View> shown);

  const views::Options& options_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<kvo::Device> device_;
  Staging staging_;
  std::shared_ptr<DeviceStorage> numbers_;  ///< of blocks, for jobs; null until there are some
  std::size_t most_numbers_ = 0;
  std::int64_t row_bytes_;
  std::vector<views::PackedView> packed_ = {};  ///< by the last call
  std::array<std::vector<float>, 2> packed_cells_ = {};
};

/// The pool of such caches. Throws as demand() does.
[[nodiscard]] Result<std::unique_ptr<views::Pool>> make_paged_views(
    const std::shared_ptr<kvo::Device>& device, const views::Options& options);

}  // namespace kvo::cuda
