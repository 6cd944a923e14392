#include "optimized/cells/stream_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reference/contract/values/check.hpp"

namespace kvo::optimized {

using cells::is_int32;

std::size_t OwnedCells::index_of(std::int64_t pos) const noexcept {
  const auto held = all();
  // Most ask for what comes next, or for everything.
  if (held.empty() || held.back().pos < pos) return held.size();
  if (held.front().pos >= pos) return 0;
  const auto found = std::ranges::lower_bound(
      held, pos, {}, [](const CellAt& cell) { return std::int64_t{cell.pos}; });
  return static_cast<std::size_t>(found - held.begin());
}

void OwnedCells::grow(std::size_t more) {
  if (first_ >= more && first_ >= size()) {
    // Half and more is given up: the place is used again, and each cell moves once for that.
    cells_.erase(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(first_));
  } else {
    std::vector<CellAt> larger;
    constexpr std::size_t kFew = 8;  // a line of the processor's caches
    larger.reserve(std::max({size() + more, size() * 2, kFew}));
    larger.assign(all().begin(), all().end());
    cells_.swap(larger);
  }
  first_ = 0;
}

void OwnedCells::insert(CellAt cell) noexcept {
  if ((empty() || cells_.back() < cell) && cells_.size() < cells_.capacity()) {
    cells_.push_back(cell);
    return;
  }
  const auto begin = cells_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto place = std::lower_bound(begin, cells_.end(), cell);
  const bool no_room = cells_.size() == cells_.capacity();
  if (first_ > 0 && (no_room || place - begin < cells_.end() - place)) {
    std::move(begin, place, begin - 1);
    *(place - 1) = cell;
    --first_;
  } else {
    cells_.insert(place, cell);
  }
}

void OwnedCells::erase(CellAt cell) noexcept {
  const auto held = all();
  const auto found = std::ranges::lower_bound(held, cell);
  KVO_CHECK(found != held.end() && *found == cell);
  const auto index = static_cast<std::size_t>(found - held.begin());
  erase(index, index + 1);
}

void OwnedCells::erase(std::size_t begin, std::size_t end) noexcept {
  const auto first = cells_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto low = first + static_cast<std::ptrdiff_t>(begin);
  const auto high = first + static_cast<std::ptrdiff_t>(end);
  if (low - first < cells_.end() - high) {
    std::move_backward(first, low, high);
    first_ += end - begin;
  } else {
    cells_.erase(low, high);
  }
  if (empty()) clear();
}

void OwnedCells::clear() noexcept {
  cells_.clear();
  first_ = 0;
}

void OwnedCells::settle() noexcept {
  const auto held = unsettled();
  if (!std::ranges::is_sorted(held)) std::ranges::sort(held);
}

void OwnedCells::copy(const OwnedCells& other) {
  cells_.reserve(other.size());
  cells_.assign(other.all().begin(), other.all().end());
  first_ = 0;
}

bool OwnedCells::sorted() const {
  return std::ranges::adjacent_find(all(), std::greater_equal()) == all().end();
}

namespace {

constexpr std::int64_t kNothingProtected = std::numeric_limits<std::int64_t>::min();

}  // namespace

StreamTable::StreamTable(std::int64_t cells, const Sequences& sequences,
                         const cells::Window& window)
    : cells_(static_cast<std::size_t>(cells)),
      protected_(
          window.type == cells::WindowType::kNone ? 0 : static_cast<std::size_t>(sequences.count),
          kNothingProtected),
      range_(sequences),
      window_(window),
      windowed_(!protected_.empty()),
      used_(cells),
      usable_(cells, true),
      shifted_(cells) {}

template <class See>
void StreamTable::each_owner(std::int64_t cell, See&& see) const {
  const std::int32_t owner = at(cell).owner;
  if (owner == kSeveral) {
    set_of(cell).each(see);
  } else if (owner != kNoOwner) {
    see(owner);
  }
}

OwnerSet StreamTable::owners(std::int64_t cell) const {
  OwnerSet set;
  each_owner(cell, [&](std::int32_t seq) { set.insert(seq); });
  return set;
}

cells::ShownTable StreamTable::shown() const {
  cells::ShownTable table{.used = used(), .used_end = used_end(), .has_shift = has_shift_};
  if (table.used > 0) table.used_min = used_.first();
  table.cells.reserve(static_cast<std::size_t>(table.used));
  for (std::int64_t i = used_.next(0); i < size(); i = used_.next(i + 1)) {
    if (pos(i) == -1) continue;
    cells::ShownCell& cell = table.cells.emplace_back();
    cell.cell = i;
    cell.pos = pos(i);
    cell.shift = shift(i);
    each_owner(i, [&](std::int32_t seq) { cell.seqs.push_back(seq); });
  }
  return table;
}

void StreamTable::refresh(std::int32_t cell) noexcept {
  const Cell& its_cell = at(cell);
  bool usable = its_cell.pos == -1;
  if (windowed_ && its_cell.owner >= 0)
    usable |= its_cell.pos < protected_[static_cast<std::size_t>(its_cell.owner - range_.first)];
  usable_.put(cell, usable);
}

void StreamTable::take(std::int32_t cell, std::int32_t pos, std::int32_t seq) noexcept {
  Cell& taken = at(cell);
  taken.pos = pos;
  taken.owner = seq;
  used_.insert(cell);
  its(seq).insert({pos, cell});
  refresh(cell);
}

void StreamTable::set_pos(std::int32_t cell, std::int32_t pos) noexcept {
  at(cell).pos = pos;
  used_.insert(cell);
  ++ownerless_;
  refresh(cell);
}

void StreamTable::set_shift(std::int32_t cell, std::int32_t shift) noexcept {
  at(cell).shift = shift;
  shifted_.put(cell, shift != 0);
}

void StreamTable::join_owner(std::int32_t cell, std::int32_t seq) noexcept {
  Cell& joined = at(cell);
  if (joined.owner == kNoOwner) {
    joined.owner = seq;
    --ownerless_;
  } else {
    if (joined.owner != kSeveral) {
      set_of(cell) = {};
      set_of(cell).insert(joined.owner);
      joined.owner = kSeveral;
    }
    set_of(cell).insert(seq);
  }
  refresh(cell);
}

void StreamTable::add_owner(std::int32_t cell, std::int32_t seq) noexcept {
  join_owner(cell, seq);
  its(seq).insert({pos(cell), cell});
}

void StreamTable::forget(std::int32_t cell) noexcept {
  Cell& emptied = at(cell);
  emptied.pos = -1;
  emptied.owner = kNoOwner;
  used_.erase(cell);
  usable_.insert(cell);
}

bool StreamTable::drop_owner(std::int32_t cell, std::int32_t seq) noexcept {
  Cell& left = at(cell);
  if (left.owner == kSeveral) {
    OwnerSet& set = set_of(cell);
    set.erase(seq);
    if (set.count() == 1) left.owner = set.first();
    refresh(cell);
    return false;
  }
  forget(cell);
  if (left.shift != 0) set_shift(cell, 0);
  return true;
}

bool StreamTable::remove_owner(std::int32_t cell, std::int32_t seq) noexcept {
  its(seq).erase({pos(cell), cell});
  return drop_owner(cell, seq);
}

void StreamTable::move(std::int32_t cell, std::int32_t to, std::int32_t shift) noexcept {
  each_owner(cell, [&](std::int32_t seq) {
    its(seq).erase({pos(cell), cell});
    its(seq).insert({to, cell});
  });
  at(cell).pos = to;
  set_shift(cell, shift);
  has_shift_ = true;
  refresh(cell);
}

void StreamTable::vacate(std::int32_t cell) noexcept {
  if (!used_.has(cell)) return;
  if (at(cell).owner == kNoOwner) --ownerless_;
  each_owner(cell, [&](std::int32_t seq) { its(seq).erase({pos(cell), cell}); });
  forget(cell);
}

void StreamTable::remove(std::int32_t cell) noexcept {
  vacate(cell);
  set_shift(cell, 0);
}

void StreamTable::reset() noexcept {
  for (std::int64_t i = used_.next(0); i < size(); i = used_.next(i + 1)) {
    at(i).owner = kNoOwner;
    forget(static_cast<std::int32_t>(i));
  }
  for (std::int32_t seq = range_.first; seq < sequences_end(); ++seq)
    if (!of(seq).empty()) its(seq).clear();
  ownerless_ = 0;
  reset_shift();
}

void StreamTable::reset_shift() noexcept {
  for (std::int64_t i = shifted_.next(0); i < size(); i = shifted_.next(i + 1))
    set_shift(static_cast<std::int32_t>(i), 0);
  has_shift_ = false;
}

std::int64_t StreamTable::protected_from(std::int32_t seq) const {
  if (of(seq).empty()) return kNothingProtected;
  const std::int64_t next = std::int64_t{of(seq).max()} + 1;
  switch (window_.type) {
    case cells::WindowType::kNone:
      return kNothingProtected;
    case cells::WindowType::kStandard:
      return next - window_.size + 1;
    case cells::WindowType::kChunked:
      return next / window_.size * window_.size;
    case cells::WindowType::kSymmetric:
      return next - window_.size / 2;
  }
  return kNothingProtected;
}

void StreamTable::catch_up() noexcept {
  if (!windowed_) return;
  stale_.each([&](std::int32_t seq) {
    std::int64_t& known = protected_[static_cast<std::size_t>(seq - range_.first)];
    const std::int64_t from = known;
    known = protected_from(seq);
    // Cells between the two are those whose bit is wrong.
    for (const CellAt& each : of(seq).between(std::min(from, known), std::max(from, known)))
      refresh(each.cell);
  });
  stale_ = {};
}

std::int64_t StreamTable::usable() noexcept {
  catch_up();
  return usable_.count();
}

bool StreamTable::search(std::int64_t start, std::span<std::int32_t> slots) noexcept {
  if (usable() < std::ssize(slots)) return false;
  std::int64_t cell = start;
  for (std::int32_t& slot : slots) {
    cell = usable_.next(cell);
    if (cell == size()) cell = usable_.next(0);
    slot = static_cast<std::int32_t>(cell++);
  }
  return true;
}

bool StreamTable::search_adjacent(std::int64_t start, std::span<std::int32_t> slots) noexcept {
  catch_up();
  const std::int64_t n = std::ssize(slots);
  if (n > size()) return false;
  for (std::int64_t tested = 0; tested < size();) {
    if (start + n > size()) {
      tested += size() - start;
      start = 0;
    }
    const std::int64_t end = usable_.next_missing(start, start + n);
    if (end == start + n) {
      for (std::int64_t i = 0; i < n; ++i)
        slots[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(start + i);
      return true;
    }
    tested += end + 1 - start;
    start = end + 1;
  }
  return false;
}

std::optional<std::string> StreamTable::broken() const {
  if (!used_.consistent() || !usable_.consistent() || !shifted_.consistent())
    return "a bitmap contradicts itself";
  std::vector<std::size_t> owned(sequences_.size());
  std::int64_t ownerless = 0;
  for (std::int64_t i = 0; i < size(); ++i) {
    const Cell& cell = at(i);
    const bool used = used_.has(i);
    if (!used && (cell.pos != -1 || cell.owner != kNoOwner))
      return fmt::format("cell {} is not used and has position {}", i, cell.pos);
    if (shifted_.has(i) != (cell.shift != 0)) return fmt::format("cell {}: shift unnoticed", i);
    if (used && cell.owner == kNoOwner) ++ownerless;
    if (cell.owner == kSeveral && set_of(i).count() < 2)
      return fmt::format("cell {} has not several owners", i);
    each_owner(i, [&](std::int32_t seq) { ++owned[static_cast<std::size_t>(seq - range_.first)]; });
    const bool open = windowed_ && cell.owner >= 0 &&
                      cell.pos < protected_[static_cast<std::size_t>(cell.owner - range_.first)];
    if (usable_.has(i) != (cell.pos == -1 || open))
      return fmt::format("cell {}: whether it is usable is wrong", i);
  }
  if (ownerless != ownerless_) return "cells without owners are miscounted";
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const std::int32_t seq = range_.first + static_cast<std::int32_t>(i);
    if (sequences_[i].size() != owned[i] || !sequences_[i].sorted())
      return fmt::format("sequence {} has lost count or order", seq);
    for (const CellAt& each : sequences_[i].all())
      if (!owns(each.cell, seq) || pos(each.cell) != each.pos)
        return fmt::format("sequence {} lists cell {} wrongly", seq, each.cell);
    if (windowed_ && !stale_.has(seq) && protected_[i] != protected_from(seq))
      return fmt::format("the window of sequence {} is out of date", seq);
  }
  return std::nullopt;
}

// ---- operations on the cells of a sequence by range of positions ----

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

template <class NewPos>
std::int32_t StreamTable::move_range(std::int32_t seq, const cells::Range& range, bool turn_back,
                                     NewPos&& new_pos) noexcept {
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
    const std::int32_t pos = new_pos(each.pos);
    if (pos < 0) {
      // Those that fall below 0 come first.
      forget(each.cell);
      set_shift(each.cell, 0);
      lowest = std::min(lowest, each.cell);
      ++emptied;
      continue;
    }
    set_shift(each.cell, cell.shift + (turn_back ? each.pos - pos : pos - each.pos));
    cell.pos = each.pos = pos;
    if (windowed_) refresh(each.cell);
  }
  its(seq).erase(low, low + emptied);
  its(seq).settle();
  others.erase(seq);
  others.each([&](std::int32_t other) { reread(other); });
  return lowest;
}

std::int32_t StreamTable::add(std::int32_t seq, const cells::Range& range,
                              std::int32_t delta) noexcept {
  return move_range(seq, range, false, [&](std::int32_t pos) { return pos + delta; });
}

void StreamTable::divide(std::int32_t seq, const cells::Range& range, std::int32_t d,
                         bool turn_back) noexcept {
  move_range(seq, range, turn_back, [&](std::int32_t pos) { return pos / d; });
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
