// cuda/block_pool/device_pool.hpp: `block_pool.stack` with its cells on a device.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "reference/block_pool/cache.hpp"
#include "reference/contract/device/device.hpp"

namespace kvo::cuda {

/// A buffer a side, laid out [layer][block][position][head_dim]: a layer is a pool of rows as the
/// jobs append_paged and gather_paged want it, and a block is its number in each of them.
class DevicePool final : public block_pool::BlockPool {
 public:
  /// Errors  as of block_pool::sizes_of; kOutOfMemory; kNotSupported: a block's number has not 31
  ///         bits; the device's own.
  static Result<std::unique_ptr<block_pool::BlockPool>> make(const std::shared_ptr<Device>& device,
                                                             const block_pool::Geometry& geometry,
                                                             QuirkSet<block_pool::Quirk> quirks);

  DevicePool(const std::shared_ptr<Device>& device, const block_pool::Geometry& geometry,
             const block_pool::Sizes& sizes, QuirkSet<block_pool::Quirk> quirks);

  [[nodiscard]] block_pool::Geometry geometry() const override { return geometry_; }
  [[nodiscard]] std::int64_t cap() const override { return sizes_.blocks; }
  [[nodiscard]] std::int64_t available() const override;
  [[nodiscard]] Status alloc(block_pool::Owner owner, std::span<std::int64_t> blocks) override;
  void free(block_pool::Owner owner, std::span<const std::int64_t> blocks) override;
  [[nodiscard]] std::int64_t used(std::int64_t block) const override {
    return states_[static_cast<std::size_t>(block)].used;
  }
  void set_used(std::int64_t block, std::int64_t used) override {
    states_[static_cast<std::size_t>(block)].used = used;
  }
  [[nodiscard]] block_pool::Sides sides(std::int64_t /*block*/) override { return {}; }
  /// Done when they return. Throw ErrorThrown when the device fails: they cannot answer an error.
  void write(std::int64_t block, block_pool::Side side, std::int64_t index,
             std::span<const float> cells) override;
  void read(std::int64_t block, block_pool::Side side, std::int64_t index,
            std::span<float> out) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  /// The rows of a layer: [block][position][head_dim]. Requires side 0 (K) or 1 (V).
  [[nodiscard]] DevicePtr rows(std::size_t side, std::int64_t layer) const;

 private:
  static constexpr block_pool::Owner kFree = ~block_pool::Owner{0};
  struct State {
    std::int64_t used = 0;
    block_pool::Owner owner = kFree;
  };
  /// Whether a free by `owner` of a block that `holder` has is heeded (ZF-24).
  [[nodiscard]] bool may_free(block_pool::Owner owner, block_pool::Owner holder) const;
  /// Calls copy(address, first, count) for each piece of the block's cells [index, index + count)
  /// that lies in one layer.
  template <class Copy>
  void for_each_piece(std::int64_t block, block_pool::Side side, std::int64_t index,
                      std::size_t count, const Copy& copy) const;

  std::shared_ptr<Device> device_;
  block_pool::Geometry geometry_;
  block_pool::Sizes sizes_;
  QuirkSet<block_pool::Quirk> quirks_;
  std::array<std::shared_ptr<DeviceStorage>, 2> cells_;  ///< K, V
  std::vector<State> states_;                            ///< [block]
  mutable std::mutex lock_;                              ///< guards free_, and owners
  std::vector<std::int64_t> free_;                       ///< the next block to hand out is last
};

}  // namespace kvo::cuda
