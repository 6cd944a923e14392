// optimized/block_pool/pool_control.hpp: which blocks of a pool are free, in any memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "reference/block_pool/cache.hpp"

namespace kvo::optimized {

/// A lock for sections of a few dozen instructions: one atomic exchange where std::mutex needs two.
class SpinLock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

/// Owners, counts of used positions, and the stack of free blocks. Blocks that were never taken are
/// counted, not listed. Derived classes have the rows.
class PoolControl : public block_pool::BlockPool {
 public:
  [[nodiscard]] block_pool::Geometry geometry() const override { return geometry_; }
  [[nodiscard]] std::int64_t cap() const override { return std::ssize(states_); }
  [[nodiscard]] std::int64_t available() const override;
  [[nodiscard]] Status alloc(block_pool::Owner owner, std::span<std::int64_t> blocks) override;
  void free(block_pool::Owner owner, std::span<const std::int64_t> blocks) override;
  [[nodiscard]] std::int64_t used(std::int64_t block) const override {
    return states_[static_cast<std::size_t>(block)].used;
  }
  void set_used(std::int64_t block, std::int64_t used) override {
    states_[static_cast<std::size_t>(block)].used = used;
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  PoolControl(const block_pool::Geometry& geometry, std::int64_t blocks,
              QuirkSet<block_pool::Quirk> quirks);

  block_pool::Geometry geometry_;

 private:
  static constexpr block_pool::Owner kFree = ~block_pool::Owner{0};
  struct State {
    std::int64_t used = 0;
    block_pool::Owner owner = kFree;
  };
  /// Whether a free by `owner` of a block that `holder` has is heeded (ZF-24).
  [[nodiscard]] bool may_free(block_pool::Owner owner, block_pool::Owner holder) const;
  [[nodiscard]] std::size_t free_count() const {
    return recycled_.size() + states_.size() - static_cast<std::size_t>(untouched_);
  }

  QuirkSet<block_pool::Quirk> quirks_;
  std::vector<State> states_;   ///< [block]
  mutable SpinLock lock_;       ///< guards all below, and owners
  std::int64_t untouched_ = 0;  ///< the blocks from here on are below recycled_ on the stack
  std::vector<std::int64_t> recycled_;  ///< released; the top is last
  /// Members of derived classes are in another line of the caches: threads write this one.
  [[maybe_unused]] std::array<std::byte, 64> padding_ = {};
};

}  // namespace kvo::optimized
