#include "reference/cells/plain_cells.hpp"

#include <algorithm>

namespace kvo::cells {

Owners owner(std::int32_t seq) {
  return Owners().set(static_cast<std::size_t>(seq));
}

std::vector<std::int32_t> list_of(const Owners& owners) {
  std::vector<std::int32_t> list;
  for (std::size_t seq = owners._Find_first(); seq < owners.size(); seq = owners._Find_next(seq))
    list.push_back(static_cast<std::int32_t>(seq));
  return list;
}

Extremes PlainCells::extremes(std::int32_t seq) const {
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

std::int64_t PlainCells::used() const {
  return std::ranges::count_if(cells, &PlainCell::used);
}

std::int64_t PlainCells::used_end() const {
  std::int64_t end = size();
  while (end > 0 && !at(end - 1).used) --end;
  return end;
}

ShownTable PlainCells::shown() const {
  ShownTable table{.used = used(), .used_end = used_end(), .has_shift = has_shift};
  while (table.used_min < table.used_end && !at(table.used_min).used) ++table.used_min;
  for (std::int64_t i = 0; i < size(); ++i) {
    const PlainCell& cell = at(i);
    if (!cell.empty()) table.cells.push_back({i, cell.pos, cell.shift, list_of(cell.owners)});
  }
  return table;
}

void PlainCells::reset() {
  std::ranges::fill(cells, PlainCell());
  has_shift = false;
}

bool PlainCells::remove_owner(std::int64_t i, std::int32_t seq) {
  at(i).owners &= ~owner(seq);
  if (at(i).owners.any()) return false;
  remove(i);
  return true;
}

bool PlainCells::keep_owner(std::int64_t i, std::int32_t seq) {
  if (at(i).owners.none()) return false;
  if (!at(i).has(seq)) {
    remove(i);
    return true;
  }
  at(i).owners = owner(seq);
  return false;
}

bool PlainCells::move(std::int64_t i, std::int32_t delta, bool keep_extra) {
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

void PlainCells::divide(std::int64_t i, std::int32_t d, bool turn_back) {
  PlainCell& cell = at(i);
  const std::int32_t fall = cell.pos - cell.pos / d;
  has_shift = true;
  cell.pos /= d;
  cell.shift += turn_back ? fall : -fall;
}

void PlainCells::reset_shift() {
  for (PlainCell& cell : cells) cell.shift = 0;
  has_shift = false;
}

}  // namespace kvo::cells
