// reference/probe/tables.hpp: the tokens of the probe model, and what each of them reads and
// writes.
//
// Words    probe     a model with computed weights: each token that it generates is an exact
//                    function of rows that it reads through the KV cache.
//          value     token that takes part: 16 classes of 256 values. All other tokens are void.
//                    Their rows hold zeroes and they read nothing.
//          class     c: the token reads at most 2^c - 1 positions back.
//          head      KV head. Each KV head carries two bits of a value.
//          bit       +1 or -1; 0 if a row holds none.
// Source   docs/probe.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace kvo::probe {

using Token = std::uint32_t;
using Bit = std::int8_t;

/// Sizes of the probe. A value has 8 bits, 2 for each of 4 heads, so most sizes are fixed.
struct Shape {
  static constexpr std::size_t kLayers = 4;
  static constexpr std::size_t kHeads = 4;
  static constexpr std::size_t kBits = 2;  ///< of a value, per head
  static constexpr std::size_t kQueryHeads = 2 * kHeads;
  static constexpr std::size_t kHidden = 512;
  static constexpr std::size_t kFeedForward = 128;
  static constexpr std::size_t kVocabulary = 4416;
  static constexpr std::size_t kPositions = 32768;  ///< the longest text
  static constexpr double kRopeTheta = 500'000;

  std::size_t head_dim = 64;                         ///< 64 or 128
  std::optional<std::size_t> window = std::nullopt;  ///< of the attention, in tokens
  std::uint64_t seed = 1;                            ///< of all tables
  /// Whether tokens look back up to two rows past the window, where they read nothing: a window
  /// that is too long then shows.
  bool past_window = false;
};

inline constexpr Token kBegin = 1;  ///< begins a text
inline constexpr Token kEnd = 2;
inline constexpr Token kSink = 3;  ///< as kBegin, for use inside a text
inline constexpr Token kFirstByte = 16;
inline constexpr Token kFirstValue = 272;
inline constexpr std::uint32_t kClasses = 16;
inline constexpr std::uint32_t kValues = 256;  ///< per class
inline constexpr Token kFirstPad = kFirstValue + kClasses * kValues;

/// Whether the rows of the token attract the heads that must read nothing.
[[nodiscard]] constexpr bool is_sink(Token token) {
  return token == kBegin || token == kSink;
}

template <class T>
using PerHead = std::array<T, Shape::kHeads>;
template <class T>
using PerLayer = std::array<T, Shape::kLayers>;
using Bits = std::array<Bit, Shape::kBits>;

/// One 64-bit number from several: the step of splitmix64 for each number in turn.
[[nodiscard]] std::uint64_t mix(std::initializer_list<std::uint64_t> numbers);

/// +1 if the lowest bit of `number` is set, else -1.
[[nodiscard]] constexpr Bit sign_of(std::uint64_t number) {
  return (number & 1U) != 0 ? Bit{1} : Bit{-1};
}

/// Sign by which V of a head repeats a bit in dimension `dim`.
[[nodiscard]] Bit pattern(const Shape& shape, std::size_t layer, std::size_t head, std::size_t dim);

/// What a token does.
struct Meaning {
  bool is_value = false;
  std::uint8_t token_class = 0;           ///< also of the token that follows
  std::uint8_t value = 0;                 ///< 0 to 255
  PerHead<std::uint32_t> look_back = {};  ///< distance to the row that the head reads
  PerLayer<PerHead<Bit>> sign = {};       ///< stored in K
  PerHead<Bits> bits = {};                ///< stored in V of the first layer
};

/// The meaning of every token of a shape.
class Tables {
 public:
  explicit Tables(const Shape& shape = {});

  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// Requires  token < Shape::kVocabulary.
  [[nodiscard]] const Meaning& operator[](Token token) const { return meanings_[token]; }
  /// What a head reads of a bit that was written for another head or layer: the mean product of
  /// both patterns, from -1 to 1. Cells are numbered kHeads * layer + head.
  [[nodiscard]] float overlap(std::size_t cell, std::size_t other, std::size_t bit) const {
    return overlaps_[cell][other][bit];
  }

 private:
  static constexpr std::size_t kCells = Shape::kLayers * Shape::kHeads;

  Shape shape_;
  std::array<std::array<std::array<float, Shape::kBits>, kCells>, kCells> overlaps_{};
  std::vector<Meaning> meanings_;  // [kVocabulary]
};

}  // namespace kvo::probe
