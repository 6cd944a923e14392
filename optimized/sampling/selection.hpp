// optimized/sampling/selection.hpp: finding the few that count among many numbers.
//
// One pass over all of them takes the largest of each block, in lanes that the compiler makes
// vectors of. After that only the blocks are looked into whose largest number counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace kvo::optimized {

/// Numbers with the largest of each block, some of them passed over. NaN counts as -inf.
template <class Number>
class Blocks {
 public:
  static constexpr std::size_t kBlock = 256;

  /// Refers to the numbers. `skipped`: indices, sorted.
  explicit Blocks(std::span<const Number> numbers, std::vector<std::size_t> skipped = {})
      : numbers_(numbers),
        skipped_(std::move(skipped)),
        maxima_((numbers.size() + kBlock - 1) / kBlock) {
    for (std::size_t b = 0; b < maxima_.size(); ++b) maxima_[b] = largest_of(block(b));
    for (const std::size_t i : skipped_)
      if (numbers_[i] == maxima_[i / kBlock]) look_again(i / kBlock);
  }

  [[nodiscard]] double largest() const {
    return maxima_.empty() ? kNothing : double{*std::ranges::max_element(maxima_)};
  }
  /// As many as k of the numbers are no less than this; -inf where blocks do not tell.
  [[nodiscard]] double floor_of(std::size_t k) const {
    if (k > maxima_.size()) return kNothing;
    std::vector<Number> falling = maxima_;
    const auto kth = falling.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::ranges::nth_element(falling, kth, std::greater<>());
    return double{*kth};
  }
  /// Calls found(index, number) for each number >= floor(), in order. The floor may rise.
  template <class Floor, class Found>
  void for_each_reaching(Floor floor, Found found) const {
    for (std::size_t b = 0; b < maxima_.size(); ++b)
      if (double{maxima_[b]} >= floor()) scan(b, floor, found);
  }

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();
  static constexpr std::size_t kLanes = 32;

  [[nodiscard]] std::span<const Number> block(std::size_t b) const {
    return numbers_.subspan(b * kBlock, std::min(kBlock, numbers_.size() - b * kBlock));
  }
  [[nodiscard]] static Number largest_of(std::span<const Number> some) {
    std::array<Number, kLanes> lanes;
    lanes.fill(-std::numeric_limits<Number>::infinity());
    std::size_t at = 0;
    for (; at + kLanes <= some.size(); at += kLanes)
      for (std::size_t i = 0; i < kLanes; ++i)
        lanes[i] = some[at + i] > lanes[i] ? some[at + i] : lanes[i];
    for (std::size_t i = 0; at < some.size(); ++at, ++i)
      lanes[i] = some[at] > lanes[i] ? some[at] : lanes[i];
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i)
        lanes[i] = lanes[i + half] > lanes[i] ? lanes[i + half] : lanes[i];
    return lanes[0];
  }
  // The largest of a block was one that is passed over.
  void look_again(std::size_t b) {
    maxima_[b] = -std::numeric_limits<Number>::infinity();
    const std::size_t end = std::min(numbers_.size(), (b + 1) * kBlock);
    for (std::size_t i = b * kBlock; i < end; ++i)
      if (numbers_[i] > maxima_[b] && !is_skipped(i)) maxima_[b] = numbers_[i];
  }
  [[nodiscard]] bool is_skipped(std::size_t i) const {
    return std::ranges::binary_search(skipped_, i);
  }
  template <class Floor, class Found>
  void scan(std::size_t b, Floor floor, Found found) const {
    const std::span<const Number> some = block(b);
    for (std::size_t at = 0; at < some.size(); at += kLanes) {
      const std::span<const Number> part = some.subspan(at, std::min(kLanes, some.size() - at));
      if (part.size() == kLanes && !any_reaches(part.template first<kLanes>(), floor())) continue;
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::size_t index = b * kBlock + at + i;
        if (double{part[i]} >= floor() && !is_skipped(index)) found(index, double{part[i]});
      }
    }
  }
  [[nodiscard]] static bool any_reaches(std::span<const Number, kLanes> part, double floor) {
    // Rounded to the nearest Number: what is no less than the floor is no less than this.
    const auto low = static_cast<Number>(floor);
    std::int32_t any = 0;
    for (std::size_t i = 0; i < kLanes; ++i) any |= part[i] >= low ? -1 : 0;
    return any != 0;
  }

  std::span<const Number> numbers_;
  std::vector<std::size_t> skipped_;
  std::vector<Number> maxima_;
};

/// The k-th largest of the numbers that are offered; it holds at most twice as many as it must, and
/// drops the smaller half when these are full. Requires  k >= 1.
class KthLargest {
 public:
  /// `floor`: as many as k that will be offered are known to be no less; -inf: that is not known.
  KthLargest(std::size_t k, double floor) : k_(k), floor_(floor) {}

  void offer(double number) {
    if (!(number > floor_)) return;
    held_.push_back(number);
    if (held_.size() >= 2 * k_) drop_smaller();
  }
  [[nodiscard]] double floor() const { return floor_; }
  /// -inf if fewer than k of the numbers are above it.
  [[nodiscard]] double value() {
    if (held_.size() >= k_) drop_smaller();
    return floor_;
  }

 private:
  void drop_smaller() {
    const auto kth = held_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
    std::ranges::nth_element(held_, kth, std::greater<>());
    floor_ = *kth;
    held_.resize(k_);
  }

  std::size_t k_;
  double floor_;
  std::vector<double> held_;
};

/// The first entries of `order`, indices into `probabilities`, are put in order of falling
/// probability, equal ones by index and NaN last, until their sum in that order reaches p.
/// Returns how many they are: all if the sum stays below.
[[nodiscard]] std::size_t reach(std::span<const double> probabilities,
                                std::span<std::uint32_t> order, double p);

}  // namespace kvo::optimized
