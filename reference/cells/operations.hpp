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

KVO_DESCRIBE(ShownCell, (cell, "cell of its stream, from 0"), (pos, "position"),
             (shift, "positions that its key is still to be turned by"),
             (seqs, "owners, ascending"))
KVO_DESCRIBE(ShownTable, (cells, "cells that are not empty, ascending"),
             (used, "cells that are used"), (used_min, "first used cell; 0 if none"),
             (used_end, "behind the last used cell; 0 if none"),
             (has_shift, "whether shifts are pending"))

/// A sequence and its extremes.
struct ShownSequence {
  std::int64_t seq = 0;
  std::int64_t min = -1;
  std::int64_t max = -1;
};
KVO_DESCRIBE(ShownSequence, (seq, "sequence"), (min, "smallest position; -1 if none"),
             (max, "largest position; -1 if none"))

/// The sequences that `extremes_of(seq)` says something of, ascending.
template <class ExtremesOf>
std::vector<ShownSequence> sequences_shown(ExtremesOf&& extremes_of) {
  std::vector<ShownSequence> shown;
  for (std::int64_t seq = 0; seq < kSequences; ++seq) {
    const Extremes e = extremes_of(seq);
    if (e != Extremes()) shown.push_back({seq, e.min, e.max});
  }
  return shown;
}

struct YesNo {
  bool value = false;
};
KVO_DESCRIBE(YesNo, (value, "the answer"))

struct New {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes the cache of the config in the place of the earlier one (LC-1).";
  struct Returns {
    std::int64_t size = 0;
    std::optional<std::int64_t> size_swa = std::nullopt;
    std::int64_t n_stream = 0;
    bool can_shift = false;
  };
};
KVO_DESCRIBE(New)
KVO_DESCRIBE(New::Returns, (size, "cells a stream; of a pair, of the base"),
             (size_swa, "cells a stream of the window half; absent: no pair"),
             (n_stream, "streams"), (can_shift, "whether positions can be moved"))

/// An ubatch as it was placed. Of each mask there is the tensor, or with more than kMostMaskCells
/// cells `visible`.
struct ShownUbatch {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr std::array<std::string_view, 2> kAxes{"token", "cell"};
  static constexpr std::int64_t kMostMaskCells = 64;
  using Visible = std::vector<std::vector<std::int32_t>>;
  std::vector<std::int32_t> rows = {};
  std::vector<std::int32_t> slots = {};
  std::int64_t n_kv = 0;
  std::optional<Tensor> mask = std::nullopt;
  std::optional<Visible> visible = std::nullopt;
  std::optional<std::vector<std::int32_t>> slots_swa = std::nullopt;
  std::optional<std::int64_t> n_kv_swa = std::nullopt;
  std::optional<Tensor> mask_swa = std::nullopt;
  std::optional<Visible> visible_swa = std::nullopt;
};
KVO_DESCRIBE(ShownUbatch, (rows, "rows of the batch, in the order of the ubatch"),
             (slots, "cell of each token, in the stream of its sequence"),
             (n_kv, "cells that the mask spans"), (mask, "0 or the bias where visible, else -inf"),
             (visible, "cells that each token sees; in the place of a wide mask"),
             (slots_swa, "slots in the window half"), (n_kv_swa, "n_kv of the window half"),
             (mask_swa, "mask of the window half"), (visible_swa, "visible of the window half"))

struct Decode {
  static constexpr std::string_view kName = "decode";
  static constexpr std::string_view kDoc = "Places a batch and shows its masks (LC-30).";
  struct Returns {
    std::optional<std::vector<ShownUbatch>> ubatches = std::nullopt;
  };
  Nullable<std::vector<std::int32_t>> pos = {};
  std::vector<std::vector<std::int64_t>> seqs = {};
  std::int64_t n_ubatch = 1;
  std::optional<bool> causal = std::nullopt;
  std::optional<std::int64_t> abort_at = std::nullopt;
};
KVO_DESCRIBE(Decode, (pos, "position of each token; null: each goes on where its sequence ends"),
             (seqs, "sequences of each token"), (n_ubatch, "tokens of an ubatch at most"),
             (causal, "whether later positions are masked; absent: true"),
             (abort_at, "ubatch whose computation is interrupted, from 0; only with `real`"))
