// reference/cells/operations.hpp: the operations of `cells.kv` and `cells.iswa`, described.
//
// All but `new` are kPrecondition before it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/cells/cache.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::cells {

using StateNumber = HandleOf<"state">;

/// The sequences that `extremes_of(seq)` says something of, ascending.
template <class ExtremesOf>
std::vector<ShownSequence> sequences_shown(ExtremesOf&& extremes_of) {
  std::vector<ShownSequence> shown;
  for (std::int64_t seq = 0; seq < kSequences; ++seq) {
    const Extremes e = extremes_of(seq);
    if (e != Extremes()) shown.push_back({seq, e});
  }
  return shown;
}

KVO_RECORD(YesNo, (bool, value, "the answer"))
KVO_RECORD(NewReturns, (std::int64_t, size, "cells a stream; of a pair, of the base"),
           (std::optional<std::int64_t>, size_swa,
            "cells a stream of the window half; absent: no pair"),
           (std::int64_t, n_stream, "streams"), (bool, can_shift, "whether positions can be moved"))
KVO_OPERATION(New, new_, "Makes the cache of the config in the place of the earlier one (LC-1).",
              NewReturns)

/// An ubatch as it was placed. Of each mask there is the tensor, or with more than kMostMaskCells
/// cells `visible`.
KVO_RECORD_WITH(
    (static constexpr std::array<std::string_view, 2> kAxes{"token", "cell"};
     static constexpr std::int64_t kMostMaskCells = 64;
     using Visible = std::vector<std::vector<std::int32_t>>;),
    ShownUbatch, (std::vector<std::int32_t>, rows, "rows of the batch, in the order of the ubatch"),
    (std::vector<std::int32_t>, slots, "cell of each token, in the stream of its sequence"),
    (std::int64_t, n_kv, "cells that the mask spans"),
    (std::optional<Tensor>, mask, "0 or the bias where visible, else -inf"),
    (std::optional<Visible>, visible, "cells that each token sees; in the place of a wide mask"),
    (std::optional<std::vector<std::int32_t>>, slots_swa, "slots in the window half"),
    (std::optional<std::int64_t>, n_kv_swa, "n_kv of the window half"),
    (std::optional<Tensor>, mask_swa, "mask of the window half"),
    (std::optional<Visible>, visible_swa, "visible of the window half"))

KVO_RECORD(DecodeReturns, (std::optional<std::vector<ShownUbatch>>, ubatches,
                           "what was placed, in order; absent with `real`"))
KVO_OPERATION(Decode, decode, "Places a batch and shows its masks (LC-30).", DecodeReturns,
              (Nullable<std::vector<std::int32_t>>, pos,
               "position of each token; null: each goes on where its sequence ends"),
              (std::vector<std::vector<std::int64_t>>, seqs, "sequences of each token"),
              (std::int64_t, n_ubatch, "tokens of an ubatch at most", 1),
              (std::optional<bool>, causal, "whether later positions are masked; absent: true"),
              (std::optional<std::int64_t>, abort_at,
               "ubatch whose computation is interrupted, from 0; only with `real`"))
KVO_RECORD(FindSlotReturns,
           (std::vector<std::int32_t>, slots, "cell of each token, in the stream of its sequence"))
KVO_OPERATION(FindSlot, find_slot,
              "The cells that one ubatch of these tokens would get, without placing it (LC-39).",
              FindSlotReturns, (std::vector<std::int32_t>, pos, "position of each token"),
              (std::vector<std::vector<std::int64_t>>, seqs, "sequences of each token"),
              (std::optional<bool>, cont, "whether cells must be adjacent; absent: false"),
              (std::optional<bool>, swa, "whether to search the window half; absent: false"))
KVO_OPERATION(SeqRm, seq_rm, "Takes positions out of a sequence (LC-40, LC-95).", YesNo,
              (std::int64_t, seq, "sequence; -1: any"),
              (std::int32_t, p0, "first position of the range; below 0: 0", -1),
              (std::int32_t, p1, "position after the last of the range; below 0: all", -1))
