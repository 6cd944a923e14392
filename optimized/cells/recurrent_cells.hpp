// optimized/cells/recurrent_cells.hpp: `cells.recurrent`, fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimized/cells/batch_plan.hpp"
#include "optimized/cells/owners.hpp"
#include "reference/cells/recurrent.hpp"

namespace kvo::optimized {

/// States in sets of bits: which cells are free, and who owns each. A slot is always found, so that
/// nothing is rehearsed; all memory is taken at the beginning or kept.
class RecurrentCells final : public cells::RecurrentMemory {
 public:
  /// Throws std::bad_alloc.
  static Result<std::unique_ptr<cells::RecurrentMemory>> make(
      const cells::RecurrentOptions& options);
  explicit RecurrentCells(const cells::RecurrentOptions& options);

  [[nodiscard]] cells::Extremes seq_pos(std::int64_t seq) const override;
  void clear(bool data) override;
  [[nodiscard]] cells::ShownStates shown() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  /// Errors  as RecurrentMemory::do_decode.
  Status do_decode(const cells::Batch& batch, const cells::SeeStates& see) override;
  bool do_seq_rm(std::int32_t seq, const cells::Range& range) override;
  void do_seq_cp(std::int32_t src, std::int32_t dst) override;
  void do_seq_keep(std::int32_t seq) override;
  /// Errors  as RecurrentMemory::do_seq_add.
  Status do_seq_add(std::int32_t seq, const cells::Range& range, std::int32_t delta) override;
  /// Errors  as RecurrentMemory::do_seq_div.
  Status do_seq_div(std::int32_t seq, const cells::Range& range, std::int32_t d) override;

 private:
  struct State {
    std::int32_t pos = -1;
    std::int32_t src = -1;
    OwnerSet owners = {};
  };
  /// The smallest and largest tail of an ubatch.
  struct Tails {
    std::int32_t low = 0;
    std::int32_t high = 0;
  };

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(states_.size()); }
  [[nodiscard]] State& at(std::int32_t cell) { return states_[static_cast<std::size_t>(cell)]; }
  [[nodiscard]] const State& at(std::int32_t cell) const {
    return states_[static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] std::int32_t& tail(std::int32_t seq) {
    return tails_[static_cast<std::size_t>(seq)];
  }
  [[nodiscard]] std::int32_t tail(std::int32_t seq) const {
    return tails_[static_cast<std::size_t>(seq)];
  }
  [[nodiscard]] std::int64_t& rollback(std::int32_t seq) {
    return rollback_[static_cast<std::size_t>(seq)];
  }
  /// The tail of a sequence, if its position is in range; -1 otherwise.
  [[nodiscard]] std::int32_t tail_in(std::int32_t seq, const cells::Range& range) const;
  /// Whether a sequence is not the only owner of a cell.
  [[nodiscard]] bool is_shared(std::int32_t cell) const { return at(cell).owners.count() > 1; }
  [[nodiscard]] std::int32_t free_from(std::int64_t begin) const;
  bool leave(std::int32_t cell, std::int32_t seq);
  [[nodiscard]] Tails find_tails();
  void exchange(std::int32_t a, std::int32_t b);
  void place(std::size_t begin, std::size_t end, const cells::SeeStates& see);

  std::vector<State> states_;
  std::vector<std::int32_t> tails_;     ///< [sequence]
  std::vector<std::int64_t> rollback_;  ///< [sequence]
  OwnerSet taken_;                      ///< cells with owners
  std::int64_t head_ = 0;
  std::int64_t used_ = 0;
  BatchPlan plan_;
  std::vector<std::int32_t> seqs_;  ///< of the ubatch in the making
  std::vector<std::int64_t> copy_;  ///< PlacedStates::copy of it
};

}  // namespace kvo::optimized
