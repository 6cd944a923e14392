#include "reference/cells/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reference/contract/values/mark.hpp"

namespace kvo::cells {
namespace {

Status sequence_exists(std::int64_t seq) {
  if (seq < 0 || seq >= kSequences) return refused(fmt::format("sequence {}", seq));
  return {};
}

}  // namespace

Status CellTable::in_table(std::int64_t cell) const {
  if (cell < 0 || cell >= size()) return refused(fmt::format("cell {} of {}", cell, size()));
  return {};
}

Status CellTable::used(std::int64_t cell) const {
  if (const Status checked = in_table(cell); !checked) return checked;
  if (do_pos(cell) < 0) return refused(fmt::format("cell {} is empty", cell));
  return {};
}

Status CellTable::owned(std::int64_t cell, std::int64_t seq) const {
  if (const Status checked = used(cell); !checked) return checked;
  return sequence_exists(seq);
}

// Cells that are copied or pasted over must have no shift (LC-23).
Status CellTable::copyable(std::span<const std::int64_t> cells) const {
  const bool shifted_too = has(Quirk::kShiftedCellsAreCopied) && build_ == Build::kRelease;
  for (const std::int64_t cell : cells) {
    if (const Status checked = in_table(cell); !checked) return checked;
    if (do_shift(cell) != 0 && !shifted_too) return refused(fmt::format("cell {} shifted", cell));
  }
  return {};
}

Status CellTable::resize(std::int64_t n) {
  if (const Status checked = check_in("n", n, 1, kMostCells); !checked) return checked;
  do_resize(n);
  return {};
}

Status CellTable::pos_set(std::int64_t cell, std::int32_t pos) {
  if (const Status checked = in_table(cell); !checked) return checked;
  if (do_pos(cell) >= 0) return refused(fmt::format("cell {} has a position", cell));
  if (pos < 0) return refused(fmt::format("pos {}", pos));
  do_pos_set(cell, pos);
  return {};
}

Status CellTable::seq_add(std::int64_t cell, std::int64_t seq) {
  if (const Status checked = owned(cell, seq); !checked) return checked;
  const auto owner = static_cast<std::int32_t>(seq);
  if (do_seq_has(cell, owner)) {
    KVO_MARK("cells.meta", "owner added twice");
    if (has(Quirk::kOwnerAddedTwice) && build_ == Build::kRelease) return {};
    return refused(fmt::format("cell {} has sequence {}", cell, seq));
  }
  do_seq_add(cell, owner);
  return {};
}

Result<bool> CellTable::seq_rm(std::int64_t cell, std::int64_t seq) {
  if (const Status checked = owned(cell, seq); !checked) return checked.error();
  if (!do_seq_has(cell, static_cast<std::int32_t>(seq)))
    return refused(fmt::format("cell {} has no sequence {}", cell, seq));
  return do_seq_rm(cell, static_cast<std::int32_t>(seq));
}

Result<bool> CellTable::seq_keep(std::int64_t cell, std::int64_t seq) {
  if (const Status checked = in_table(cell); !checked) return checked.error();
  if (const Status checked = sequence_exists(seq); !checked) return checked.error();
  if (do_pos(cell) >= 0 && do_seq_count(cell) == 0) {
    if (has(Quirk::kOwnerlessCellIsKept) && build_ == Build::kRelease) {
      KVO_MARK_IN(Profile::kOriginal, "cells.meta", "ownerless kept");
      return false;
    }
    KVO_MARK("cells.meta", "ownerless keep refused");
    return refused(fmt::format("cell {} has no owner", cell));
  }
  return do_seq_keep(cell, static_cast<std::int32_t>(seq));
}

Status CellTable::rm(std::int64_t cell) {
  if (const Status checked = used(cell); !checked) return checked;
  do_rm(cell);
  return {};
}

Result<bool> CellTable::pos_add(std::int64_t cell, std::int32_t delta) {
  if (const Status checked = used(cell); !checked) return checked.error();
  const std::int64_t by = delta;
  if (!is_int32(do_pos(cell) + by) || !is_int32(do_shift(cell) + by))
    return refused(fmt::format("cell {}: delta {} overflows", cell, delta));
  return do_pos_add(cell, delta);
}

Status CellTable::pos_div(std::int64_t cell, std::int32_t d) {
  if (const Status checked = used(cell); !checked) return checked;
  if (d < 1) return refused(fmt::format("d {}", d));
  const std::int64_t pos = do_pos(cell);
  const std::int64_t fall = pos - pos / d;
  if (!is_int32(do_shift(cell) + fall) || !is_int32(do_shift(cell) - fall))
    return refused(fmt::format("cell {}: the shift overflows", cell));
  do_pos_div(cell, d);
  return {};
}

Status CellTable::ext_set(std::int64_t cell, const Extra& extra) {
  if (const Status checked = in_table(cell); !checked) return checked;
  do_ext_set(cell, extra);
  return {};
}

Result<bool> CellTable::is_empty(std::int64_t cell) const {
  if (const Status checked = in_table(cell); !checked) return checked.error();
  return do_pos(cell) < 0;
}

Result<std::int64_t> CellTable::seq_count(std::int64_t cell) const {
  if (const Status checked = used(cell); !checked) return checked.error();
  return do_seq_count(cell);
}

Result<bool> CellTable::seq_has(std::int64_t cell, std::int64_t seq) const {
  if (const Status checked = in_table(cell); !checked) return checked.error();
  if (const Status checked = sequence_exists(seq); !checked) return checked.error();
  return do_seq_has(cell, static_cast<std::int32_t>(seq));
}

Result<std::int64_t> CellTable::seq_get(std::int64_t cell) const {
  if (const Status checked = used(cell); !checked) return checked.error();
  if (const std::int64_t owners = do_seq_count(cell); owners != 1)
    return refused(fmt::format("cell {} has {} owners", cell, owners));
  return do_seq_get(cell);
}

Result<std::int64_t> CellTable::pos_get(std::int64_t cell) const {
  if (const Status checked = used(cell); !checked) return checked.error();
  return do_pos(cell);
}

Result<std::int64_t> CellTable::get_shift(std::int64_t cell) const {
  if (const Status checked = used(cell); !checked) return checked.error();
  return do_shift(cell);
}

Result<Extra> CellTable::ext_get(std::int64_t cell) const {
  if (const Status checked = used(cell); !checked) return checked.error();
  return do_ext(cell);
}

Result<bool> CellTable::pos_in(std::int64_t cell, std::int32_t p0, std::int32_t p1) const {
  if (const Status checked = in_table(cell); !checked) return checked.error();
  const std::int32_t pos = do_pos(cell);
  if (pos < 0 && !has(Quirk::kEmptyIsMinusOne)) return false;
  return p0 <= pos && pos < p1;
}

Result<Extremes> CellTable::seq_pos(std::int64_t seq) const {
  if (const Status checked = sequence_exists(seq); !checked) return checked.error();
  return do_seq_pos(static_cast<std::int32_t>(seq));
}

Result<std::vector<PositionEntry>> CellTable::seq_pos_get(std::int64_t seq) const {
  if (const Status checked = sequence_exists(seq); !checked) return checked.error();
  return do_seq_pos_get(static_cast<std::int32_t>(seq));
}

Result<std::int64_t> CellTable::token_at_or_before(std::int64_t seq, std::int32_t pos) const {
  if (const Status checked = sequence_exists(seq); !checked) return checked.error();
  return do_token_at_or_before(static_cast<std::int32_t>(seq), pos);
}

Result<CellCopy> CellTable::copy(std::span<const std::int64_t> cells) const {
  if (cells.size() > static_cast<std::size_t>(kMostCells))
    return refused(fmt::format("{} cells", cells.size()));
  if (const Status checked = copyable(cells); !checked) return checked.error();
  CellCopy made = do_copy(cells);
  if (has(Quirk::kCopyCountsNothing)) made.used = made.used_min = made.used_end = 0;
  return made;
}

Status CellTable::paste(const CellCopy& from, std::span<const std::int64_t> cells) {
  if (cells.size() != from.cells.size())
    return refused(fmt::format("{} cells for {}", cells.size(), from.cells.size()));
  if (const Status checked = copyable(cells); !checked) return checked;
  do_paste(from, cells);
  return {};
}

}  // namespace kvo::cells