KVO_DESCRIBE(Decode::Returns, (ubatches, "what was placed, in order; absent with `real`"))

struct FindSlot {
  static constexpr std::string_view kName = "find_slot";
  static constexpr std::string_view kDoc =
      "The cells that one ubatch of these tokens would get, without placing it (LC-39).";
  struct Returns {
    std::vector<std::int32_t> slots;
  };
  std::vector<std::int32_t> pos = {};
  std::vector<std::vector<std::int64_t>> seqs = {};
  std::optional<bool> cont = std::nullopt;
  std::optional<bool> swa = std::nullopt;
};
KVO_DESCRIBE(FindSlot, (pos, "position of each token"), (seqs, "sequences of each token"),
             (cont, "whether cells must be adjacent; absent: false"),
             (swa, "whether to search the window half; absent: false"))
KVO_DESCRIBE(FindSlot::Returns, (slots, "cell of each token, in the stream of its sequence"))

struct SeqRm {
  static constexpr std::string_view kName = "seq_rm";
  static constexpr std::string_view kDoc = "Takes positions out of a sequence (LC-40, LC-95).";
  using Returns = YesNo;
  std::int64_t seq = 0;
  std::int32_t p0 = -1;
  std::int32_t p1 = -1;
};
KVO_DESCRIBE(SeqRm, (seq, "sequence; -1: any"), (p0, "first position of the range; below 0: 0"),
             (p1, "behind the last position of the range; below 0: all"))

struct SeqCp {
  static constexpr std::string_view kName = "seq_cp";
  static constexpr std::string_view kDoc =
      "Shares cells of a sequence, or copies its stream (LC-41, LC-66, LC-92).";
  using Returns = Nothing;
  std::int64_t src = 0;
  std::int64_t dst = 0;
  std::int32_t p0 = -1;
  std::int32_t p1 = -1;
};
KVO_DESCRIBE(SeqCp, (src, "sequence that is copied"), (dst, "sequence that gets the cells"),
             (p0, "first position of the range; below 0: 0"),
             (p1, "behind the last position of the range; below 0: all"))

struct SeqKeep {
  static constexpr std::string_view kName = "seq_keep";
  static constexpr std::string_view kDoc = "Takes all other sequences out (LC-42, LC-98).";
  using Returns = Nothing;
  std::int64_t seq = 0;
};
KVO_DESCRIBE(SeqKeep, (seq, "sequence that stays"))

struct SeqAdd {
  static constexpr std::string_view kName = "seq_add";
  static constexpr std::string_view kDoc = "Moves positions of a sequence (LC-43, LC-98).";
  using Returns = Nothing;
  std::int64_t seq = 0;
  std::int32_t p0 = -1;
  std::int32_t p1 = -1;
  std::int32_t delta = 0;
};
KVO_DESCRIBE(SeqAdd, (seq, "sequence"), (p0, "first position of the range; below 0: 0"),
             (p1, "behind the last position of the range; below 0: all"),
             (delta, "what is added to positions"))

struct SeqDiv {
  static constexpr std::string_view kName = "seq_div";
  static constexpr std::string_view kDoc = "Divides positions of a sequence (LC-44, LC-98).";
  using Returns = Nothing;
  std::int64_t seq = 0;
  std::int32_t p0 = -1;
  std::int32_t p1 = -1;
  std::int32_t d = 1;
};
KVO_DESCRIBE(SeqDiv, (seq, "sequence"), (p0, "first position of the range; below 0: 0"),
             (p1, "behind the last position of the range; below 0: all"),
             (d, "what positions are divided by"))

