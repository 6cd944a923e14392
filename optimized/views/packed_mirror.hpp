// optimized/views/packed_mirror.hpp: the packed views of a layer, kept from one call to the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "reference/views/cache.hpp"

namespace kvo::optimized {

/// Head by head copies of the blocks of a layer. Only tokens that were written since the last call
/// are packed again, each straight to its place: a step of decoding packs one.
class PackedMirror {
 public:
  /// Tokens from `position` on are written or dropped.
  void forget(std::int64_t position) {
    if (position < packed_) packed_ = position;
  }
  /// Packs what `views` show, which begin at token 0, block by block.
  [[nodiscard]] std::span<const views::PackedView> pack(const views::Options& options,
                                                        std::span<const views::View> views);
  /// Gives its memory back.
  void clear();

 private:
  void grow(const views::Options& options, std::size_t blocks);

  std::int64_t packed_ = 0;  ///< tokens that are as they were packed
  std::vector<views::PackedView> shown_ = {};
  std::vector<float*> blocks_ = {};  ///< K, and behind it V, of each block
  std::vector<Cells> slabs_ = {};
};

}  // namespace kvo::optimized
