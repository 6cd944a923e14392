#include "optimized/cells/stream_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reference/contract/values/check.hpp"

namespace kvo::optimized {
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

}  // namespace kvo::optimized