struct SeqPos {
  static constexpr std::string_view kName = "seq_pos";
  static constexpr std::string_view kDoc = "The extremes of a sequence (LC-4, LC-68).";
  struct Returns {
    std::int64_t min = -1;
    std::int64_t max = -1;
  };
  std::int64_t seq = 0;
};
KVO_DESCRIBE(SeqPos, (seq, "sequence"))
KVO_DESCRIBE(SeqPos::Returns, (min, "smallest position; -1 if none"),
             (max, "largest position; -1 if none"))

struct CanShift {
  static constexpr std::string_view kName = "can_shift";
  static constexpr std::string_view kDoc = "Whether positions can be moved (LC-68).";
  using Returns = YesNo;
};
KVO_DESCRIBE(CanShift)

struct Clear {
  static constexpr std::string_view kName = "clear";
  static constexpr std::string_view kDoc = "Empties all cells (LC-47).";
  using Returns = Nothing;
  bool data = false;
};
KVO_DESCRIBE(Clear, (data, "whether rows are cleared, too"))

struct UpdatePending {
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc = "Applies pending copies and shifts to rows (LC-45).";
  struct Returns {
    bool updated = false;
  };
};
KVO_DESCRIBE(UpdatePending)
KVO_DESCRIBE(UpdatePending::Returns, (updated, "whether anything was pending"))

struct StateSave {
  static constexpr std::string_view kName = "state_save";
  static constexpr std::string_view kDoc = "Saves cells and rows (LC-70 to LC-72).";
  struct Returns {
    std::int64_t handle = 0;
    std::int64_t bytes = 0;
  };
  std::int64_t seq = 0;
  std::optional<bool> partial = std::nullopt;
};
KVO_DESCRIBE(StateSave, (seq, "sequence; -1: all"),
             (partial, "whether only the window half; absent: false"))
KVO_DESCRIBE(StateSave::Returns, (handle, "number of the saved state, from 0"),
             (bytes, "size of the state, in bytes"))

struct StateLoad {
  static constexpr std::string_view kName = "state_load";
  static constexpr std::string_view kDoc = "Loads a saved state (LC-73 to LC-76).";
  using Returns = Nothing;
  std::int64_t handle = 0;
  std::int64_t seq = 0;
  std::optional<bool> partial = std::nullopt;
};
KVO_DESCRIBE(StateLoad, (handle, "number of the saved state"),
             (seq, "sequence that gets it; -1: the whole cache"),
             (partial, "whether it is of the window half alone; absent: false"))

struct StateEdit {
  static constexpr std::string_view kName = "state_edit";
  static constexpr std::string_view kDoc =
      "Makes a saved state lie: its cells become `cells`, and one of them gets another position "
      "and other owners. No call of the followed system; logs of it have none.";
  using Returns = Nothing;
  std::int64_t handle = 0;
  std::optional<bool> swa = std::nullopt;
  std::int64_t stream = 0;
  std::optional<std::int64_t> cells = std::nullopt;
  std::optional<std::int64_t> cell = std::nullopt;
  std::optional<std::int32_t> pos = std::nullopt;
  std::optional<std::vector<std::int64_t>> seqs = std::nullopt;
};
KVO_DESCRIBE(StateEdit, (handle, "number of the saved state"),
             (swa, "whether in the window half; absent: false"), (stream, "stream of the state"),
             (cells, "cells that the stream has from now on; absent: as many as before"),
             (cell, "saved cell that is altered, from 0; absent: none"),
             (pos, "its position; absent: as before"), (seqs, "its owners; absent: as before"))

KVO_DESCRIBE(StreamRows, (k, "tag of the key, by cell; 0: never written"),
             (rot, "position that the key is turned to, by cell"),
             (v, "tag of the value, by cell; 0: never written"))

struct ShowRows {
  static constexpr std::string_view kName = "rows";
  static constexpr std::string_view kDoc = "The rows of all cells (LC-46).";
  struct Returns {
    std::vector<StreamRows> streams = {};
    std::optional<std::vector<StreamRows>> streams_swa = std::nullopt;
  };
};
KVO_DESCRIBE(ShowRows)
KVO_DESCRIBE(ShowRows::Returns, (streams, "rows of each stream"),
             (streams_swa, "rows of each stream of the window half; absent: no pair"))

