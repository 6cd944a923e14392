#include "reference/cells/plain_table_cache.hpp"

#include <algorithm>

namespace kvo::cells {

Result<std::unique_ptr<CellTable>> PlainTable::make(const TableOptions& options) {
  return std::make_unique<PlainTable>(options);
}

PlainTable::PlainTable(const TableOptions& options)
    : CellTable(options), table_{std::vector<PlainCell>(static_cast<std::size_t>(options.size))} {}

void PlainTable::do_resize(std::int64_t n) {
  table_ = {std::vector<PlainCell>(static_cast<std::size_t>(n))};
}

void PlainTable::do_pos_set(std::int64_t cell, std::int32_t pos) {
  table_.at(cell).used = true;
  table_.at(cell).pos = pos;
}

void PlainTable::do_seq_add(std::int64_t cell, std::int32_t seq) {
  table_.at(cell).owners |= owner(seq);
}

bool PlainTable::do_seq_rm(std::int64_t cell, std::int32_t seq) {
  return table_.remove_owner(cell, seq);
}

bool PlainTable::do_seq_keep(std::int64_t cell, std::int32_t seq) {
  return table_.keep_owner(cell, seq);
}

void PlainTable::do_rm(std::int64_t cell) {
  table_.remove(cell);
}

bool PlainTable::do_pos_add(std::int64_t cell, std::int32_t delta) {
  return table_.move(cell, delta, has(Quirk::kExtraOutlivesPosition));
}

void PlainTable::do_pos_div(std::int64_t cell, std::int32_t d) {
  table_.divide(cell, d, has(Quirk::kDivisionTurnsBack));
}

void PlainTable::do_ext_set(std::int64_t cell, const Extra& extra) {
  table_.at(cell).extra = extra;
}

std::int32_t PlainTable::do_pos(std::int64_t cell) const {
  return table_.at(cell).pos;
}
std::int32_t PlainTable::do_shift(std::int64_t cell) const {
  return table_.at(cell).shift;
}
Extra PlainTable::do_ext(std::int64_t cell) const {
  return table_.at(cell).extra;
}
bool PlainTable::do_seq_has(std::int64_t cell, std::int32_t seq) const {
  return table_.at(cell).has(seq);
}

std::int64_t PlainTable::do_seq_count(std::int64_t cell) const {
  return static_cast<std::int64_t>(table_.at(cell).owners.count());
}

std::int32_t PlainTable::do_seq_get(std::int64_t cell) const {
  return list_of(table_.at(cell).owners).front();
}

Extremes PlainTable::do_seq_pos(std::int32_t seq) const {
  return table_.extremes(seq);
}

std::vector<PositionEntry> PlainTable::do_seq_pos_get(std::int32_t seq) const {
  std::vector<PositionEntry> entries;
  for (std::int64_t i = 0; i < table_.size(); ++i)
    if (table_.at(i).has(seq)) entries.push_back({table_.at(i).pos, i});
  std::ranges::stable_sort(entries, {}, &PositionEntry::pos);
  return entries;
}

std::int32_t PlainTable::do_token_at_or_before(std::int32_t seq, std::int32_t pos) const {
  std::int32_t token = -1;
  for (const PositionEntry& entry : do_seq_pos_get(seq))
    if (entry.pos <= pos) token = table_.at(entry.cell).extra.token;
  return token;
}

CellCopy PlainTable::do_copy(std::span<const std::int64_t> cells) const {
  CellCopy copy;
  PlainCells copied;
  for (const std::int64_t i : cells) {
    const PlainCell& cell = table_.at(i);
    copy.cells.push_back({cell.pos, list_of(cell.owners), cell.extra});
    copied.cells.push_back(cell);
  }
  const ShownTable numbers = copied.shown();
  copy.used = numbers.used;
  copy.used_min = numbers.used_min;
  copy.used_end = numbers.used_end;
  return copy;
}

void PlainTable::do_paste(const CellCopy& from, std::span<const std::int64_t> cells) {
  for (std::size_t j = 0; j < cells.size(); ++j) {
    const CopiedCell& saved = from.cells[j];
    PlainCell& cell = table_.at(cells[j]);
    cell.used = saved.pos >= 0;
    cell.pos = saved.pos;
    cell.extra = saved.extra;
    cell.owners = {};
    for (const std::int32_t seq : saved.seqs) cell.owners |= owner(seq);
  }
}

}  // namespace kvo::cells
