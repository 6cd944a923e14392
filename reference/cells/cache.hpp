// reference/cells/cache.hpp: a cache of cells and rows, or a pair of them (LC-30 to LC-76).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/cells/recurrent.hpp"
#include "reference/cells/table.hpp"
#include "reference/cells/values.hpp"

namespace kvo::cells {

/// An ubatch right after its tokens were placed. Valid during the call that shows it.
class PlacedUbatch {
 public:
  virtual ~PlacedUbatch() = default;
  /// [token of the ubatch]: row of the batch.
  [[nodiscard]] virtual std::span<const std::int32_t> rows() const = 0;
  /// [token of the ubatch]: its cell, in the stream of its sequence.
  [[nodiscard]] virtual std::span<const std::int32_t> slots(Half half) const = 0;
  /// Cells that a mask spans (LC-56).
  [[nodiscard]] virtual std::int64_t n_kv(Half half) const = 0;
  /// Writes the mask, [token of the ubatch][n_kv] (LC-50 to LC-58).
  virtual void mask(Half half, std::span<float> out) const = 0;
};
using SeeUbatch = std::function<void(const PlacedUbatch&)>;

/// The rows of a stream, a cell each (LC-46).
KVO_RECORD(StreamRows, (std::vector<std::int64_t>, k, "tag of the key, by cell; 0: never written"),
           (std::vector<std::int64_t>, rot, "position that the key is turned to, by cell"),
           (std::vector<std::int64_t>, v, "tag of the value, by cell; 0: never written"))

/// A cell of a saved state, with its row.
struct SavedCell {
  std::int32_t pos = 0;
  std::vector<std::int64_t> seqs = {};  ///< saved owners, ascending (LC-72)
  std::int64_t k = 0;
  std::int64_t rot = 0;
  std::int64_t v = 0;
};
using SavedStream = std::vector<SavedCell>;

/// A saved state (LC-70). It may have been altered since: load checks it.
struct SavedState {
  bool partial = false;                  ///< of the window half alone
  std::vector<SavedStream> base = {};    ///< [stream]; empty in a partial state
  std::vector<SavedStream> window = {};  ///< [stream]; empty without that half

  [[nodiscard]] std::size_t cell_count() const {
    std::size_t cells = 0;
    for (const auto* half : {&base, &window})
      for (const SavedStream& stream : *half) cells += stream.size();
    return cells;
  }
};

/// What a state takes in a file, with `layers` layers a half (LC-72).
[[nodiscard]] std::int64_t bytes_of(const SavedState& state, std::int64_t layers);

struct KvOptions {
  QuirkSet<Quirk> quirks = QuirkSet<Quirk>(Profile::kOriginal);
  Build build = Build::kRelease;
  std::int64_t size = 0;                                   ///< cells a stream; of the base
  std::optional<std::int64_t> size_window = std::nullopt;  ///< of the window half; absent: no pair
  std::int64_t n_seq_max = 1;                              ///< 1 to kSequences
  bool unified = true;
  Window window = {};  ///< of the window half, or of a single cache
  std::int64_t n_pad = 1;
  bool alibi = false;
  NonCausal non_causal = NonCausal::kAll;
  bool real = false;  ///< sessions show no ubatches

  [[nodiscard]] std::int64_t streams() const { return unified ? 1 : n_seq_max; }
};

/// What the constructors ask for.
/// Errors  kOutOfRange: a size, n_seq_max, n_pad or window outside its range, all streams together
///         above kMostCells, or cells that are no multiple of n_pad.
[[nodiscard]] Status check_options(const KvOptions& options);

/// A cache of cells and rows, or a pair of them (LC-30 to LC-76). The public calls refuse misuse,
/// whatever the cache, and hand the rest to do_*.
class KvCache {
 public:
  explicit KvCache(const KvOptions& options) : options_(options) {}
  virtual ~KvCache() = default;

  [[nodiscard]] const KvOptions& options() const { return options_; }
  [[nodiscard]] bool is_pair() const { return options_.size_window.has_value(); }
  /// Whether positions can be moved (LC-68).
  [[nodiscard]] bool can_shift() const {
    return !is_pair() || *options_.size_window == options_.size;
  }

