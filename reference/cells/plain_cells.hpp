// reference/cells/plain_cells.hpp: cells as a list, and what is done to one of them (LC-2 to
// LC-20).
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <vector>

#include "reference/cells/table.hpp"

namespace kvo::cells {

using Owners = std::bitset<static_cast<std::size_t>(kSequences)>;

[[nodiscard]] inline Owners owner(std::int32_t seq) {
  return Owners().set(static_cast<std::size_t>(seq));
}
/// Ascending.
[[nodiscard]] inline std::vector<std::int32_t> list_of(const Owners& owners) {
  std::vector<std::int32_t> list;
  for (std::size_t seq = owners._Find_first(); seq < owners.size(); seq = owners._Find_next(seq))
    list.push_back(static_cast<std::int32_t>(seq));
  return list;
}

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

  [[nodiscard]] Extremes extremes(std::int32_t seq) const {
    Extremes found;
    bool any = false;
    for (const PlainCell& cell : cells) {
      if (!cell.has(seq)) continue;
      found.min = any ? std::min<std::int64_t>(found.min, cell.pos) : cell.pos;
      found.max = std::max<std::int64_t>(found.max, cell.pos);
      any = true;
    }
    return found;
  }
  /// Used cells, and the end of the last one (LC-3). @{
  [[nodiscard]] std::int64_t used() const { return std::ranges::count_if(cells, &PlainCell::used); }
  [[nodiscard]] std::int64_t used_end() const {
    std::int64_t end = size();
    while (end > 0 && !at(end - 1).used) --end;
    return end;
  }
  /// @}
  [[nodiscard]] ShownTable shown() const {
    ShownTable table{.used = used(), .used_end = used_end(), .has_shift = has_shift};
    while (table.used_min < table.used_end && !at(table.used_min).used) ++table.used_min;
    for (std::int64_t i = 0; i < size(); ++i) {
      const PlainCell& cell = at(i);
      if (!cell.empty()) table.cells.push_back({i, cell.pos, cell.shift, list_of(cell.owners)});
    }
    return table;
  }

  /// All cells as at first (LC-5).
  void reset() {
    std::ranges::fill(cells, PlainCell());
    has_shift = false;
  }
  /// LC-12; whether the cell was emptied. Requires  seq is an owner.
  bool remove_owner(std::int64_t i, std::int32_t seq) {
    at(i).owners &= ~owner(seq);
    if (at(i).owners.any()) return false;
    remove(i);
    return true;
  }
  /// LC-13; whether the cell was emptied.
  bool keep_owner(std::int64_t i, std::int32_t seq) {
    if (at(i).owners.none()) return false;
    if (!at(i).has(seq)) {
      remove(i);
      return true;
    }
    at(i).owners = owner(seq);
    return false;
  }
  /// LC-14.
  void remove(std::int64_t i) { at(i) = {}; }
  /// LC-15; whether the cell was emptied.
  bool move(std::int64_t i, std::int32_t delta, bool keep_extra) {
    PlainCell& cell = at(i);
    has_shift = true;
    cell.pos += delta;
    cell.shift += delta;
    if (cell.pos >= 0) return false;
    const Extra extra = cell.extra;
    remove(i);
    if (keep_extra) cell.extra = extra;
    return true;
  }
  /// LC-16.
  void divide(std::int64_t i, std::int32_t d, bool turn_back) {
    PlainCell& cell = at(i);
    const std::int32_t fall = cell.pos - cell.pos / d;
    has_shift = true;
    cell.pos /= d;
    cell.shift += turn_back ? fall : -fall;
  }
  /// LC-17.
  void reset_shift() {
    for (PlainCell& cell : cells) cell.shift = 0;
    has_shift = false;
  }
};

}  // namespace kvo::cells
