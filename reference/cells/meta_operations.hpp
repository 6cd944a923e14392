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

using CopyNumber = HandleOf<"copy">;
struct CellNumber {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "cell, from 0"};
};

KVO_OPERATION(NewTable, new_,
              "Makes the table of the config in the place of the earlier one (LC-2).", Nothing)

/// Whether a call emptied its cell.
KVO_RECORD(Emptied, (bool, emptied, "whether the cell was emptied"))
KVO_RECORD(Value, (std::int64_t, value, "the answer"))
KVO_OPERATION(PosSet, pos_set, "Gives an empty cell a position (LC-10).", Nothing,
              (CellNumber, cell), (std::int32_t, pos, "position"))
KVO_OPERATION(OwnerAdd, seq_add, "Adds an owner to a used cell (LC-11).", Nothing,
              (CellNumber, cell), (SequenceNumber, seq))
KVO_OPERATION(OwnerRm, seq_rm, "Takes an owner off a cell (LC-12).", Emptied, (CellNumber, cell),
              (SequenceNumber, seq))
KVO_OPERATION(OwnerKeep, seq_keep, "Leaves a cell to one sequence (LC-13).", Emptied,
              (CellNumber, cell), (SequenceNumber, seq))
KVO_OPERATION(CellRm, rm, "Empties a used cell (LC-14).", Nothing, (CellNumber, cell))
KVO_OPERATION(PosAdd, pos_add, "Moves the position of a used cell (LC-15).", Emptied,
              (CellNumber, cell), (std::int32_t, delta, "what is added to the position"))
KVO_OPERATION(PosDiv, pos_div, "Divides the position of a used cell (LC-16).", Nothing,
              (CellNumber, cell), (std::int32_t, d, "what the position is divided by", 1))
KVO_OPERATION(ExtSet, ext_set, "Writes the extra data of a cell (LC-18).", Nothing,
              (CellNumber, cell), (std::int32_t, x, "column in an image"),
              (std::int32_t, y, "row in an image"), (std::int32_t, token, "token; -1: none", -1))
KVO_RECORD(CopyCellsReturns, (CopyNumber, handle, "number of the copy, from 0"))
KVO_OPERATION(CopyCells, copy, "Copies cells as a table of its own (LC-21).", CopyCellsReturns,
              (std::optional<std::int64_t>, begin, "first cell; absent with `cells`"),
              (std::optional<std::int64_t>, n, "cells from there on; absent with `cells`"),
              (std::optional<std::vector<std::int64_t>>, cells,
               "cells in the order of the copy; absent with `begin`"))
KVO_OPERATION(PasteCells, paste, "Puts a copy's cells into the table (LC-22).", Nothing,
              (CopyNumber, handle, "number of the copy"),
              (std::optional<std::int64_t>, begin,
               "first cell that is written; absent with `cells`"),
              (std::optional<std::vector<std::int64_t>>, cells,
               "cells that are written, one a cell of the copy; absent with `begin`"))
KVO_OPERATION(RereadCopy, reread, "A copy as a table (LC-21).", ShownTable,
              (CopyNumber, handle, "number of the copy"))
KVO_OPERATION(ResetTable, reset, "Empties all cells (LC-5).", Nothing)
KVO_OPERATION(ResetShift, reset_shift, "Forgets all shifts (LC-17).", Nothing)
KVO_OPERATION(Resize, resize, "Empties all cells, and changes how many (LC-5).", Nothing,
              (std::int64_t, n, "cells from now on"))
KVO_OPERATION(Size, size, "The number of cells.", Value)
KVO_OPERATION(IsEmpty, is_empty, "Whether a cell has no position (LC-2).", YesNo,
              (CellNumber, cell))
KVO_OPERATION(SeqCount, seq_count, "Owners of a used cell (LC-11).", Value, (CellNumber, cell))
KVO_OPERATION(SeqHas, seq_has, "Whether a cell has that owner (LC-11).", YesNo, (CellNumber, cell),
              (SequenceNumber, seq))
KVO_OPERATION(SeqGet, seq_get, "The only owner of a used cell (LC-11).", Value, (CellNumber, cell))
KVO_OPERATION(PosGet, pos_get, "The position of a used cell (LC-11).", Value, (CellNumber, cell))
KVO_OPERATION(GetShift, get_shift, "The shift of a used cell (LC-11).", Value, (CellNumber, cell))
KVO_OPERATION(PosIn, pos_in, "Whether the position of a cell is in a range (LC-20).", YesNo,
              (CellNumber, cell), (std::int32_t, p0, "first position of the range"),
              (std::int32_t, p1, "position after the last of the range"))
KVO_OPERATION(SeqPosMin, seq_pos_min, "The smallest position of a sequence (LC-4).", Value,
              (SequenceNumber, seq))
KVO_OPERATION(SeqPosMax, seq_pos_max, "The largest position of a sequence (LC-4).", Value,
              (SequenceNumber, seq))
KVO_OPERATION(TokenAtOrBefore, token_at_or_before,
              "The token of a sequence at or before there (LC-19).", Value, (SequenceNumber, seq),
              (std::int32_t, pos, "position"))

KVO_RECORD(SeqPosGetReturns,
           (std::vector<PositionEntry>, entries, "positions and cells, ascending"))
KVO_OPERATION(SeqPosGet, seq_pos_get, "The cells of a sequence, by position (LC-6).",
              SeqPosGetReturns, (SequenceNumber, seq))
KVO_OPERATION(ExtGet, ext_get, "The extra data of a used cell (LC-18).", Extra, (CellNumber, cell))

KVO_RECORD(ShowTableReturns, (ShownTable, table),
           (std::vector<ShownSequence>, seqs, "sequences that have positions"))
KVO_OPERATION(ShowTable, state, "The table, and all extremes.", ShowTableReturns)

/// The config of a `meta` (LC-1).
KVO_RECORD(MetaConfig,
           (std::optional<Build>, build,
            "release: without assertions; debug: with them; absent: release"),
           (std::int64_t, size, "cells"))

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
