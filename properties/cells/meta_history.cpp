// The history of a table of cells.
//
// Known are position, shift, owners and extra data of every cell, from what was set, moved,
// divided, copied and pasted. Each operation has the result that follows from them (LC-2 to LC-23).
// The quirks of profile original are followed.
#include <algorithm>
#include <set>
#include <vector>

#include "properties/cells/history.hpp"
#include "reference/contract/describe/difference.hpp"
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
using TableCells = std::vector<TableCell>;

// Cells as they are shown.
ShownTable shown(const TableCells& cells) {
  ShownTable table;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].used)
      table.cells.push_back({.cell = static_cast<std::int64_t>(i),
                             .pos = cells[i].pos,
                             .shift = cells[i].shift,
                             .seqs = {cells[i].owners.begin(), cells[i].owners.end()}});
  if (table.cells.empty()) return table;
  table.used = std::ssize(table.cells);
  table.used_min = table.cells.front().cell;
  table.used_end = table.cells.back().cell + 1;
  return table;
}

class MetaHistory final : public Oracle {
 public:
  MetaHistory(std::int64_t size, QuirkSet<Quirk> quirks) : size_(size), quirks_(quirks) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    if (seen.unsupported) return std::nullopt;
    if (seen.error) return skip();
    Words words;
    visit_op(MetaOps(), op, [&]<class T>(const T& operation) {
      if constexpr (std::is_void_v<decltype(follow(operation))>) {
        follow(operation);
      } else {
        const typename T::Returns want = follow(operation);
        if (const auto found = first_difference(want, seen.as<typename T::Returns>()))
          words = "by the history of the cells " + found->text();
      }
    });
    return judged(words);
  }

 private:
  // ---- What changes: the operations have succeeded ----

  void follow(const NewTable& /*op*/) {
    copies_.clear();
    empty_all(size_);
  }
  void follow(const ResetTable& /*op*/) { empty_all(std::ssize(cells_)); }
  void follow(const Resize& op) { empty_all(op.n); }
  void follow(const ResetShift& /*op*/) {
    for (TableCell& cell : cells_) cell.shift = 0;
    has_shift_ = false;
  }
  void follow(const PosSet& op) {
    at(op.cell).used = true;
    at(op.cell).pos = op.pos;
  }
  void follow(const OwnerAdd& op) { at(op.cell).owners.insert(static_cast<std::int32_t>(op.seq)); }
  Emptied follow(const OwnerRm& op) {
    at(op.cell).owners.erase(static_cast<std::int32_t>(op.seq));
    const bool emptied = at(op.cell).owners.empty();
    if (emptied) at(op.cell) = {};
    return {emptied};
  }
  Emptied follow(const OwnerKeep& op) {
    TableCell& cell = at(op.cell);
    const bool emptied = cell.used && !cell.owners.empty() && !cell.has(op.seq);
    if (emptied) cell = {};
    if (cell.has(op.seq)) cell.owners = {static_cast<std::int32_t>(op.seq)};
    return {emptied};
  }
  void follow(const CellRm& op) { at(op.cell) = {}; }
  // The key is to be turned by as much as its position moves (LC-15, LC-16).
  Emptied follow(const PosAdd& op) {
    TableCell& cell = at(op.cell);
    cell.pos += op.delta;
    cell.shift += op.delta;
    has_shift_ = true;
    const bool emptied = cell.pos < 0;
    if (emptied)
      cell = {.extra = quirks_.has(Quirk::kExtraOutlivesPosition) ? cell.extra : Extra()};
    return {emptied};
  }
  void follow(const PosDiv& op) {
    TableCell& cell = at(op.cell);
    const std::int64_t moved = cell.pos / op.d - cell.pos;
    cell.pos += moved;
    cell.shift += quirks_.has(Quirk::kDivisionTurnsBack) ? -moved : moved;
    has_shift_ = true;
  }
  void follow(const ExtSet& op) { at(op.cell).extra = {op.x, op.y, op.token}; }

  // ---- Copies ----

  CopyCells::Returns follow(const CopyCells& op) {
    TableCells& copy = copies_.emplace_back();
    if (op.cells)
      for (const std::int64_t cell : *op.cells) copy.push_back(at(cell));
    else
      for (std::int64_t i = 0; i < op.n.value_or(0); ++i)
        copy.push_back(at(op.begin.value_or(0) + i));
    for (TableCell& cell : copy) cell.shift = 0;
    return {std::ssize(copies_) - 1};
  }
  void follow(const PasteCells& op) {
    const TableCells& copy = copies_[static_cast<std::size_t>(op.handle)];
    for (std::size_t i = 0; i < copy.size(); ++i) {
      TableCell& to =
          at(op.cells ? (*op.cells)[i] : op.begin.value_or(0) + static_cast<std::int64_t>(i));
      const std::int64_t shift = to.shift;
      to = copy[i];
      to.shift = shift;
    }
  }
  ShownTable follow(const RereadCopy& op) {
    ShownTable copy = shown(copies_[static_cast<std::size_t>(op.handle)]);
    if (quirks_.has(Quirk::kCopyCountsNothing)) copy.used = copy.used_min = copy.used_end = 0;
    return copy;
  }

  // ---- What is asked ----

  Value follow(const Size& /*op*/) { return {std::ssize(cells_)}; }
  YesNo follow(const IsEmpty& op) { return {!at(op.cell).used}; }
  Value follow(const SeqCount& op) { return {std::ssize(at(op.cell).owners)}; }
  YesNo follow(const SeqHas& op) { return {at(op.cell).has(op.seq)}; }
  Value follow(const SeqGet& op) {
    const auto& owners = at(op.cell).owners;
    return {owners.empty() ? -1 : *owners.begin()};
  }
  Value follow(const PosGet& op) { return {at(op.cell).pos}; }
  Value follow(const GetShift& op) { return {at(op.cell).shift}; }
  YesNo follow(const PosIn& op) {
    const TableCell& cell = at(op.cell);
    const bool counts = cell.used || quirks_.has(Quirk::kEmptyIsMinusOne);
    return {counts && op.p0 <= cell.pos && cell.pos < op.p1};
  }
  Value follow(const SeqPosMin& op) { return {extremes_of(op.seq).min}; }
  Value follow(const SeqPosMax& op) { return {extremes_of(op.seq).max}; }
  SeqPosGet::Returns follow(const SeqPosGet& op) { return {entries_of(op.seq)}; }
  Value follow(const TokenAtOrBefore& op) {
    std::int64_t token = -1;
    for (const PositionEntry& entry : entries_of(op.seq))
      if (entry.pos <= op.pos) token = at(entry.cell).extra.token;
    return {token};
  }
  Extra follow(const ExtGet& op) { return at(op.cell).extra; }
  ShowTable::Returns follow(const ShowTable& /*op*/) {
    ShowTable::Returns all{.table = shown(cells_)};
    all.table.has_shift = has_shift_;
    std::set<std::int32_t> owners;
    for (const TableCell& cell : cells_) owners.insert(cell.owners.begin(), cell.owners.end());
    for (const std::int32_t seq : owners) all.seqs.push_back({seq, extremes_of(seq)});
    return all;
  }

  // ---- What follows ----

  [[nodiscard]] TableCell& at(std::int64_t cell) { return cells_[static_cast<std::size_t>(cell)]; }
  void empty_all(std::int64_t size) {
    cells_.assign(static_cast<std::size_t>(size), {});
    has_shift_ = false;
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
  [[nodiscard]] Extremes extremes_of(std::int64_t seq) const {
    const auto entries = entries_of(seq);
    return entries.empty() ? Extremes() : Extremes{entries.front().pos, entries.back().pos};
  }

  std::int64_t size_;
  QuirkSet<Quirk> quirks_;
  TableCells cells_ = {};
  bool has_shift_ = false;
  std::vector<TableCells> copies_ = {};
};

}  // namespace

std::unique_ptr<Oracle> meta_history(std::int64_t size, QuirkSet<Quirk> quirks) {
  return std::make_unique<MetaHistory>(size, quirks);
}

}  // namespace kvo::cells
