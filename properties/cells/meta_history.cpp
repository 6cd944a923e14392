// The history of a table of cells.
//
// Known are position, shift, owners and extra data of every cell, from what was set, moved,
// divided, copied and pasted; each answer must be what they say (LC-2 to LC-23). The quirks of
// profile original are followed.
#include <algorithm>
#include <set>
#include <vector>

#include "properties/cells/half_history.hpp"
#include "properties/cells/history.hpp"
#include "properties/runner/oracle.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::cells {
namespace {

struct TableCell {
  bool used = false;
  std::int64_t pos = -1;
  std::int64_t shift = 0;
  std::set<std::int32_t> owners = {};
  Extra extra = {};

  [[nodiscard]] bool has(std::int64_t seq) const {
    return used && owners.contains(static_cast<std::int32_t>(seq));
  }
};

// The cells of a copy or table as they are shown.
std::vector<ShownCell> shown_cells(const std::vector<TableCell>& cells) {
  std::vector<ShownCell> all;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].used)
      all.push_back({.cell = static_cast<std::int64_t>(i),
                     .pos = cells[i].pos,
                     .shift = cells[i].shift,
                     .seqs = {cells[i].owners.begin(), cells[i].owners.end()}});
  return all;
}

bool is_same(const std::vector<ShownCell>& a, const std::vector<ShownCell>& b) {
  return std::ranges::equal(a, b, [](const ShownCell& one, const ShownCell& other) {
    return one.cell == other.cell && one.pos == other.pos && one.shift == other.shift &&
           one.seqs == other.seqs;
  });
}

