// optimized/block_pool/arena_pool.hpp: `block_pool.stack`, fast on a CPU.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "optimized/memory/arena.hpp"
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

/// All blocks lie in one arena, cleared at construction, so that no update pays for a page fault.
/// Blocks that were never handed out are counted, not listed.
class ArenaPool final : public block_pool::BlockPool {
 public:
  /// Errors  as of block_pool::sizes_of.
  static Result<std::unique_ptr<block_pool::BlockPool>> make(const block_pool::Geometry& geometry,
                                                             QuirkSet<block_pool::Quirk> quirks);

  ArenaPool(const block_pool::Geometry& geometry, const block_pool::Sizes& sizes,
            QuirkSet<block_pool::Quirk> quirks);

  [[nodiscard]] block_pool::Geometry geometry() const override { return geometry_; }
  [[nodiscard]] std::int64_t cap() const override { return blocks_; }
  [[nodiscard]] std::int64_t available() const override;
  [[nodiscard]] Status alloc(block_pool::Owner owner, std::span<std::int64_t> blocks) override;
  void free(block_pool::Owner owner, std::span<const std::int64_t> blocks) override;
  [[nodiscard]] std::int64_t used(std::int64_t block) const override {
    return states_[static_cast<std::size_t>(block)].used;
  }
  void set_used(std::int64_t block, std::int64_t used) override {
    states_[static_cast<std::size_t>(block)].used = used;
  }
  [[nodiscard]] block_pool::Sides sides(std::int64_t block) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  static constexpr block_pool::Owner kFree = ~block_pool::Owner{0};
  struct State {
    std::int64_t used = 0;
    block_pool::Owner owner = kFree;
  };
  /// Whether a free by `owner` of a block that `holder` has is heeded (ZF-24).
  [[nodiscard]] bool may_free(block_pool::Owner owner, block_pool::Owner holder) const;
  [[nodiscard]] std::size_t free_count() const {
    return recycled_.size() + static_cast<std::size_t>(blocks_ - untouched_);
  }

  block_pool::Geometry geometry_;
  std::int64_t blocks_;
  std::size_t side_bytes_;
  std::size_t side_;    ///< cells that hold them
  std::size_t stride_;  ///< cells from one side to the next
  QuirkSet<block_pool::Quirk> quirks_;
  Cells cells_;                 ///< [block][K, V][layer][position], as stored
  std::vector<State> states_;   ///< [block]
  mutable SpinLock lock_;       ///< guards all below, and owners
  std::int64_t untouched_ = 0;  ///< the blocks from here on lie below recycled_ on the stack
  std::vector<std::int64_t> recycled_;  ///< given back; the top is last
};

}  // namespace kvo::optimized
