// reference/cells/meta_operations.hpp: the operations of `cells.meta`, described.
//
// All but `new` are kPrecondition before it, and for misuse (LC-24).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/cells/operations.hpp"
#include "reference/cells/table.hpp"

namespace kvo::cells {

struct NewTable {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes the table of the config in the place of the earlier one (LC-2).";
  using Returns = Nothing;
};
KVO_DESCRIBE(NewTable)

/// Whether a call emptied its cell.
struct Emptied {
  bool emptied = false;
};
KVO_DESCRIBE(Emptied, (emptied, "whether the cell was emptied"))

struct Value {
  std::int64_t value = 0;
};
KVO_DESCRIBE(Value, (value, "the answer"))

struct PosSet {
  static constexpr std::string_view kName = "pos_set";
  static constexpr std::string_view kDoc = "Gives an empty cell a position (LC-10).";
  using Returns = Nothing;
  std::int64_t cell = 0;
  std::int32_t pos = 0;
};
KVO_DESCRIBE(PosSet, (cell, "cell, from 0"), (pos, "position"))

struct OwnerAdd {
  static constexpr std::string_view kName = "seq_add";
  static constexpr std::string_view kDoc = "Adds an owner to a used cell (LC-11).";
  using Returns = Nothing;
  std::int64_t cell = 0;
  std::int64_t seq = 0;
};
KVO_DESCRIBE(OwnerAdd, (cell, "cell, from 0"), (seq, "sequence"))

struct OwnerRm {
  static constexpr std::string_view kName = "seq_rm";
  static constexpr std::string_view kDoc = "Takes an owner off a cell (LC-12).";
  using Returns = Emptied;
  std::int64_t cell = 0;
  std::int64_t seq = 0;
};
KVO_DESCRIBE(OwnerRm, (cell, "cell, from 0"), (seq, "sequence"))

struct OwnerKeep {
  static constexpr std::string_view kName = "seq_keep";
  static constexpr std::string_view kDoc = "Leaves a cell to one sequence (LC-13).";
  using Returns = Emptied;
  std::int64_t cell = 0;
  std::int64_t seq = 0;
};
KVO_DESCRIBE(OwnerKeep, (cell, "cell, from 0"), (seq, "sequence"))

struct CellRm {
  static constexpr std::string_view kName = "rm";
  static constexpr std::string_view kDoc = "Empties a used cell (LC-14).";
  using Returns = Nothing;
  std::int64_t cell = 0;
};
KVO_DESCRIBE(CellRm, (cell, "cell, from 0"))

struct PosAdd {
  static constexpr std::string_view kName = "pos_add";
  static constexpr std::string_view kDoc = "Moves the position of a used cell (LC-15).";
  using Returns = Emptied;
  std::int64_t cell = 0;
  std::int32_t delta = 0;
};
KVO_DESCRIBE(PosAdd, (cell, "cell, from 0"), (delta, "what is added to the position"))

struct PosDiv {
  static constexpr std::string_view kName = "pos_div";
  static constexpr std::string_view kDoc = "Divides the position of a used cell (LC-16).";
  using Returns = Nothing;
  std::int64_t cell = 0;
  std::int32_t d = 1;
};
KVO_DESCRIBE(PosDiv, (cell, "cell, from 0"), (d, "what the position is divided by"))

struct ExtSet {
  static constexpr std::string_view kName = "ext_set";
  static constexpr std::string_view kDoc = "Writes the extra data of a cell (LC-18).";
  using Returns = Nothing;
  std::int64_t cell = 0;
  std::int32_t x = 0;
  std::int32_t y = 0;
  std::int32_t token = -1;
};
KVO_DESCRIBE(ExtSet, (cell, "cell, from 0"), (x, "column in an image"), (y, "row in an image"),
             (token, "token; -1: none"))

struct CopyCells {
  static constexpr std::string_view kName = "copy";
  static constexpr std::string_view kDoc = "Copies cells as a table of its own (LC-21).";
  struct Returns {
    std::int64_t handle = 0;
  };
  std::optional<std::int64_t> begin = std::nullopt;
  std::optional<std::int64_t> n = std::nullopt;
  std::optional<std::vector<std::int64_t>> cells = std::nullopt;
};
KVO_DESCRIBE(CopyCells, (begin, "first cell; absent with `cells`"),
             (n, "cells from there on; absent with `cells`"),
             (cells, "cells in the order of the copy; absent with `begin`"))
KVO_DESCRIBE(CopyCells::Returns, (handle, "number of the copy, from 0"))

struct PasteCells {
  static constexpr std::string_view kName = "paste";
  static constexpr std::string_view kDoc = "Puts a copy's cells into the table (LC-22).";
  using Returns = Nothing;
  std::int64_t handle = 0;
  std::optional<std::int64_t> begin = std::nullopt;
  std::optional<std::vector<std::int64_t>> cells = std::nullopt;
};
KVO_DESCRIBE(PasteCells, (handle, "number of the copy"),
             (begin, "first cell that is written; absent with `cells`"),
             (cells, "cells that are written, one a cell of the copy; absent with `begin`"))

struct RereadCopy {
  static constexpr std::string_view kName = "reread";
  static constexpr std::string_view kDoc = "A copy as a table (LC-21).";
  using Returns = ShownTable;
  std::int64_t handle = 0;
};
KVO_DESCRIBE(RereadCopy, (handle, "number of the copy"))

struct ResetTable {
  static constexpr std::string_view kName = "reset";
  static constexpr std::string_view kDoc = "Empties all cells (LC-5).";
  using Returns = Nothing;
};
KVO_DESCRIBE(ResetTable)

struct ResetShift {
  static constexpr std::string_view kName = "reset_shift";
  static constexpr std::string_view kDoc = "Forgets all shifts (LC-17).";
  using Returns = Nothing;
};
KVO_DESCRIBE(ResetShift)

struct Resize {
  static constexpr std::string_view kName = "resize";
  static constexpr std::string_view kDoc = "Empties all cells, and changes how many (LC-5).";
  using Returns = Nothing;
  std::int64_t n = 0;
};
KVO_DESCRIBE(Resize, (n, "cells from now on"))

struct Size {
  static constexpr std::string_view kName = "size";
  static constexpr std::string_view kDoc = "The number of cells.";
  using Returns = Value;
};
KVO_DESCRIBE(Size)

struct IsEmpty {
  static constexpr std::string_view kName = "is_empty";
  static constexpr std::string_view kDoc = "Whether a cell has no position (LC-2).";
  using Returns = YesNo;
  std::int64_t cell = 0;
};
KVO_DESCRIBE(IsEmpty, (cell, "cell, from 0"))

struct SeqCount {
  static constexpr std::string_view kName = "seq_count";
  static constexpr std::string_view kDoc = "Owners of a used cell (LC-11).";
  using Returns = Value;
  std::int64_t cell = 0;
};
KVO_DESCRIBE(SeqCount, (cell, "cell, from 0"))

struct SeqHas {
  static constexpr std::string_view kName = "seq_has";
  static constexpr std::string_view kDoc = "Whether a cell has that owner (LC-11).";
  using Returns = YesNo;
  std::int64_t cell = 0;
  std::int64_t seq = 0;
};
KVO_DESCRIBE(SeqHas, (cell, "cell, from 0"), (seq, "sequence"))

struct SeqGet {
  static constexpr std::string_view kName = "seq_get";
  static constexpr std::string_view kDoc = "The only owner of a used cell (LC-11).";
  using Returns = Value;
  std::int64_t cell = 0;
};
KVO_DESCRIBE(SeqGet, (cell, "cell, from 0"))

struct PosGet {
  static constexpr std::string_view kName = "pos_get";
  static constexpr std::string_view kDoc = "The position of a used cell (LC-11).";
  using Returns = Value;
  std::int64_t cell = 0;
};
KVO_DESCRIBE(PosGet, (cell, "cell, from 0"))

struct GetShift {
  static constexpr std::string_view kName = "get_shift";
  static constexpr std::string_view kDoc = "The shift of a used cell (LC-11).";
  using Returns = Value;
  std::int64_t cell = 0;
};
KVO_DESCRIBE(GetShift, (cell, "cell, from 0"))

struct PosIn {
  static constexpr std::string_view kName = "pos_in";
  static constexpr std::string_view kDoc = "Whether the position of a cell is in a range (LC-20).";
  using Returns = YesNo;
  std::int64_t cell = 0;
  std::int32_t p0 = 0;
  std::int32_t p1 = 0;
};
KVO_DESCRIBE(PosIn, (cell, "cell, from 0"), (p0, "first position of the range"),
             (p1, "behind the last position of the range"))

struct SeqPosMin {
  static constexpr std::string_view kName = "seq_pos_min";
  static constexpr std::string_view kDoc = "The smallest position of a sequence (LC-4).";
  using Returns = Value;
  std::int64_t seq = 0;
};
KVO_DESCRIBE(SeqPosMin, (seq, "sequence"))

struct SeqPosMax {
  static constexpr std::string_view kName = "seq_pos_max";
  static constexpr std::string_view kDoc = "The largest position of a sequence (LC-4).";
  using Returns = Value;
  std::int64_t seq = 0;
};
KVO_DESCRIBE(SeqPosMax, (seq, "sequence"))

struct TokenAtOrBefore {
  static constexpr std::string_view kName = "token_at_or_before";
  static constexpr std::string_view kDoc = "The token of a sequence at or before there (LC-19).";
  using Returns = Value;
  std::int64_t seq = 0;
  std::int32_t pos = 0;
};
KVO_DESCRIBE(TokenAtOrBefore, (seq, "sequence"), (pos, "position"))

KVO_DESCRIBE(PositionEntry, (pos, "position"), (cell, "cell, from 0"))

struct SeqPosGet {
  static constexpr std::string_view kName = "seq_pos_get";
  static constexpr std::string_view kDoc = "The cells of a sequence, by position (LC-6).";
  struct Returns {
    std::vector<PositionEntry> entries;
  };
  std::int64_t seq = 0;
};
KVO_DESCRIBE(SeqPosGet, (seq, "sequence"))
KVO_DESCRIBE(SeqPosGet::Returns, (entries, "positions and cells, ascending"))

struct ExtGet {
  static constexpr std::string_view kName = "ext_get";
  static constexpr std::string_view kDoc = "The extra data of a used cell (LC-18).";
  using Returns = Extra;
  std::int64_t cell = 0;
};
KVO_DESCRIBE(ExtGet, (cell, "cell, from 0"))
KVO_DESCRIBE(Extra, (x, "column in an image"), (y, "row in an image"), (token, "token; -1: none"))

struct ShowTable {
  static constexpr std::string_view kName = "state";
  static constexpr std::string_view kDoc = "The table, and all extremes.";
  struct Returns {
    std::vector<ShownCell> cells = {};
    std::int64_t used = 0;
    std::int64_t used_min = 0;
    std::int64_t used_end = 0;
    bool has_shift = false;
    std::vector<ShownSequence> seqs = {};
  };
};
KVO_DESCRIBE(ShowTable)
KVO_DESCRIBE(ShowTable::Returns, (cells, "cells that are not empty, ascending"),
             (used, "cells that are used"), (used_min, "first used cell; 0 if none"),
             (used_end, "behind the last used cell; 0 if none"),
             (has_shift, "whether shifts are pending"), (seqs, "sequences that have positions"))

/// The config of a `meta` (LC-1).
struct MetaConfig {
  std::optional<Build> build = std::nullopt;
  std::int64_t size = 0;
};
KVO_DESCRIBE(MetaConfig, (build, "release: without assertions; debug: with them; absent: release"),
             (size, "cells"))

#define KVO_CELLS_META_OPERATIONS                                                                \
  cells::NewTable, cells::PosSet, cells::OwnerAdd, cells::OwnerRm, cells::OwnerKeep,             \
      cells::CellRm, cells::PosAdd, cells::PosDiv, cells::ExtSet, cells::CopyCells,              \
      cells::PasteCells, cells::RereadCopy, cells::ResetTable, cells::ResetShift, cells::Resize, \
      cells::Size, cells::IsEmpty, cells::SeqCount, cells::SeqHas, cells::SeqGet, cells::PosGet, \
      cells::GetShift, cells::PosIn, cells::SeqPosMin, cells::SeqPosMax, cells::TokenAtOrBefore, \
      cells::SeqPosGet, cells::ExtGet, cells::ShowTable
using MetaOps = boost::mp11::mp_list<KVO_CELLS_META_OPERATIONS>;

/// The cache kind `cells.meta`.
[[nodiscard]] const CacheKind& meta_kind();

/// A subject whose tables come from `make`.
[[nodiscard]] Subject make_meta_subject(std::string variant, std::string doc, MakeTable make);

}  // namespace kvo::cells

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_CELLS_META_OPERATIONS)
}  // namespace kvo