KVO_OPERATION(SeqCp, seq_cp,
              "Shares cells of a sequence, or copies its stream (LC-41, LC-66, LC-92).", Nothing,
              (std::int64_t, src, "sequence that is copied"),
              (std::int64_t, dst, "sequence that gets the cells"),
              (std::int32_t, p0, "first position of the range; below 0: 0", -1),
              (std::int32_t, p1, "position after the last of the range; below 0: all", -1))
KVO_OPERATION(SeqKeep, seq_keep, "Takes all other sequences out (LC-42, LC-98).", Nothing,
              (std::int64_t, seq, "sequence that stays"))
KVO_OPERATION(SeqAdd, seq_add, "Moves positions of a sequence (LC-43, LC-98).", Nothing,
              (SequenceNumber, seq),
              (std::int32_t, p0, "first position of the range; below 0: 0", -1),
              (std::int32_t, p1, "position after the last of the range; below 0: all", -1),
              (std::int32_t, delta, "what is added to positions"))
KVO_OPERATION(SeqDiv, seq_div, "Divides positions of a sequence (LC-44, LC-98).", Nothing,
              (SequenceNumber, seq),
              (std::int32_t, p0, "first position of the range; below 0: 0", -1),
              (std::int32_t, p1, "position after the last of the range; below 0: all", -1),
              (std::int32_t, d, "what positions are divided by", 1))
KVO_OPERATION(SeqPos, seq_pos, "The extremes of a sequence (LC-4, LC-68).", Extremes,
              (SequenceNumber, seq))
KVO_OPERATION(CanShift, can_shift, "Whether positions can be moved (LC-68).", YesNo)
KVO_OPERATION(Clear, clear, "Empties all cells (LC-47).", Nothing,
              (bool, data, "whether rows are cleared, too"))
KVO_RECORD(UpdatePendingReturns, (bool, updated, "whether anything was pending"))
KVO_OPERATION(UpdatePending, update, "Applies pending copies and shifts to rows (LC-45).",
              UpdatePendingReturns)
KVO_RECORD(StateSaveReturns, (StateNumber, handle, "number of the saved state, from 0"),
           (std::int64_t, bytes, "size of the state, in bytes"))
KVO_OPERATION(StateSave, state_save, "Saves cells and rows (LC-70 to LC-72).", StateSaveReturns,
              (std::int64_t, seq, "sequence; -1: all"),
              (std::optional<bool>, partial, "whether only the window half; absent: false"))
KVO_OPERATION(StateLoad, state_load, "Loads a saved state (LC-73 to LC-76).", Nothing,
              (StateNumber, handle, "number of the saved state"),
              (std::int64_t, seq, "sequence that gets it; -1: the whole cache"),
              (std::optional<bool>, partial,
               "whether it is of the window half alone; absent: false"))
KVO_OPERATION(StateEdit, state_edit,
              "Makes a saved state lie: its cells become `cells`, and one of them gets another "
              "position and other owners. No call of the followed system; logs of it have none.",
              Nothing, (StateNumber, handle, "number of the saved state"),
              (std::optional<bool>, swa, "whether in the window half; absent: false"),
              (std::int64_t, stream, "stream of the state"),
              (std::optional<std::int64_t>, cells,
               "cells that the stream has from now on; absent: as many as before"),
              (std::optional<std::int64_t>, cell,
               "saved cell that is altered, from 0; absent: none"),
              (std::optional<std::int32_t>, pos, "its position; absent: as before"),
              (std::optional<std::vector<std::int64_t>>, seqs, "its owners; absent: as before"))

KVO_RECORD(ShowRowsReturns, (std::vector<StreamRows>, streams, "rows of each stream"),
           (std::optional<std::vector<StreamRows>>, streams_swa,
            "rows of each stream of the window half; absent: no pair"))
KVO_OPERATION(ShowRows, rows, "The rows of all cells (LC-46).", ShowRowsReturns)
KVO_RECORD(ShowStateReturns, (std::vector<ShownTable>, streams, "table of each stream"),
           (std::optional<std::vector<ShownTable>>, streams_swa,
            "table of each stream of the window half; absent: no pair"),
           (std::vector<ShownSequence>, seqs, "sequences that have positions"))
