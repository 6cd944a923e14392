// reference/cells/recurrent_operations.hpp: the operations of `cells.recurrent`, described. Those
// on sequences are of operations.hpp.
//
// All but `new` are kPrecondition before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/cells/operations.hpp"
#include "reference/cells/recurrent.hpp"

namespace kvo::cells {

KVO_RECORD(NewRecurrentReturns, (bool, can_shift, "whether positions can be moved; always"))
KVO_OPERATION(NewRecurrent, new_,
              "Makes the memory of the config in the place of the earlier one (LC-90).",
              NewRecurrentReturns)

/// What an ubatch does to the rows of states.
KVO_RECORD(ShownStep,
           (std::vector<std::int32_t>, rows, "rows of the batch, in the order of the ubatch"),
           (std::int64_t, head, "first cell of the ubatch"),
           (std::int64_t, n, "cells from there on"),
           (std::int64_t, zero, "row that is cleared first; -1: none", -1),
           (std::vector<std::int64_t>, copy, "row that is the state of each cell, from head on"))
KVO_RECORD(DecodeStatesReturns, (std::vector<ShownStep>, ubatches, "what was placed, in order"))
KVO_OPERATION(DecodeStates, decode, "Gives each sequence of a batch its cell (LC-91).",
              DecodeStatesReturns,
              (Nullable<std::vector<std::int32_t>>, pos,
               "position of each token; null: each goes on where its sequence ends"),
              (std::vector<std::vector<std::int64_t>>, seqs, "sequences of each token"),
              (std::int64_t, n_ubatch, "tokens of an ubatch at most", 1))

KVO_OPERATION(ShowMemory, state, "All cells, and all extremes.", ShownStates)

/// The config of a `recurrent` (LC-90).
KVO_RECORD(RecurrentConfig, (std::optional<Build>, build, "release or debug; no difference here"),
           (std::int64_t, n_seq_max, "sequences, and cells"),
           (std::optional<std::int64_t>, n_rs_seq, "snapshots kept for going back; absent: 0"))

#define KVO_CELLS_RECURRENT_OPERATIONS cells::NewRecurrent, cells::DecodeStates, cells::ShowMemory
using RecurrentOps = boost::mp11::mp_list<NewRecurrent, DecodeStates, SeqRm, SeqCp, SeqKeep, SeqAdd,
                                          SeqDiv, SeqPos, Clear, ShowMemory>;

/// The cache kind `cells.recurrent`.
[[nodiscard]] const CacheKind& recurrent_kind();

/// A subject whose memories come from `make`.
[[nodiscard]] Subject make_recurrent_subject(std::string variant, std::string doc,
                                             MakeRecurrent make);

}  // namespace kvo::cells

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_CELLS_RECURRENT_OPERATIONS)
}  // namespace kvo
