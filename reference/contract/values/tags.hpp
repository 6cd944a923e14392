// reference/contract/values/tags.hpp: payload whose origin can be seen.
//
// Every element that a case puts into a cache carries the next tag: 1, 2, 3, ... on the key side
// and -1, -2, -3, ... on the value side. Tags are exact in f32, and all of a case differ.
#pragma once

#include <bit>
#include <cstdint>

#include "reference/contract/values/check.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

/// The n-th tag: n itself while f32 counts in ones, then the floats above 2^24 one by one.
/// Requires n < 2^24 + 872,415,232, where f32 ends.
[[nodiscard]] inline float tag(std::uint64_t n) {
  constexpr std::uint64_t kOnes = std::uint64_t{1} << 24U;
  constexpr std::uint64_t kFloats = 0x7F800000U - 0x4B800000U;
  if (n < kOnes) return static_cast<float>(n);
  KVO_CHECK(n - kOnes < kFloats);
  return std::bit_cast<float>(static_cast<std::uint32_t>(0x4B800000U + (n - kOnes)));
}

/// Hands out tags to the rows of one case.
class Tagger {
 public:
  /// Fills `keys` with the next tags and `values` with their negatives.
  void fill(std::span<float> keys, std::span<float> values) {
    KVO_CHECK(keys.size() == values.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = tag(++last_);
      values[i] = -keys[i];
    }
  }
  /// A key tensor of `shape` and its value tensor.
  [[nodiscard]] std::pair<Tensor, Tensor> pair(const Shape& shape) {
    std::pair<Tensor, Tensor> made{make_tensor(shape), make_tensor(shape)};
    fill(made.first.floats(), made.second.floats());
    return made;
  }

  /// The number of the tag handed out last.
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  std::uint64_t last_ = 0;
};

}  // namespace kvo
