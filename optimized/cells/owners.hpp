// optimized/cells/owners.hpp: a set of sequences, in four words.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvo::optimized {

/// A set of sequences 0 to 255.
class OwnerSet {
 public:
  [[nodiscard]] bool has(std::int32_t seq) const { return (word(seq) >> (seq & 63) & 1U) != 0; }
  void insert(std::int32_t seq) { word(seq) |= std::uint64_t{1} << (seq & 63); }
  void erase(std::int32_t seq) { word(seq) &= ~(std::uint64_t{1} << (seq & 63)); }
  void put(std::int32_t seq, bool in) {
    if (in) {
      insert(seq);
    } else {
      erase(seq);
    }
  }
  /// The smallest number from there on that is not in; 256 if there is none.
  [[nodiscard]] std::int32_t next_missing(std::int32_t from) const {
    std::uint64_t left = ~std::uint64_t{0} << (from & 63);
    for (std::size_t i = static_cast<std::size_t>(from) / 64; i < words_.size(); ++i) {
      if (const std::uint64_t missing = ~words_[i] & left; missing != 0)
        return static_cast<std::int32_t>(i * 64) + std::countr_zero(missing);
      left = ~std::uint64_t{0};
    }
    return static_cast<std::int32_t>(words_.size() * 64);
  }
  void insert(const OwnerSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  [[nodiscard]] bool overlaps(const OwnerSet& other) const {
    std::uint64_t both = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) both |= words_[i] & other.words_[i];
    return both != 0;
  }
  [[nodiscard]] bool contains(const OwnerSet& other) const {
    std::uint64_t missing = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) missing |= other.words_[i] & ~words_[i];
    return missing == 0;
  }
  [[nodiscard]] std::int32_t count() const {
    std::int32_t sum = 0;
    for (const std::uint64_t each : words_) sum += std::popcount(each);
    return sum;
  }
  /// The smallest; there must be one.
  [[nodiscard]] std::int32_t first() const {
    std::size_t i = 0;
    while (words_[i] == 0) ++i;
    return static_cast<std::int32_t>(i * 64) + std::countr_zero(words_[i]);
  }
  /// Calls see(seq) for each, ascending.
  template <class See>
  void each(See&& see) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (std::uint64_t left = words_[i]; left != 0; left &= left - 1)
        see(static_cast<std::int32_t>(i * 64) + std::countr_zero(left));
  }
  friend bool operator==(const OwnerSet&, const OwnerSet&) = default;

 private:
  [[nodiscard]] std::uint64_t& word(std::int32_t seq) {
    return words_[static_cast<std::size_t>(seq) / 64];
  }
  [[nodiscard]] const std::uint64_t& word(std::int32_t seq) const {
    return words_[static_cast<std::size_t>(seq) / 64];
  }

  std::array<std::uint64_t, 4> words_{};
};

}  // namespace kvo::optimized
