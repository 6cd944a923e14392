// optimized/views/block_store.hpp: the blocks that the caches of `views.paged` share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "optimized/memory/growth.hpp"
#include "reference/views/cache.hpp"

namespace kvo::optimized {

/// Blocks of rows of one layer, K and behind it V, each counted by those who hold it. Their memory
/// comes in slabs, is never cleared, and does not move: views show it where it lies.
class BlockStore {
 public:
  using Number = std::uint32_t;

  explicit BlockStore(const views::Options& options);

  /// Blocks that nobody holds.
  [[nodiscard]] std::int64_t available() const { return limit_ - taken_; }
  /// Makes sure that `count` blocks can be taken without an allocation. Requires  available().
  void prepare(std::int64_t count);
  /// A block with one holder. Requires  prepare().
  [[nodiscard]] Number take();
  void share(Number block) { ++blocks_[block].holders; }
  [[nodiscard]] bool is_held(Number block) const { return blocks_[block].holders > 0; }
  [[nodiscard]] bool is_shared(Number block) const { return blocks_[block].holders > 1; }
  /// One holder less; the last one gives it back.
  void release(Number block);

  /// Bytes of K, and of V, of a block.
  [[nodiscard]] std::size_t side_bytes() const { return side_bytes_; }
  [[nodiscard]] std::byte* k(Number block) const { return blocks_[block].data; }
  [[nodiscard]] std::byte* v(Number block) const { return blocks_[block].data + side_bytes_; }

  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] std::optional<std::string> broken_invariant() const;

 private:
  struct Block {
    std::byte* data = nullptr;
    std::uint32_t holders = 0;
  };

  std::int64_t limit_;
  std::size_t side_bytes_;
  std::int64_t taken_ = 0;
  std::vector<Block> blocks_ = {};  ///< those that have memory
  std::vector<Number> free_ = {};   ///< of these, those that nobody holds; the last is taken next
  std::vector<Cells> slabs_ = {};
};

}  // namespace kvo::optimized
