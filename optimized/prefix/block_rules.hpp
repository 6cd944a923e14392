// optimized/prefix/block_rules.hpp: what `prefix.blocks` derives from its options alone.
//
// Source   rules PX-26, PX-50, PX-52, PX-54 to PX-56.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "reference/prefix/blocks.hpp"

namespace kvo::optimized {

/// Quotients rounded to minus infinity, and up. Requires  b > 0.
[[nodiscard]] constexpr std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
[[nodiscard]] constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return floor_of(a + b - 1, b);
}

class BlockRules {
 public:
  explicit BlockRules(const prefix::BlocksOptions& options)
      : options_(options),
        shift_(std::has_single_bit(static_cast<std::uint64_t>(options.block_size))
                   ? std::countr_zero(static_cast<std::uint64_t>(options.block_size))
                   : -1) {}

  /// Whole blocks of so many tokens, and blocks that they need. A decoded token asks a dozen times,
  /// and a shift takes a tenth of a division.
  [[nodiscard]] std::int64_t whole(std::int64_t tokens) const {
    return shift_ >= 0 ? tokens >> shift_ : floor_of(tokens, options_.block_size);
  }
  [[nodiscard]] std::int64_t covering(std::int64_t tokens) const {
    return whole(tokens + options_.block_size - 1);
  }

  /// Tokens that no later token sees, of a request with so many (PX-50).
  [[nodiscard]] std::int64_t skipped(std::int64_t tokens) const {
    switch (options_.attention) {
      case prefix::Attention::kSlidingWindow:
        return tokens < options_.window ? 0 : tokens - options_.window + 1;
      case prefix::Attention::kChunkedLocal:
        return floor_of(tokens, options_.chunk) * options_.chunk;
      default:
        return 0;
    }
  }
  [[nodiscard]] std::int64_t skipped_blocks(std::int64_t tokens) const {
    return options_.attention == prefix::Attention::kFull ? 0 : whole(skipped(tokens));
  }
  /// Blocks in a row that a hit under a window needs (PX-52).
  [[nodiscard]] std::int64_t run() const {
    return ceil_of(options_.window - 1, options_.block_size) + (options_.eagle ? 1 : 0);
  }
  /// Blocks that a request has at most at a time (PX-56).
  [[nodiscard]] std::int64_t admitted(std::int64_t blocks) const;
  /// Free blocks that admission leaves (PX-26).
  [[nodiscard]] std::int64_t watermark() const;
  /// Whether block `i` gets a key when it is registered (PX-54, PX-55). Requires  i >= 0.
  [[nodiscard]] bool keeps_key(std::int64_t i, std::int64_t prompt,
                               const std::optional<std::int64_t>& boundary) const;
  /// Whether every block does.
  [[nodiscard]] bool keeps_all() const {
    return options_.attention != prefix::Attention::kSlidingWindow ||
           (run() > 0 && !options_.retention);
  }

 private:
  [[nodiscard]] bool ends_at(std::int64_t i, std::int64_t token) const;

  prefix::BlocksOptions options_;
  int shift_;  ///< of a block size that is a power of two; else -1
};

}  // namespace kvo::optimized
