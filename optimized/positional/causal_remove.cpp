// remove: what leaves, what moves, and the keys that the shift function moves (OK-59 to OK-68).
#include <algorithm>
#include <utility>

#include "optimized/positional/causal_cache.hpp"

namespace kvo::optimized {

using positional::kMaxPosition;

Status PositionalCausalCache::prepare_remove(std::int64_t sequence, std::int32_t begin,
                                             std::int32_t end) {
  if (documented() && begin >= end) {  // OK-68
    if (begin > end) return fail(Code::kOutOfRange, "begin > end");
    return {};
  }
  SequenceCells* cells = find(sequence);
  if (cells == nullptr) return {};  // OK-61
  reserve_touch();
  prepared_ =
      Removal{.name = sequence, .cells = cells, .begin = begin, .end = end, .limit = std::nullopt};
  Removal& removal = *std::get_if<Removal>(&prepared_);
  if (end == kMaxPosition) return {};
  if (Status fit = refuse_move(*cells, removal); !fit) return fit;
  Status done = documented() ? prepare_documented(removal) : prepare_original(removal);
  if (Status room = store_->reserve_keys(); !room) {
    cancel();  // in the original an error would have an effect
    return room;
  }
  return done;
}

Status PositionalCausalCache::refuse_move(const SequenceCells& cells,
                                          const Removal& removal) const {
  const auto later = cells.from(removal.end);
  if (later.empty()) return {};
  const std::int64_t offset = std::int64_t{removal.begin} - removal.end;
  if (later.front().position + offset >= 0 && later.back().position + offset < kMaxPosition)
    return {};
  return fail(Code::kPrecondition, "begin, end: positions leave their domain");
}

Status PositionalCausalCache::prepare_documented(Removal& removal) {
  const auto later = removal.cells->from(removal.end);
  if (later.empty()) return {};  // OK-66
  const auto shared = [&](const HeldCell& held) { return size_.pool.owners(held.cell) > 1; };
  if (std::ranges::any_of(later, shared)) return positional::shared_later_cell();  // OK-67
  if (!options_.shift) return fail(Code::kNotSupported, "no shift function");      // OK-66
  if (bounded() && !resumable_behind(removal))                                     // OK-60
    return fail(Code::kNotSupported, "the window would be incomplete");
  return shift_keys(removal);
}

Status PositionalCausalCache::prepare_original(Removal& removal) {
  const auto later = removal.cells->from(removal.end);
  for (const HeldCell& held : later)  // OK-67: the scan is by cell
    if (size_.pool.owners(held.cell) > 1)
      removal.limit = std::min(held.cell, removal.limit.value_or(held.cell));
  if (removal.limit) return positional::shared_later_cell();
  const auto held = removal.cells->held();
  const bool nothing_left = later.empty() && removal.begin <= held.front().position;
  if (nothing_left) return {};                                                 // OK-61
  if (!options_.shift) return fail(Code::kNotSupported, "no shift function");  // OK-66
  return shift_keys(removal);
}

bool PositionalCausalCache::resumable_behind(const Removal& removal) const {
  const std::int64_t offset = std::int64_t{removal.begin} - removal.end;
  const auto later = removal.cells->from(removal.end);
  const std::int64_t last = later.back().position + offset;
  const std::int64_t first = std::max<std::int64_t>(0, last + 1 - size_.window);
  // Positions from begin on are those that move there.
  const std::int64_t moved = std::max<std::int64_t>(first, removal.begin);
  return removal.cells->covers(moved - offset, last + 1 - offset) &&
         removal.cells->covers(first, moved);
}

Status PositionalCausalCache::shift_keys(const Removal& removal) {
  const auto later = removal.cells->from(removal.end);
  if (later.empty()) return {};
  std::vector<HeldCell> moved(later.begin(), later.end());
  std::ranges::sort(moved, {}, &HeldCell::cell);
  const std::int64_t offset = std::int64_t{removal.begin} - removal.end;
  // OK-65: groups are counted from the lowest cell that is left.
  CellRange left;
  left.extend(moved.front().cell);
  for (const HeldCell& held : removal.cells->held())
    if (held.position < std::min(removal.begin, removal.end)) left.extend(held.cell);
  for (std::size_t from = 0, to = 0; from < moved.size(); from = to) {
    const std::int64_t group = (moved[from].cell - left.low) / size_.max_batch;
    while (to < moved.size() && (moved[to].cell - left.low) / size_.max_batch == group) ++to;
    // The original stores what lies between them anew.
    const KeyGroup together{.moved = std::span(moved).subspan(from, to - from),
                            .offset = static_cast<std::int32_t>(offset),
                            .all_converted = !documented()};
    if (Status done = store_->prepare_keys(together); !done) return done;
  }
  return {};
}

void PositionalCausalCache::finish(Removal& removal) noexcept {
  store_->commit_keys();
  if (removal.cells == nullptr) return;
  removal.cells->cut(removal.begin, removal.end, removal.limit, size_.pool);
  if (removal.cells->empty()) {
    forget(removal.name);
  } else {
    touch(removal.name, *removal.cells);
  }
}

// NOLINTNEXTLINE(bugprone-exception-escape)
void PositionalCausalCache::commit_unwound(const positional::Batch& batch) noexcept {
  if (!next_.reserve) insert_batch();
  prepared_.emplace<std::monostate>();
  for (std::size_t i = 0; i < batch.positions.size(); ++i) {
    SequenceCells* cells = find(batch.sequences[i]);
    if (cells == nullptr) continue;
    cells->cut(batch.positions[i], kMaxPosition, std::nullopt, size_.pool);
    if (cells->empty()) forget(batch.sequences[i]);
  }
}

}  // namespace kvo::optimized
