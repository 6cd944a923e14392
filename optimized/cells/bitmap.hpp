// optimized/cells/bitmap.hpp: a set of cells that finds its next one without looking at each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvo::optimized {

/// A set of numbers below a size of at most 2^18. Two levels above the bits tell which words have
/// any, so that the next member, the first and the last are found in three steps.
class CellBitmap {
 public:
  static constexpr std::int64_t kMost = std::int64_t{1} << 18;

  /// Empty, or with all of 0 .. size - 1. Throws std::bad_alloc.
  explicit CellBitmap(std::int64_t size = 0, bool full = false);

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] bool has(std::int64_t cell) const {
    return (bits_[word_of(cell)] >> (cell & 63) & 1U) != 0;
  }
  void insert(std::int64_t cell) noexcept {
    std::uint64_t& word = bits_[word_of(cell)];
    if ((word >> (cell & 63) & 1U) != 0) return;
    ++count_;
    const bool first = word == 0;
    word |= bit(cell);
    if (!first) return;
    std::uint64_t& middle = word_above(cell);
    if (middle == 0) top_ |= bit(cell >> 12);
    middle |= bit(cell >> 6);
  }
  void erase(std::int64_t cell) noexcept {
    std::uint64_t& word = bits_[word_of(cell)];
    if ((word >> (cell & 63) & 1U) == 0) return;
    --count_;
    word &= ~bit(cell);
    if (word != 0) return;
    std::uint64_t& middle = word_above(cell);
    middle &= ~bit(cell >> 6);
    if (middle == 0) top_ &= ~bit(cell >> 12);
  }
  void put(std::int64_t cell, bool in) noexcept {
    if (in) {
      insert(cell);
    } else {
      erase(cell);
    }
  }
  /// The smallest member that is at least `from`; size() if there is none.
  [[nodiscard]] std::int64_t next(std::int64_t from) const noexcept;
  /// The smallest number in [from, to) that is no member; `to` if there is none.
  [[nodiscard]] std::int64_t next_missing(std::int64_t from, std::int64_t to) const noexcept;
  /// The smallest member; there must be one.
  [[nodiscard]] std::int64_t first() const noexcept { return next(0); }
  /// The largest member; there must be one.
  [[nodiscard]] std::int64_t last() const noexcept;
  /// Each bit of an upper level says whether the word below it has any, and the count is right.
  [[nodiscard]] bool consistent() const;

 private:
  static std::size_t word_of(std::int64_t number) { return static_cast<std::size_t>(number) >> 6U; }
  static std::uint64_t bit(std::int64_t number) { return std::uint64_t{1} << (number & 63); }

  /// The word of the middle level that is above a cell's.
  [[nodiscard]] std::uint64_t& word_above(std::int64_t cell) {
    return bits_[words_ + word_of(cell >> 6)];
  }
  /// Word `number` of the middle level.
  [[nodiscard]] std::uint64_t middle(std::int64_t number) const {
    return bits_[words_ + static_cast<std::size_t>(number)];
  }

  std::size_t words_ = 0;            ///< of the bits of cells
  std::vector<std::uint64_t> bits_;  ///< a bit a cell, then a bit a word of those
  std::uint64_t top_ = 0;            ///< a bit a word of the middle level
  std::int64_t size_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace kvo::optimized
