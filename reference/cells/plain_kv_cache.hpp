// reference/cells/plain_kv_cache.hpp: the reference of `cells.kv` and `cells.iswa`.
#pragma once

#include "reference/cells/plain_half_cache.hpp"

namespace kvo::cells {

/// One half or two, that are changed one after the other.
class PlainKv final : public KvCache {
 public:
  static Result<std::unique_ptr<KvCache>> make(const KvOptions& options);
  explicit PlainKv(const KvOptions& options);

  void clear(bool data) override;
  bool update() override;
  [[nodiscard]] std::vector<ShownTable> tables(Half half) const override;
  [[nodiscard]] std::vector<StreamRows> rows(Half half) const override;

 protected:
  Status do_decode(const Batch& batch, const SeeUbatch& see) override;
  [[nodiscard]] Result<std::vector<std::int32_t>> do_find_slot(const Batch& batch, Half half,
                                                               bool adjacent) const override;
  void do_seq_rm(std::int32_t seq, const Range& range) override;
  Status do_seq_share(std::int32_t src, std::int32_t dst, const Range& range) override;
  Status do_seq_copy(std::int32_t src, std::int32_t dst) override;
  [[nodiscard]] bool covers(std::int32_t seq, std::int32_t end) const override;
  void do_seq_keep(std::int32_t seq) override;
  Status do_seq_add(std::int32_t seq, const Range& range, std::int32_t delta) override;
  Status do_seq_div(std::int32_t seq, const Range& range, std::int32_t d) override;
  [[nodiscard]] Extremes do_seq_pos(std::int32_t seq) const override;
  [[nodiscard]] SavedState do_state_save(std::int32_t seq, bool partial) override;
  Status do_state_load(const SavedState& state, std::int32_t seq) override;

 private:
  using Halves = std::vector<PlainHalf>;  ///< the window half is last

  /// How a batch is divided, and where its ubatches go: slots are [half][ubatch].
  struct Plan {
    std::vector<Ubatch> ubatches = {};
    std::vector<std::vector<Slots>> slots = {};
  };

  [[nodiscard]] const PlainHalf& half_of(Half half) const {
    return half == Half::kBase ? halves_.front() : halves_.back();
  }
  /// Errors  kFull (LC-37, LC-69).
  Result<Plan> plan(Halves& halves, const std::vector<Token>& tokens, std::int64_t n_ubatch) const;
  Status decode_tokens(Halves& halves, const std::vector<Token>& tokens, const Batch& batch,
                       const SeeUbatch& see) const;
  /// LC-57.
  void take_out(PlainHalf& half, const std::vector<Token>& tokens, const Ubatch& ubatch) const;

  Halves halves_;
  std::int64_t tags_ = 0;  ///< tokens of the decodes that succeeded
};

}  // namespace kvo::cells
