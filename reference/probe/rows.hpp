// reference/probe/rows.hpp: what a correct KV cache holds for the probe, and the next token.
//
// Words    row       what one token stores in all layers and heads: in K a sign, in V two bits.
//          cell      the part of a row in one layer and one head.
//          position  index of a row in the text, counted from 0.
// Rule     A value token x at position m reads, in each layer, row n = m - look_back(x) by head:
//            read(layer, head) = sign(layer, head, n) * bits(layer, head, n)
//          The row stores bits(0, head) = those of x, and in each later layer what the next head
//          read one layer before: bits(layer, head) = read(layer - 1, head + 1).
//          The reads of the last layer are the bits of the token that follows.
//          A row that is missing, outside of the window or void reads as 0.
// Faults   A key is found at the position that it carries. Of two rows of different signs at one
//          position a head reads the sum; two rows of one sign that differ give an unknown read.
//          A cell that was written for another head or layer reads weaker (Tables::overlap).
//          A query head that must find nothing finds a sink. Without one it reads other rows. A
//          read of -1 then still clears a bit (99 of 100 times: weights_test); any other read is
//          unknown.
// Source   docs/probe.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "reference/probe/tables.hpp"

namespace kvo::probe {

/// Which cells were read. A cell of a void or evicted row holds nothing and does not count.
class Coverage {
 public:
  void add(std::size_t layer, std::size_t head, std::size_t position);
  [[nodiscard]] bool has(std::size_t layer, std::size_t head, std::size_t position) const;
  [[nodiscard]] std::size_t cells() const;

 private:
  std::vector<std::uint16_t> heads_;  // by position: bit kHeads * layer + head
};

/// What a head reads of V: a bit is kWhole or -kWhole, weaker or stronger where a fault adds up.
using Read = std::array<std::int8_t, Shape::kBits>;
inline constexpr int kWhole = 32;
inline constexpr std::int8_t kUnknown = -128;

/// The cells that the two query heads of a KV head find.
class FoundCells {
 public:
  /// A cell with this sign in K, and V; 0: no head finds it.
  void add(Bit sign, const Read& values);
  [[nodiscard]] Read read(bool sees_sink) const;

 private:
  std::array<std::optional<Read>, 2> by_sign_;  // +1 last
};

/// V that a token stores in a layer. `reads`: what it read one layer before.
[[nodiscard]] PerHead<Read> values_of(const Meaning& meaning, std::size_t layer,
                                      const PerHead<Read>& reads);
/// The token that follows one that read this in the last layer.
[[nodiscard]] Token token_after(const Meaning& meaning, const PerHead<Read>& reads);

/// A part of a row, and where it comes from.
struct Part {
  std::optional<std::size_t> layer = std::nullopt;  ///< none: all layers
  std::optional<std::size_t> head = std::nullopt;   ///< none: all heads
  bool keys = true;
  bool values = true;
  std::optional<std::size_t> from_layer = std::nullopt;  ///< none: the same layer
  std::optional<std::size_t> from_head = std::nullopt;   ///< none: the same head
  /// That the keys carry, as of a row that was not turned by RoPE; none: that of their place.
  std::optional<std::size_t> key_position = std::nullopt;
};

/// The rows of one text. A copy is a fork.
class Rows {
 public:
  /// Requires  `tables` outlives the rows.
  explicit Rows(const Tables& tables) : Rows(tables, tables.shape().window) {}
  /// With another window than the model has, as a wrong cache would.
  Rows(const Tables& tables, std::optional<std::size_t> window)
      : tables_(&tables), window_(window) {}
  /// The first `count` rows of `from`.
  Rows(const Rows& from, std::size_t count);

  /// Appends the rows of `tokens`; adds the cells that they read to `coverage`.
  /// Requires  tokens < Shape::kVocabulary.
  void extend(std::span<const Token> tokens, Coverage* coverage = nullptr);
  /// The token that follows the last row, by what this row read when it was appended.
  /// Requires  a row.
  [[nodiscard]] Token next() const;
  /// The bits of the value of next() that are certain: all of them, unless a fault made an unknown
  /// read, or one that is neither clearly set nor clearly cleared.
  /// Requires  a row.
  [[nodiscard]] Token certain_bits() const;
  /// Appends next() so many times. Returns  the appended tokens.
  std::vector<Token> generate(std::size_t count, Coverage* coverage = nullptr);

  /// Keeps the rows of the first `count` positions.
  void crop(std::size_t count);
  /// Removes the rows of positions [first, last); later rows move down to close the gap.
  /// Requires  first <= last <= size().
  void shift_out(std::size_t first, std::size_t last);
  /// Loses the rows of positions [first, last); all other rows keep their positions.
  /// Requires  first <= last <= size().
  void evict(std::size_t first, std::size_t last);
  /// Puts a part of row `source` of `from` into row `position`.
  /// Requires  both rows exist.
  void overwrite(std::size_t position, const Rows& from, std::size_t source, const Part& part = {});

  /// The number of positions.
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  /// Requires  position < size().
  [[nodiscard]] Token token(std::size_t position) const { return rows_[position].token; }

 private:
  struct Row {
    PerLayer<PerHead<Read>> values;
    PerLayer<PerHead<Bit>> sign;  // in K at the position of the row; 0: no head finds it there
    PerHead<Read> last_reads;
    Token token;
    bool sees_sink;
    bool has_stray;
  };
  /// A cell whose key carries another position than that of its place.
  struct Stray {
    std::size_t place;
    std::size_t layer;
    std::size_t head;
    Bit sign;
  };
  [[nodiscard]] bool sees(std::size_t position, std::size_t place) const;
  [[nodiscard]] Read read(std::size_t layer, std::size_t head, std::size_t position,
                          std::size_t distance) const;
  void lose_keys(std::size_t place, const Part& part);

  const Tables* tables_;
  std::optional<std::size_t> window_;
  std::vector<Row> rows_;
  std::vector<std::size_t> sinks_;            // their places, in order
  std::multimap<std::size_t, Stray> strays_;  // by position
};

}  // namespace kvo::probe
