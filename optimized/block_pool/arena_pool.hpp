// optimized/block_pool/arena_pool.hpp: `block_pool.stack`, fast on a CPU.
#pragma once

#include <memory>

#include "optimized/block_pool/pool_control.hpp"
#include "optimized/memory/arena.hpp"

namespace kvo::optimized {

/// All blocks lie in one arena, cleared at construction, so that no update pays for a page fault.
class ArenaPool final : public PoolControl {
 public:
  /// Errors  as of block_pool::sizes_of.
  static Result<std::unique_ptr<block_pool::BlockPool>> make(const block_pool::Geometry& geometry,
                                                             QuirkSet<block_pool::Quirk> quirks);

  ArenaPool(const block_pool::Geometry& geometry, const block_pool::Sizes& sizes,
            QuirkSet<block_pool::Quirk> quirks);

  [[nodiscard]] block_pool::Sides sides(std::int64_t block) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  std::size_t side_bytes_;
  std::size_t side_;    ///< cells that hold them
  std::size_t stride_;  ///< cells from one side to the next
  Cells cells_;         ///< [block][K, V][layer][position], as stored
};

}  // namespace kvo::optimized