class MetaHistory final : public Oracle {
 public:
  MetaHistory(std::int64_t size, QuirkSet<Quirk> quirks) : size_(size), quirks_(quirks) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.unsupported) return words;
    if (seen.error) return skip();
    visit_op(MetaOps(), op, [&](const auto& operation) { words = observe(operation, seen); });
    return judged(words);
  }

 private:
  // ---- What changes: the operations have succeeded ----

  Words observe(const NewTable& /*op*/, const Observation& /*seen*/) {
    copies_.clear();
    return empty_all(size_);
  }
  Words observe(const ResetTable& /*op*/, const Observation& /*seen*/) {
    return empty_all(std::ssize(cells_));
  }
  Words observe(const Resize& op, const Observation& /*seen*/) { return empty_all(op.n); }
  Words observe(const ResetShift& /*op*/, const Observation& /*seen*/) {
    for (TableCell& cell : cells_) cell.shift = 0;
    has_shift_ = false;
    return std::nullopt;
  }
  Words observe(const PosSet& op, const Observation& /*seen*/) {
    at(op.cell).used = true;
    at(op.cell).pos = op.pos;
    return std::nullopt;
  }
  Words observe(const OwnerAdd& op, const Observation& /*seen*/) {
    at(op.cell).owners.insert(static_cast<std::int32_t>(op.seq));
    return std::nullopt;
  }
  Words observe(const OwnerRm& op, const Observation& seen) {
    at(op.cell).owners.erase(static_cast<std::int32_t>(op.seq));
    const bool emptied = at(op.cell).owners.empty();
    if (emptied) at(op.cell) = {};
    return must_be(emptied, seen.as<Emptied>().emptied);
  }
  Words observe(const OwnerKeep& op, const Observation& seen) {
    TableCell& cell = at(op.cell);
    const bool emptied = cell.used && !cell.owners.empty() && !cell.has(op.seq);
    if (emptied) cell = {};
    if (cell.has(op.seq)) cell.owners = {static_cast<std::int32_t>(op.seq)};
    return must_be(emptied, seen.as<Emptied>().emptied);
  }
  Words observe(const CellRm& op, const Observation& /*seen*/) {
    at(op.cell) = {};
    return std::nullopt;
  }
  // The key is to be turned by as much as its position moves (LC-15, LC-16).
  Words observe(const PosAdd& op, const Observation& seen) {
    TableCell& cell = at(op.cell);
    cell.pos += op.delta;
    cell.shift += op.delta;
    has_shift_ = true;
    const bool emptied = cell.pos < 0;
    if (emptied)
      cell = {.extra = quirks_.has(Quirk::kExtraOutlivesPosition) ? cell.extra : Extra()};
    return must_be(emptied, seen.as<Emptied>().emptied);
  }
  Words observe(const PosDiv& op, const Observation& /*seen*/) {
    TableCell& cell = at(op.cell);
    const std::int64_t moved = cell.pos / op.d - cell.pos;
    cell.pos += moved;
    cell.shift += quirks_.has(Quirk::kDivisionTurnsBack) ? -moved : moved;
    has_shift_ = true;
    return std::nullopt;
  }
  Words observe(const ExtSet& op, const Observation& /*seen*/) {
    at(op.cell).extra = {op.x, op.y, op.token};
    return std::nullopt;
  }

  // ---- Copies ----

  Words observe(const CopyCells& op, const Observation& seen) {
    std::vector<TableCell>& copy = copies_.emplace_back();
    if (op.cells)
      for (const std::int64_t cell : *op.cells) copy.push_back(at(cell));
    else
      for (std::int64_t i = 0; i < op.n.value_or(0); ++i)
        copy.push_back(at(op.begin.value_or(0) + i));
    for (TableCell& cell : copy) cell.shift = 0;
    return must_be(std::ssize(copies_) - 1, seen.as<CopyCells::Returns>().handle);
  }
  Words observe(const PasteCells& op, const Observation& /*seen*/) {
    const std::vector<TableCell>& copy = copies_[static_cast<std::size_t>(op.handle)];
    for (std::size_t i = 0; i < copy.size(); ++i) {
      TableCell& to =
          at(op.cells ? (*op.cells)[i] : op.begin.value_or(0) + static_cast<std::int64_t>(i));
      const std::int64_t shift = to.shift;
      to = copy[i];
      to.shift = shift;
    }
    return std::nullopt;
  }
  Words observe(const RereadCopy& op, const Observation& seen) {
    const auto& shown = seen.as<ShownTable>();
    if (!is_same(shown.cells, shown_cells(copies_[static_cast<std::size_t>(op.handle)])))
      return "a copy does not hold what was copied";
    return quirks_.has(Quirk::kCopyCountsNothing) ? std::nullopt
                                                  : HalfHistory::wrong_figures({shown});
  }

  // ---- What is asked ----

  Words observe(const Size& /*op*/, const Observation& seen) {
    return must_be(std::ssize(cells_), seen.as<Value>().value);
  }
  Words observe(const IsEmpty& op, const Observation& seen) {
    return must_be(!at(op.cell).used, seen.as<YesNo>().value);
  }
  Words observe(const SeqCount& op, const Observation& seen) {
    return must_be(std::ssize(at(op.cell).owners), seen.as<Value>().value);
  }
  Words observe(const SeqHas& op, const Observation& seen) {
    return must_be(at(op.cell).has(op.seq), seen.as<YesNo>().value);
  }
  Words observe(const SeqGet& op, const Observation& seen) {
    return must_be(true, at(op.cell).has(seen.as<Value>().value));
  }
  Words observe(const PosGet& op, const Observation& seen) {
    return must_be(at(op.cell).pos, seen.as<Value>().value);
  }
  Words observe(const GetShift& op, const Observation& seen) {
    return must_be(at(op.cell).shift, seen.as<Value>().value);
  }
  Words observe(const PosIn& op, const Observation& seen) {
    const TableCell& cell = at(op.cell);
    const bool counts = cell.used || quirks_.has(Quirk::kEmptyIsMinusOne);
    return must_be(counts && op.p0 <= cell.pos && cell.pos < op.p1, seen.as<YesNo>().value);
  }
  Words observe(const SeqPosMin& op, const Observation& seen) {
    const auto entries = entries_of(op.seq);
    return must_be(entries.empty() ? -1 : entries.front().pos, seen.as<Value>().value);
  }
  Words observe(const SeqPosMax& op, const Observation& seen) {
    const auto entries = entries_of(op.seq);
    return must_be(entries.empty() ? -1 : entries.back().pos, seen.as<Value>().value);
  }
  Words observe(const SeqPosGet& op, const Observation& seen) {
    return must_be(true, seen.as<SeqPosGet::Returns>().entries == entries_of(op.seq));
  }
  Words observe(const TokenAtOrBefore& op, const Observation& seen) {
    std::int64_t token = -1;
    for (const PositionEntry& entry : entries_of(op.seq))
      if (entry.pos <= op.pos) token = at(entry.cell).extra.token;
    return must_be(token, seen.as<Value>().value);
  }
  Words observe(const ExtGet& op, const Observation& seen) {
    return must_be(true, seen.as<Extra>() == at(op.cell).extra);
  }
  Words observe(const ShowTable& /*op*/, const Observation& seen) {
    const auto& shown = seen.as<ShowTable::Returns>();
    if (auto words = HalfHistory::wrong_figures({shown.table})) return words;
    if (!is_same(shown.table.cells, shown_cells(cells_))) return "cells are not what was done to them";
    if (shown.table.has_shift != has_shift_) return "shifts are pending, or not";
    std::set<std::int32_t> owners;
    for (const TableCell& cell : cells_) owners.insert(cell.owners.begin(), cell.owners.end());
    if (owners.size() != shown.seqs.size()) return "not the sequences that have cells are shown";
    for (const ShownSequence& seq : shown.seqs) {
      const auto entries = entries_of(seq.seq);
      if (entries.empty() || seq.extremes != Extremes{entries.front().pos, entries.back().pos})
        return "extremes of sequence " + std::to_string(seq.seq) + " are not those of its cells";
    }
    return std::nullopt;
  }

  // ---- What follows ----

  [[nodiscard]] TableCell& at(std::int64_t cell) { return cells_[static_cast<std::size_t>(cell)]; }
  Words empty_all(std::int64_t size) {
    cells_.assign(static_cast<std::size_t>(size), {});
    has_shift_ = false;
    return std::nullopt;
  }
  [[nodiscard]] static Words must_be(std::int64_t want, std::int64_t got) {
    if (want == got) return std::nullopt;
    return "the answer is " + std::to_string(got) + ", the cells say " + std::to_string(want);
  }
  /// By position, then cell (LC-6).
  [[nodiscard]] std::vector<PositionEntry> entries_of(std::int64_t seq) const {
    std::vector<PositionEntry> entries;
    for (std::size_t i = 0; i < cells_.size(); ++i)
      if (cells_[i].has(seq))
        entries.push_back({static_cast<std::int32_t>(cells_[i].pos), static_cast<std::int64_t>(i)});
    std::ranges::stable_sort(entries, {}, &PositionEntry::pos);
    return entries;
  }

  std::int64_t size_;
  QuirkSet<Quirk> quirks_;
  std::vector<TableCell> cells_ = {};
  bool has_shift_ = false;
  std::vector<std::vector<TableCell>> copies_ = {};
};

}  // namespace

std::unique_ptr<Oracle> meta_history(std::int64_t size, QuirkSet<Quirk> quirks) {
  return std::make_unique<MetaHistory>(size, quirks);
}

}  // namespace kvo::cells
