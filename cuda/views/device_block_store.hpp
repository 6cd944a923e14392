// cuda/views/device_block_store.hpp: the blocks that caches of `views.paged` share, on a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "reference/views/cache.hpp"

namespace kvo::cuda {

/// Blocks of rows of one layer, each counted by those who hold it. A side is one buffer on the
/// device, [block][token][kv_dim]. A view of the contract is an address of the host, so each block
/// has a mirror there, made when the block is first taken; it does not move.
class DeviceBlockStore {
 public:
  using Number = std::int32_t;

  /// Throws std::bad_alloc without memory on the device; ErrorThrown when it fails.
  DeviceBlockStore(std::shared_ptr<kvo::Device> device, const views::Options& options);

  /// Blocks that nobody holds.
  [[nodiscard]] std::int64_t available() const { return limit_ - taken_; }
  /// Makes sure that `count` blocks can be taken without an allocation. Requires  available().
  void prepare(std::int64_t count);
  /// A block with one holder. Requires  prepare().
  [[nodiscard]] Number take();
  void share(Number block) { ++at(block).holders; }
  [[nodiscard]] bool is_held(Number block) const { return at(block).holders > 0; }
  [[nodiscard]] bool is_shared(Number block) const { return at(block).holders > 1; }
  /// One holder less; the last one gives it back.
  void release(Number block);

  /// Bytes of K, and of V, of a block.
  [[nodiscard]] std::int64_t side_bytes() const { return side_bytes_; }
  /// All blocks of a side. Requires side 0 (K) or 1 (V).
  [[nodiscard]] DevicePtr cells(std::size_t side) const { return cells_[side]->ptr(); }
  [[nodiscard]] DevicePtr cells(std::size_t side, Number block) const {
    return cells(side) + block * side_bytes_;
  }
  [[nodiscard]] std::byte* mirror(std::size_t side, Number block) {
    return at(block).mirror.data() + static_cast<std::int64_t>(side) * side_bytes_;
  }
  [[nodiscard]] const std::shared_ptr<kvo::Device>& device() const { return device_; }

  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] std::optional<std::string> broken_invariant() const;

 private:
  struct Block {
    std::vector<std::byte> mirror;  ///< K, and behind it V
    std::uint32_t holders = 0;
  };
  [[nodiscard]] Block& at(Number block) { return blocks_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] const Block& at(Number block) const {
    return blocks_[static_cast<std::size_t>(block)];
  }

  std::shared_ptr<kvo::Device> device_;
  std::int64_t limit_;
  std::int64_t side_bytes_;
  std::array<std::shared_ptr<DeviceStorage>, 2> cells_;  ///< K, V
  std::int64_t taken_ = 0;
  std::vector<Block> blocks_ = {};  ///< those that have a mirror
  std::vector<Number> free_ = {};   ///< of these, those that nobody holds; the last is taken next
};

}  // namespace kvo::cuda
