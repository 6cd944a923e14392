// reference/cells/plain_cells.hpp: cells as a list, and what is done to one of them (LC-2 to
// LC-20).
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "reference/cells/table.hpp"

namespace kvo::cells {

using Owners = std::bitset<static_cast<std::size_t>(kSequences)>;

[[nodiscard]] Owners owner(std::int32_t seq);
/// Ascending.
[[nodiscard]] std::vector<std::int32_t> list_of(const Owners& owners);

struct PlainCell {
  bool used = false;  ///< with a position, or taken by a token at -1 (LC-80)
  std::int32_t pos = -1;
  std::int32_t shift = 0;
  Owners owners = {};
  Extra extra = {};

  [[nodiscard]] bool empty() const { return pos == -1; }
  [[nodiscard]] bool has(std::int32_t seq) const {
    return owners.test(static_cast<std::size_t>(seq));
  }
};

/// A table of cells. Cells that calls name must exist.
struct PlainCells {
  std::vector<PlainCell> cells = {};
  bool has_shift = false;

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(cells.size()); }
  [[nodiscard]] PlainCell& at(std::int64_t i) { return cells[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const PlainCell& at(std::int64_t i) const {
    return cells[static_cast<std::size_t>(i)];
  }

  [[nodiscard]] Extremes extremes(std::int32_t seq) const;
  /// Used cells, and the end of the last one (LC-3). @{
  [[nodiscard]] std::int64_t used() const;
  [[nodiscard]] std::int64_t used_end() const;
  /// @}
  [[nodiscard]] ShownTable shown() const;

  /// All cells as at first (LC-5).
  void reset();
  /// LC-12; whether the cell was emptied. Requires  seq is an owner.
  bool remove_owner(std::int64_t i, std::int32_t seq);
  /// LC-13; whether the cell was emptied.
  bool keep_owner(std::int64_t i, std::int32_t seq);
  /// LC-14.
  void remove(std::int64_t i) { at(i) = {}; }
  /// LC-15; whether the cell was emptied.
  bool move(std::int64_t i, std::int32_t delta, bool keep_extra);
  /// LC-16.
  void divide(std::int64_t i, std::int32_t d, bool turn_back);
  /// LC-17.
  void reset_shift();
};

}  // namespace kvo::cells
