// reference/cells/recurrent.hpp: the memory of recurrent models, one state a sequence (LC-90 to
// LC-98).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/cells/values.hpp"

namespace kvo::cells {

struct RecurrentOptions {
  QuirkSet<Quirk> quirks = QuirkSet<Quirk>(Profile::kOriginal);
  std::int64_t n_seq_max = 1;  ///< 1 to kSequences; also the number of cells
  std::int64_t n_rs_seq = 0;   ///< snapshots kept for going back, 0 to kMostTokens
};
/// Errors  kOutOfRange.
[[nodiscard]] Status check_options(const RecurrentOptions& options);

/// What an ubatch does to the rows of states (LC-94): clears row `zero` if it is not negative, then
/// takes row copy[x] as the state of cell head + x. Valid during the call that shows it.
struct PlacedStates {
  std::span<const std::int32_t> rows = {};  ///< rows of the batch, in the order of the ubatch
  std::int64_t head = 0;
  std::int64_t n = 0;
  std::int64_t zero = -1;
  std::span<const std::int64_t> copy = {};  ///< [n]
};
using SeeStates = std::function<void(const PlacedStates&)>;

/// A cell of recurrent memory, for comparison.
KVO_RECORD(ShownState, (std::int64_t, cell, "cell, from 0"),
           (std::int64_t, pos, "position; -1: none", -1),
           (std::vector<std::int32_t>, seqs, "owners, ascending"),
           (std::int64_t, src, "row that the state comes from; -1: none", -1),
           (std::int64_t, tail, "cell with the state of the sequence of this number; -1: none", -1))
KVO_RECORD(ShownStates, (std::vector<ShownState>, cells, "all cells"),
           (std::int64_t, head, "where the search begins"),
           (std::int64_t, used, "cells with owners"),
           (std::vector<std::int64_t>, rollback, "snapshots that each sequence is to go back by"),
           (std::vector<ShownSequence>, seqs, "sequences that have positions"))

/// One state a sequence (LC-90 to LC-98). The public calls refuse misuse, whatever the memory, and
/// hand the rest to do_*.
class RecurrentMemory {
 public:
  explicit RecurrentMemory(const RecurrentOptions& options) : options_(options) {}
  virtual ~RecurrentMemory() = default;

  [[nodiscard]] const RecurrentOptions& options() const { return options_; }

  /// LC-91. Errors  other:invalid_batch; kFull; kPrecondition (LC-97).
  [[nodiscard]] Status decode(const Batch& batch, const SeeStates& see);
  /// LC-95, LC-96; false: refused, nothing changed.
  [[nodiscard]] Result<bool> seq_rm(std::int64_t seq, std::int32_t p0, std::int32_t p1);
  /// LC-92, whatever the range; nothing for a sequence that does not exist.
  void seq_cp(std::int64_t src, std::int64_t dst, std::int32_t p0, std::int32_t p1);
  /// LC-98.
  [[nodiscard]] Status seq_keep(std::int64_t seq);
  /// LC-98. Errors  kNotSupported: documented, the state is shared. @{
  [[nodiscard]] Status seq_add(std::int64_t seq, std::int32_t p0, std::int32_t p1,
                               std::int32_t delta);
  [[nodiscard]] Status seq_div(std::int64_t seq, std::int32_t p0, std::int32_t p1, std::int32_t d);
  /// @}
  /// Of any number (LC-90).
  [[nodiscard]] virtual Extremes seq_pos(std::int64_t seq) const = 0;
  virtual void clear(bool data) = 0;

  /// Without `seqs`.
  [[nodiscard]] virtual ShownStates shown() const = 0;
  /// Walks the internal state; nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }

 protected:
  /// The batch passed check_batch; sequences and positions are as the caller gave them.
  /// Errors  as decode; kPrecondition also: in original a valid batch with a position below 0.
  virtual Status do_decode(const Batch& batch, const SeeStates& see) = 0;
  // Sequences are in [0, n_seq_max).
  virtual bool do_seq_rm(std::int32_t seq, const Range& range) = 0;
  /// src is not dst.
  virtual void do_seq_cp(std::int32_t src, std::int32_t dst) = 0;
  virtual void do_seq_keep(std::int32_t seq) = 0;
  /// delta is not 0, and the range does not begin where it ends. Errors  kNotSupported as seq_add;
  /// kPrecondition: the position would leave its type.
  virtual Status do_seq_add(std::int32_t seq, const Range& range, std::int32_t delta) = 0;
  /// d is not 1, and the range does not begin where it ends. Errors  kNotSupported as seq_add;
  /// kPrecondition: d is below 1 and the position in range.
  virtual Status do_seq_div(std::int32_t seq, const Range& range, std::int32_t d) = 0;

  [[nodiscard]] bool has(Quirk quirk) const { return options_.quirks.has(quirk); }

 private:
  /// Errors  kPrecondition: seq is not in [0, n_seq_max).
  [[nodiscard]] Status named(std::int64_t seq) const;

  RecurrentOptions options_;
};

using MakeRecurrent =
    std::function<Result<std::unique_ptr<RecurrentMemory>>(const RecurrentOptions& options)>;

}  // namespace kvo::cells
