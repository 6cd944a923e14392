// cuda/block_pool/device_pool.hpp: `block_pool.stack` with its cells on a device.
#pragma once

#include <array>
#include <memory>

#include "optimized/block_pool/pool_control.hpp"
#include "reference/contract/device/device.hpp"

namespace kvo::cuda {

/// A buffer a side, laid out [layer][block][position][head_dim]: a layer is a pool of rows as the
/// jobs append_paged and gather_paged want it, and a block is its number in each of them.
class DevicePool final : public optimized::PoolControl {
 public:
  /// Errors  as of block_pool::sizes_of; kOutOfMemory; kNotSupported: a block's number has not 31
  ///         bits; the device's own.
  static Result<std::unique_ptr<block_pool::BlockPool>> make(const std::shared_ptr<Device>& device,
                                                             const block_pool::Geometry& geometry,
                                                             QuirkSet<block_pool::Quirk> quirks);

  DevicePool(std::shared_ptr<Device> device, const block_pool::Geometry& geometry,
             const block_pool::Sizes& sizes, QuirkSet<block_pool::Quirk> quirks);

  [[nodiscard]] block_pool::Sides sides(std::int64_t /*block*/) override { return {}; }
  /// Done when they return. Throw ErrorThrown when the device fails: they cannot answer an error.
  void write(std::int64_t block, block_pool::Side side, std::int64_t index,
             std::span<const float> cells) override;
  void read(std::int64_t block, block_pool::Side side, std::int64_t index,
            std::span<float> out) override;

  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  /// The rows of a layer: [block][position][head_dim]. Requires side 0 (K) or 1 (V).
  [[nodiscard]] DevicePtr rows(std::size_t side, std::int64_t layer) const;

 private:
  /// Calls copy(address, first, count) for each piece of the block's cells [index, index + count)
  /// that lies in one layer.
  template <class Copy>
  void for_each_piece(std::int64_t block, block_pool::Side side, std::int64_t index,
                      std::size_t count, const Copy& copy) const;

  std::shared_ptr<Device> device_;
  block_pool::Sizes sizes_;
  std::array<std::shared_ptr<DeviceStorage>, 2> cells_;  ///< K, V
};

}  // namespace kvo::cuda
