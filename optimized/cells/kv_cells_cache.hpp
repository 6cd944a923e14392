// optimized/cells/kv_cells_cache.hpp: `cells.kv` and `cells.iswa`, fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optimized/cells/batch_plan.hpp"
#include "optimized/cells/cell_half.hpp"
#include "reference/cells/cache.hpp"

namespace kvo::optimized {

/// A batch of one ubatch is placed without a rehearsal, whose outcome the search alone tells. All
/// scratch memory is kept: a decode that is no larger than earlier ones allocates nothing.
class KvCellsCache final : public cells::KvCache {
 public:
  /// Throws std::bad_alloc.
  static Result<std::unique_ptr<cells::KvCache>> make(const cells::KvOptions& options);
  explicit KvCellsCache(const cells::KvOptions& options);

  void clear(bool data) override;
  bool update() override;
  [[nodiscard]] std::vector<cells::ShownTable> tables(cells::Half half) const override;
  [[nodiscard]] std::vector<cells::StreamRows> rows(cells::Half half) const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  /// Errors  as KvCache::do_decode.
  Status do_decode(const cells::Batch& batch, const cells::SeeUbatch& see) override;
  /// Errors  as KvCache::do_find_slot.
  [[nodiscard]] Result<std::vector<std::int32_t>> do_find_slot(const cells::Batch& batch,
                                                               cells::Half half,
                                                               bool adjacent) const override;
  void do_seq_rm(std::int32_t seq, const cells::Range& range) override;
  /// Errors  as KvCache::do_seq_share.
  Status do_seq_share(std::int32_t src, std::int32_t dst, const cells::Range& range) override;
  /// Errors  as KvCache::do_seq_copy.
  Status do_seq_copy(std::int32_t src, std::int32_t dst) override;
  [[nodiscard]] bool covers(std::int32_t seq, std::int32_t end) const override;
  void do_seq_keep(std::int32_t seq) override;
  /// Errors  as KvCache::do_seq_add.
  Status do_seq_add(std::int32_t seq, const cells::Range& range, std::int32_t delta) override;
  /// Errors  as KvCache::do_seq_div.
  Status do_seq_div(std::int32_t seq, const cells::Range& range, std::int32_t d) override;
  [[nodiscard]] cells::Extremes do_seq_pos(std::int32_t seq) const override;
  [[nodiscard]] cells::SavedState do_state_save(std::int32_t seq, bool partial) override;
  /// Errors  as KvCache::do_state_load.
  Status do_state_load(const cells::SavedState& state, std::int32_t seq) override;

 private:
  class Placed;
  struct StreamCopy {
    std::int32_t src = 0;
    std::int32_t dst = 0;
  };
  /// How an ubatch lies in the runs and rows of the plan.
  struct UbatchPlace {
    std::size_t first_run = 0;
    std::size_t end_run = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  [[nodiscard]] CellHalf& half_of(cells::Half half) const {
    return halves_[half == cells::Half::kWindow ? 1 : 0];
  }
  /// The half that says what a sequence has (LC-68).
  [[nodiscard]] CellHalf& told() const { return halves_.back(); }
  /// Errors  as decode.
  [[nodiscard]] Status read(const cells::Batch& batch) const;
  [[nodiscard]] Status divide(std::int64_t n_ubatch);
  void lay_out();
  void reserve_places(bool second_split);
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] PlacedBatch placed(std::size_t ubatch, std::size_t half);
  [[nodiscard]] bool find_places();
  [[nodiscard]] bool rehearse(std::size_t half) noexcept;
  void put_heads_back(std::size_t half, std::size_t ubatch) noexcept;
  void abort(std::size_t ubatch);
  [[nodiscard]] MaskRule rule_of(std::size_t half, bool causal) const;
  [[nodiscard]] bool load_half(CellHalf& half, const std::vector<cells::SavedStream>& saved,
                               std::int32_t seq, std::vector<std::int32_t>& slots) noexcept;
  [[nodiscard]] Status load_sequence(const cells::SavedState& state, std::int32_t seq);
  [[nodiscard]] Status load_whole(const cells::SavedState& state);

  // Searching brings what is usable up to date, and reading a batch uses scratch memory.
  mutable std::vector<CellHalf> halves_;  ///< one, or base and window
  mutable BatchPlan plan_;
  std::vector<PlacedRun> runs_;
  std::vector<UbatchPlace> ubatches_;
  std::vector<std::vector<std::int32_t>> slots_;  ///< [half][number in the rows of the plan]
  std::vector<std::int64_t> heads_;               ///< before each ubatch of a rehearsal, by run
  std::vector<std::size_t> marks_;                ///< [ubatch]: what the journal had before it
  std::vector<StreamCopy> late_copies_;
  std::int64_t next_tag_ = 1;
};

}  // namespace kvo::optimized
