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

struct NewRecurrent {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes the memory of the config in the place of the earlier one (LC-90).";
  struct Returns {
    bool can_shift = false;
  };
};
KVO_DESCRIBE(NewRecurrent)
KVO_DESCRIBE(NewRecurrent::Returns, (can_shift, "whether positions can be moved; always"))

/// What an ubatch does to the rows of states.
struct ShownStep {
  std::vector<std::int32_t> rows = {};
  std::int64_t head = 0;
  std::int64_t n = 0;
  std::int64_t zero = -1;
  std::vector<std::int64_t> copy = {};
};
KVO_DESCRIBE(ShownStep, (rows, "rows of the batch, in the order of the ubatch"),
             (head, "first cell of the ubatch"), (n, "cells from there on"),
             (zero, "row that is cleared first; -1: none"),
             (copy, "row that is the state of each cell, from head on"))

struct DecodeStates {
  static constexpr std::string_view kName = "decode";
  static constexpr std::string_view kDoc = "Gives each sequence of a batch its cell (LC-91).";
  struct Returns {
    std::vector<ShownStep> ubatches = {};
  };
  Nullable<std::vector<std::int32_t>> pos = {};
  std::vector<std::vector<std::int64_t>> seqs = {};
  std::int64_t n_ubatch = 1;
};
KVO_DESCRIBE(DecodeStates,
             (pos, "position of each token; null: each goes on where its sequence ends"),
             (seqs, "sequences of each token"), (n_ubatch, "tokens of an ubatch at most"))
KVO_DESCRIBE(DecodeStates::Returns, (ubatches, "what was placed, in order"))

KVO_DESCRIBE(ShownState, (cell, "cell, from 0"), (pos, "position; -1: none"),
             (seqs, "owners, ascending"), (src, "row that the state comes from; -1: none"),
             (tail, "cell with the state of the sequence of this number; -1: none"))

struct ShowMemory {
  static constexpr std::string_view kName = "state";
  static constexpr std::string_view kDoc = "All cells, and all extremes.";
  struct Returns {
    std::vector<ShownState> cells = {};
    std::int64_t head = 0;
    std::int64_t used = 0;
    std::vector<std::int64_t> rollback = {};
    std::vector<ShownSequence> seqs = {};
  };
};
KVO_DESCRIBE(ShowMemory)
KVO_DESCRIBE(ShowMemory::Returns, (cells, "all cells"), (head, "where the search begins"),
             (used, "cells with owners"),
             (rollback, "snapshots that each sequence is to go back by"),
             (seqs, "sequences that have positions"))

/// The config of a `recurrent` (LC-90).
struct RecurrentConfig {
  std::optional<Build> build = std::nullopt;
  std::int64_t n_seq_max = 0;
  std::optional<std::int64_t> n_rs_seq = std::nullopt;
};
KVO_DESCRIBE(RecurrentConfig, (build, "release or debug; no difference here"),
             (n_seq_max, "sequences, and cells"),
             (n_rs_seq, "snapshots kept for going back; absent: 0"))

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
