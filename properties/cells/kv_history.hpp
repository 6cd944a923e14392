// properties/cells/kv_history.hpp: the history of a cache of cells, or of a pair of them.
//
// Known is which token lies in which cell, whose it is, and what its row holds. Judged
// batches   get cells that were empty or that nobody sees any more, each once; every token is
//           placed once; it sees exactly the cells of its sequence up to it, in its window; a batch
//           is refused only where too few cells are free; one that is refused, or rehearsed, leaves
//           nothing behind.
// keys      stand at the positions of their cells once shifts are applied.
// rows      are those of the tokens that were placed, copied and loaded; a copy between streams has
//           those of its source at the time of the call, whatever comes between.
// states    hold the cells of a sequence; loaded they are there again, beside what was there.
// figures   used cells are those with a position; extremes, shifts and bytes are those of the
// cells. Skipped   in profile original: with a window, tables after a refused batch, and masks and
// tables
//           after one of several ubatches, until a look at them (rehearsal_purges); what a load
//           that failed has touched (failed_load_removes, half_loaded); positions below 0. Followed
//           are division_turns_back, copy_is_late, saved_before_update, keeps_other_streams,
//           empty_state_changes_nothing, last_is_primary. In both, what an altered state is loaded
//           into, and cells with two tokens at one position after a load.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"
#include "reference/cells/operations.hpp"

namespace kvo::cells {

[[nodiscard]] std::unique_ptr<Oracle> kv_history(const KvOptions& options);

}  // namespace kvo::cells