  /// Places a batch ubatch by ubatch, and shows each (LC-30 to LC-38).
  /// Errors  other:invalid_batch (LC-31); kFull (LC-37); other:aborted (LC-57).
  [[nodiscard]] Status decode(const Batch& batch, const SeeUbatch& see);
  /// The cells that one ubatch of these tokens would get, without placing it (LC-39).
  /// Errors  other:invalid_batch, kFull.
  [[nodiscard]] Result<std::vector<std::int32_t>> find_slot(const Batch& batch, Half half,
                                                            bool adjacent) const;
  /// Takes positions out of a sequence, or of any (LC-40); what a window needs may go (LC-62).
  [[nodiscard]] Result<bool> seq_rm(std::int64_t seq, std::int32_t p0, std::int32_t p1);
  /// Shares or copies cells (LC-41, LC-66). Errors  kNotSupported: documented, between streams, a
  /// range that leaves out a part of src.
  [[nodiscard]] Status seq_cp(std::int64_t src, std::int64_t dst, std::int32_t p0, std::int32_t p1);
  /// Takes all other sequences out (LC-42).
  [[nodiscard]] Status seq_keep(std::int64_t seq);
  /// Moves or divides positions (LC-43, LC-44). Errors  kNotSupported: documented, a cell in range
  /// has other owners, or can_shift is false. @{
  [[nodiscard]] Status seq_add(std::int64_t seq, std::int32_t p0, std::int32_t p1,
                               std::int32_t delta);
  [[nodiscard]] Status seq_div(std::int64_t seq, std::int32_t p0, std::int32_t p1, std::int32_t d);
  /// @}
  /// The extremes of a sequence; of a pair, in the window half (LC-68).
  [[nodiscard]] Result<Extremes> seq_pos(std::int64_t seq) const;
  /// Empties all cells, with `data` the rows, too (LC-47).
  virtual void clear(bool data) = 0;
  /// Applies what is pending; whether anything was (LC-45).
  virtual bool update() = 0;
  /// The state of a sequence, or with -1 of all (LC-70 to LC-72).
  [[nodiscard]] Result<SavedState> state_save(std::int64_t seq, bool partial);
  /// Puts a state into a sequence, or with -1 in the place of everything (LC-73 to LC-76).
  /// Errors  other:restore_failed.
  [[nodiscard]] Status state_load(const SavedState& state, std::int64_t seq, bool partial);

  /// Its tables and rows, a stream each. @{
  [[nodiscard]] virtual std::vector<ShownTable> tables(Half half) const = 0;
  [[nodiscard]] virtual std::vector<StreamRows> rows(Half half) const = 0;
  /// @}
  /// Walks the internal state; nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }

 protected:
  /// The batch passed check_batch; sequences and positions are as the caller gave them.
  /// Errors  as decode; kPrecondition: more tokens than n_ubatch without causal (LC-51), and in
  ///         original a valid batch with a position below -1, in a debug build below 0 (LC-80).
  virtual Status do_decode(const Batch& batch, const SeeUbatch& see) = 0;
  /// As do_decode. Errors as find_slot.
  [[nodiscard]] virtual Result<std::vector<std::int32_t>> do_find_slot(const Batch& batch,
                                                                       Half half,
                                                                       bool adjacent) const = 0;
  // Sequences are those that LC-48 allows.
  /// seq -1: any.
  virtual void do_seq_rm(std::int32_t seq, const Range& range) = 0;
  /// In one stream; src is not dst. Errors  kPrecondition: an assertion (LC-41).
  virtual Status do_seq_share(std::int32_t src, std::int32_t dst, const Range& range) = 0;
  /// From one stream to another, all of src. Errors  kPrecondition: an assertion (LC-66).
  virtual Status do_seq_copy(std::int32_t src, std::int32_t dst) = 0;
  /// Whether all positions of a sequence, in every half, are below `end`.
  [[nodiscard]] virtual bool covers(std::int32_t seq, std::int32_t end) const = 0;
  virtual void do_seq_keep(std::int32_t seq) = 0;
  /// delta is not 0, and the range does not begin where it ends. Errors  kNotSupported: documented,
  /// a shared cell; kPrecondition: a position or shift would leave its type.
  virtual Status do_seq_add(std::int32_t seq, const Range& range, std::int32_t delta) = 0;
  /// d is not 1, and the range does not begin where it ends. Errors  as do_seq_add; kPrecondition:
  /// d is below 1 and a cell in range.
  virtual Status do_seq_div(std::int32_t seq, const Range& range, std::int32_t d) = 0;
  [[nodiscard]] virtual Extremes do_seq_pos(std::int32_t seq) const = 0;
  /// seq -1: all; it may be a sequence that no batch can name. Without kSavedBeforeUpdate it
  /// updates first (LC-71), and that, too, is undone if there is no memory.
  [[nodiscard]] virtual SavedState do_state_save(std::int32_t seq, bool partial) = 0;
  /// The state has as many streams as the cache, and cells that could have been saved.
  /// Errors  other:restore_failed.
  virtual Status do_state_load(const SavedState& state, std::int32_t seq) = 0;

  [[nodiscard]] bool has(Quirk quirk) const { return options_.quirks.has(quirk); }
  /// Whether assertions abort (LC-49). In documented misuse is an error in both builds.
  [[nodiscard]] bool debug() const { return options_.build == Build::kDebug; }

 private:
  /// Sequences that calls may name (LC-48).
  [[nodiscard]] std::int64_t sequences() const {
    return options_.unified ? kSequences : options_.n_seq_max;
  }
  /// Errors  kPrecondition: seq is not in [0, sequences()).
  [[nodiscard]] Status named(std::int64_t seq) const;
  /// Errors  kNotSupported: documented, can_shift is false.
  [[nodiscard]] Status check_shift() const;

  KvOptions options_;
};

using MakeKv = std::function<Result<std::unique_ptr<KvCache>>(const KvOptions& options)>;

}  // namespace kvo::cells