struct ShowState {
  static constexpr std::string_view kName = "state";
  static constexpr std::string_view kDoc = "The tables of all streams, and all extremes.";
  struct Returns {
    std::vector<ShownTable> streams = {};
    std::optional<std::vector<ShownTable>> streams_swa = std::nullopt;
    std::vector<ShownSequence> seqs = {};
  };
};
KVO_DESCRIBE(ShowState)
KVO_DESCRIBE(ShowState::Returns, (streams, "table of each stream"),
             (streams_swa, "table of each stream of the window half; absent: no pair"),
             (seqs, "sequences that have positions"))

/// The config of a `kv` (LC-1).
struct KvConfig {
  std::optional<Build> build = std::nullopt;
  std::int64_t size = 0;
  std::optional<std::int64_t> n_seq_max = std::nullopt;
  std::optional<bool> unified = std::nullopt;
  std::optional<std::int32_t> n_swa = std::nullopt;
  std::optional<WindowType> swa_type = std::nullopt;
  std::optional<std::int64_t> n_pad = std::nullopt;
  std::optional<bool> v_trans = std::nullopt;
  std::optional<bool> alibi = std::nullopt;
  std::optional<NonCausal> non_causal = std::nullopt;
  std::optional<bool> real = std::nullopt;
};
KVO_DESCRIBE(KvConfig, (build, "release: without assertions; debug: with them; absent: release"),
             (size, "cells a stream"), (n_seq_max, "sequences of a batch; absent: 1"),
             (unified, "one stream for all sequences; absent: true"),
             (n_swa, "positions of the window"),
             (swa_type, "none, standard, chunked or symmetric; absent: none"),
             (n_pad, "what the cells are a multiple of; absent: 1"),
             (v_trans, "whether V is stored transposed; not visible"),
             (alibi, "whether masks have the distance as bias; absent: false"),
             (non_causal, "what causal = false means: all, swa_only, swa_full; absent: all"),
             (real, "whether the recorded engine decoded by itself: without ubatches"))

/// The config of an `iswa` (LC-1).
struct IswaConfig {
  std::optional<Build> build = std::nullopt;
  std::int64_t size = 0;
  std::optional<std::int64_t> size_swa = std::nullopt;
  std::optional<std::int64_t> n_seq_max = std::nullopt;
  std::optional<bool> unified = std::nullopt;
  std::optional<std::int32_t> n_swa = std::nullopt;
  std::optional<WindowType> swa_type = std::nullopt;
  std::optional<std::int64_t> n_ubatch = std::nullopt;
  std::optional<bool> swa_full = std::nullopt;
  std::optional<bool> v_trans = std::nullopt;
  std::optional<bool> alibi = std::nullopt;
  std::optional<NonCausal> non_causal = std::nullopt;
};
KVO_DESCRIBE(IswaConfig, (build, "release: without assertions; debug: with them; absent: release"),
             (size, "cells a stream of the base"),
             (size_swa, "cells a stream of the window half; absent: as n_swa and n_ubatch ask for"),
             (n_seq_max, "sequences of a batch; absent: 1"),
             (unified, "one stream for all sequences; absent: true"),
             (n_swa, "positions of the window"),
             (swa_type, "none, standard, chunked or symmetric; absent: none"),
             (n_ubatch, "tokens of an ubatch that size_swa is made for; absent: 0"),
             (swa_full, "whether the window half has as many cells as the base; absent: false"),
             (v_trans, "whether V is stored transposed; not visible"),
             (alibi, "whether masks have the distance as bias; absent: false"),
             (non_causal, "what causal = false means: all, swa_only, swa_full; absent: all"))

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
[[nodiscard]] KvOptions kv_options(const KvConfig& config);
[[nodiscard]] KvOptions kv_options(const IswaConfig& config);

/// A subject of either kind whose caches come from `make`.
[[nodiscard]] Subject make_subject(const CacheKind& kind, std::string variant, std::string doc,
                                   MakeKv make);

}  // namespace kvo::cells

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_CELLS_OPERATIONS)
}  // namespace kvo
