// What must be true of a recurrent memory, at any look.
//
// Judged  `used` counts the cells with owners; a tail is a cell that its sequence owns; extremes
//         are those of the cells, and what is asked for is what was last shown, while nothing has
//         changed; each token of a batch is in one ubatch, and an ubatch's sequences have cells of
//         their own, in a row (LC-90 to LC-94).
// Skipped positions below 0, and in profile original `used` (state_below_zero).
#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "properties/cells/history.hpp"
#include "properties/runner/oracle.hpp"

namespace kvo::cells {
namespace {

class RecurrentHistory final : public Oracle {
 public:
  RecurrentHistory(const RecurrentConfig& config, QuirkSet<Quirk> quirks)
      : cells_(config.n_seq_max), counts_used_(!quirks.has(Quirk::kStateBelowZero)) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    if (seen.unsupported || seen.error) return skip();
    if (op.as<ShowMemory>() != nullptr) return judged(wrong_memory(seen.as<ShowMemory::Returns>()));
    if (const auto* asked = op.as<SeqPos>())
      return judged(wrong_extremes(asked->seq, seen.as<SeqPos::Returns>()));
    extremes_.reset();
    if (const auto* batch = op.as<DecodeStates>())
      return judged(wrong_steps(*batch, seen.as<DecodeStates::Returns>()));
    return skip();
  }

 private:
  [[nodiscard]] Words wrong_memory(const ShowMemory::Returns& shown) {
    if (std::ssize(shown.cells) != cells_ || std::ssize(shown.rollback) != cells_)
      return "not every cell is shown";
    std::int64_t used = 0;
    ExtremesOfCells extremes;
    for (const ShownState& cell : shown.cells) {
      if (!cell.seqs.empty()) ++used;
      if (cell.seqs.empty() && cell.pos >= 0)
        return "cell " + std::to_string(cell.cell) + " has a position, and is nobody's";
      for (const std::int32_t seq : cell.seqs) {
        if (cell.pos < 0) return std::nullopt;
        extremes.add(seq, cell.pos);
      }
    }
    if (counts_used_ && shown.used != used)
      return std::to_string(shown.used) + " cells are used, " + std::to_string(used) +
             " have owners";
    for (std::int64_t seq = 0; seq < cells_; ++seq) {
      const std::int64_t tail = shown.cells[static_cast<std::size_t>(seq)].tail;
      if (tail < -1 || tail >= cells_) return "a tail is no cell";
      if ((tail >= 0) != (extremes.of(seq) != Extremes()))
        return "sequence " + std::to_string(seq) + " has a state and no tail, or the reverse";
      if (tail < 0) continue;
      const auto& owners = shown.cells[static_cast<std::size_t>(tail)].seqs;
      if (std::ranges::find(owners, seq) == owners.end())
        return "the tail of sequence " + std::to_string(seq) + " is another's cell";
    }
    if (auto words = extremes.wrong(shown.seqs)) return words;
    extremes_ = std::move(extremes);
    return std::nullopt;
  }

  [[nodiscard]] Words wrong_extremes(std::int64_t seq, const SeqPos::Returns& shown) const {
    if (!extremes_ || extremes_->of(seq) == shown) return std::nullopt;
    return "the extremes are not those that were shown last";
  }

  [[nodiscard]] Words wrong_steps(const DecodeStates& op,
                                  const DecodeStates::Returns& shown) const {
    for (const ShownStep& step : shown.ubatches) {
      std::set<std::int64_t> sequences;
      for (const std::int32_t row : step.rows) {
        if (row < 0 || row >= std::ssize(op.seqs)) return "an ubatch has a token of no batch";
        sequences.insert(op.seqs[static_cast<std::size_t>(row)].front());
      }
      if (step.head < 0 || step.head + step.n > cells_ || step.n < std::ssize(sequences))
        return "there is not one cell for each sequence of an ubatch";
      if (std::ssize(step.copy) != step.n) return "not every cell of an ubatch has a state";
    }
    return wrong_rows(shown.ubatches, op.seqs.size());
  }

  std::int64_t cells_;
  bool counts_used_;
  std::optional<ExtremesOfCells> extremes_ = std::nullopt;  ///< while they hold
};

}  // namespace

std::unique_ptr<Oracle> recurrent_history(const RecurrentConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<RecurrentHistory>(config, quirks);
}

}  // namespace kvo::cells
