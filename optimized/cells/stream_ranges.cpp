// Operations on the cells of a sequence by range of positions.
#include <algorithm>

#include "optimized/cells/stream_table.hpp"

namespace kvo::optimized {

using cells::is_int32;

std::int32_t StreamTable::remove_range(std::int32_t seq, std::int64_t begin,
                                       std::int64_t end) noexcept {
  if (of(seq).empty()) return kNone;
  const std::size_t low = of(seq).index_of(begin);
  const std::size_t high = end <= begin ? low : of(seq).index_of(end);
  if (low == high) return kNone;
  std::int32_t lowest = kNone;
  for (const CellAt& each : of(seq).all().subspan(low, high - low))
    if (drop_owner(each.cell, seq)) lowest = std::min(lowest, each.cell);
  its(seq).erase(low, high);
  return lowest;
}

std::int32_t StreamTable::remove_range(std::int64_t begin, std::int64_t end) noexcept {
  std::int32_t lowest = kNone;
  if (end <= begin) return lowest;
  for (std::int32_t seq = range_.first; seq < sequences_end(); ++seq)
    lowest = std::min(lowest, remove_range(seq, begin, end));
  if (ownerless_ == 0) return lowest;
  for (std::int64_t i = used_.next(0); i < size(); i = used_.next(i + 1)) {
    if (at(i).owner != kNoOwner || pos(i) < begin || pos(i) >= end) continue;
    remove(static_cast<std::int32_t>(i));
    lowest = std::min(lowest, static_cast<std::int32_t>(i));
  }
  return lowest;
}

std::int32_t StreamTable::keep(std::int32_t seq) noexcept {
  std::int32_t lowest = kNone;
  for (std::int32_t other = range_.first; other < sequences_end(); ++other) {
    if (other == seq || of(other).empty()) continue;
    for (const CellAt& each : of(other).all())
      if (drop_owner(each.cell, other)) lowest = std::min(lowest, each.cell);
    its(other).clear();
  }
  return lowest;
}

bool StreamTable::shares(std::int32_t seq, const cells::Range& range) const {
  return std::ranges::any_of(of(seq).between(range.begin, range.end),
                             [&](const CellAt& each) { return at(each.cell).owner == kSeveral; });
}

void StreamTable::share(std::int32_t src, std::int32_t dst, const cells::Range& range) {
  const auto shared = of(src).between(range.begin, range.end);
  if (shared.empty()) return;
  reserve(dst, shared.size());
  OwnedCells& target = its(dst);
  for (const CellAt& each : shared) {
    if (owns(each.cell, dst)) continue;
    join_owner(each.cell, dst);
    target.append(each);
  }
  target.settle();
}

bool StreamTable::can_add(std::int32_t seq, const cells::Range& range, std::int32_t delta) const {
  const std::int64_t by = delta;
  return std::ranges::all_of(of(seq).between(range.begin, range.end), [&](const CellAt& each) {
    return is_int32(each.pos + by) && is_int32(shift(each.cell) + by);
  });
}

bool StreamTable::can_divide(std::int32_t seq, const cells::Range& range, std::int32_t d) const {
  return std::ranges::all_of(of(seq).between(range.begin, range.end), [&](const CellAt& each) {
    const std::int64_t fall = d < 1 ? 0 : each.pos - each.pos / d;
    return d >= 1 && is_int32(shift(each.cell) + fall) && is_int32(shift(each.cell) - fall);
  });
}

void StreamTable::reread(std::int32_t seq) noexcept {
  OwnedCells& held = its(seq);
  const auto cells = held.unsettled();
  std::size_t kept = 0;
  for (const CellAt& each : cells)
    if (owns(each.cell, seq)) cells[kept++] = {pos(each.cell), each.cell};
  held.erase(kept, cells.size());
  held.settle();
}

std::int32_t StreamTable::add(std::int32_t seq, const cells::Range& range,
                              std::int32_t delta) noexcept {
  const std::size_t low = of(seq).index_of(range.begin);
  const std::size_t count = of(seq).between(range.begin, range.end).size();
  if (count == 0) return kNone;
  OwnerSet others;
  std::int32_t lowest = kNone;
  std::size_t emptied = 0;
  has_shift_ = true;
  const auto moved = its(seq).unsettled().subspan(low, count);
  for (CellAt& each : moved) {
    Cell& cell = at(each.cell);
    if (cell.owner == kSeveral) others.insert(set_of(each.cell));
    if (each.pos + delta < 0) {
      // Those that fall below 0 come first.
      forget(each.cell);
      set_shift(each.cell, 0);
      lowest = std::min(lowest, each.cell);
      ++emptied;
      continue;
    }
    each.pos += delta;
    cell.pos = each.pos;
    set_shift(each.cell, cell.shift + delta);
    if (windowed_) refresh(each.cell);
  }
  its(seq).erase(low, low + emptied);
  its(seq).settle();
  others.erase(seq);
  others.each([&](std::int32_t other) { reread(other); });
  return lowest;
}

void StreamTable::divide(std::int32_t seq, const cells::Range& range, std::int32_t d,
                         bool turn_back) noexcept {
  const std::size_t low = of(seq).index_of(range.begin);
  const std::size_t count = of(seq).between(range.begin, range.end).size();
  if (count == 0) return;
  OwnerSet others;
  has_shift_ = true;
  for (CellAt& each : its(seq).unsettled().subspan(low, count)) {
    Cell& cell = at(each.cell);
    if (cell.owner == kSeveral) others.insert(set_of(each.cell));
    const std::int32_t fall = each.pos - each.pos / d;
    each.pos -= fall;
    cell.pos = each.pos;
    set_shift(each.cell, turn_back ? cell.shift + fall : cell.shift - fall);
    if (windowed_) refresh(each.cell);
  }
  its(seq).settle();
  others.erase(seq);
  others.each([&](std::int32_t other) { reread(other); });
}

void StreamTable::copy(const StreamTable& from, std::int32_t src, std::int32_t dst) {
  reserve(dst, from.of(src).size());
  reset();
  its(dst).copy(from.of(src));
  for (const CellAt& each : of(dst).all()) {
    at(each.cell).pos = each.pos;
    at(each.cell).owner = dst;
    used_.insert(each.cell);
    if (from.shift(each.cell) != 0) {
      set_shift(each.cell, from.shift(each.cell));
      has_shift_ = true;
    }
    refresh(each.cell);
  }
}

}  // namespace kvo::optimized