KVO_OPERATION(ShowState, state, "The tables of all streams, and all extremes.", ShowStateReturns)

/// The config of a `kv` (LC-1).
KVO_RECORD(
    KvConfig,
    (std::optional<Build>, build, "release: without assertions; debug: with them; absent: release"),
    (std::int64_t, size, "cells a stream"),
    (std::optional<std::int64_t>, n_seq_max, "sequences of a batch; absent: 1"),
    (std::optional<bool>, unified, "one stream for all sequences; absent: true"),
    (std::optional<std::int32_t>, n_swa, "positions of the window"),
    (std::optional<WindowType>, swa_type, "none, standard, chunked or symmetric; absent: none"),
    (std::optional<std::int64_t>, n_pad, "what the cells are a multiple of; absent: 1"),
    (std::optional<bool>, v_trans, "whether V is stored transposed; not visible"),
    (std::optional<bool>, alibi, "whether masks have the distance as bias; absent: false"),
    (std::optional<NonCausal>, non_causal,
     "what causal = false means: all, swa_only, swa_full; absent: all"),
    (std::optional<bool>, real, "whether the recorded engine decoded by itself: without ubatches"))

/// The config of an `iswa` (LC-1).
KVO_RECORD(IswaConfig,
           (std::optional<Build>, build,
            "release: without assertions; debug: with them; absent: release"),
           (std::int64_t, size, "cells a stream of the base"),
           (std::optional<std::int64_t>, size_swa,
            "cells a stream of the window half; absent: as n_swa and n_ubatch ask for"),
           (std::optional<std::int64_t>, n_seq_max, "sequences of a batch; absent: 1"),
           (std::optional<bool>, unified, "one stream for all sequences; absent: true"),
           (std::optional<std::int32_t>, n_swa, "positions of the window"),
           (std::optional<WindowType>, swa_type,
            "none, standard, chunked or symmetric; absent: none"),
           (std::optional<std::int64_t>, n_ubatch,
            "tokens of an ubatch that size_swa is made for; absent: 0"),
           (std::optional<bool>, swa_full,
            "whether the window half has as many cells as the base; absent: false"),
           (std::optional<bool>, v_trans, "whether V is stored transposed; not visible"),
           (std::optional<bool>, alibi, "whether masks have the distance as bias; absent: false"),
           (std::optional<NonCausal>, non_causal,
            "what causal = false means: all, swa_only, swa_full; absent: all"))

#define KVO_CELLS_OPERATIONS                                                                       \
  cells::New, cells::Decode, cells::FindSlot, cells::SeqRm, cells::SeqCp, cells::SeqKeep,          \
      cells::SeqAdd, cells::SeqDiv, cells::SeqPos, cells::CanShift, cells::Clear,                  \
      cells::UpdatePending, cells::StateSave, cells::StateLoad, cells::StateEdit, cells::ShowRows, \
      cells::ShowState
using Ops = boost::mp11::mp_list<KVO_CELLS_OPERATIONS>;

/// The cache kinds `cells.kv` and `cells.iswa`. @{
[[nodiscard]] const CacheKind& kv_kind();
[[nodiscard]] const CacheKind& iswa_kind();
/// @}

/// The lists of a batch's sequences as a Batch has them, one after another; it must outlive that.
class BatchSequences {
 public:
  explicit BatchSequences(const std::vector<std::vector<std::int64_t>>& lists);
  /// A batch of these tokens, without positions.
  [[nodiscard]] Batch batch() const { return {.sequences = sequences_, .ends = ends_}; }

 private:
  std::vector<std::int64_t> sequences_;
  std::vector<std::size_t> ends_;
};

/// What a case of either kind is made with (LC-1, LC-67).
[[nodiscard]] KvOptions kv_options(const CacheKind& kind, const Setup& setup,
                                   QuirkSet<Quirk> quirks);

/// A subject of either kind whose caches come from `make`.
[[nodiscard]] Subject make_subject(const CacheKind& kind, std::string variant, std::string doc,
                                   MakeKv make);

}  // namespace kvo::cells

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_CELLS_OPERATIONS)
}  // namespace kvo
