// optimized/positional/host_store.hpp: rows and masks of a causal cache in host memory.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "optimized/positional/mask.hpp"
#include "optimized/positional/store.hpp"

namespace kvo::optimized {

/// Rows of all cells a layer; a mask that is changed from pass to pass.
class PositionalHostStore final : public PositionalStore {
 public:
  explicit PositionalHostStore(positional::Shift shift) : shift_(std::move(shift)) {}

  void open(const Plan& plan) noexcept override { plan_ = plan; }

  void set_layer(std::int64_t layer) noexcept override;
  Status make_rows(const LayerRows::Form& form) override;
  Status put(const PositionalPass& pass, const positional::Rows& k,
             const positional::Rows& v) override;
  Result<positional::Shown> show(const CellRange& range) override;

  Status prepare_keys(const KeyGroup& group) override;
  Status reserve_keys() override { return {}; }
  void commit_keys() noexcept override;
  void cancel_keys() noexcept override { shifted_.clear(); }

  Status reserve_mask(const PositionalPass& pass) override;
  void show_mask(PositionalPass& pass, std::span<const char> ahead) noexcept override;
  void forget_mask() noexcept override { mask_.forget(); }

 private:
  /// Keys of consecutive cells that the shift function moved, in the storage type.
  struct ShiftedKeys {
    LayerRows* rows = nullptr;
    std::int64_t first = 0;
    std::vector<std::byte> keys;
    std::vector<std::int32_t> cells;  ///< only these are written; empty: all
  };

  [[nodiscard]] MaskRows::Layout layout(const PositionalPass& pass) const;
  [[nodiscard]] SeenCells seen(const BatchSequence& sequence, std::int32_t position,
                               bool ahead) const;

  positional::Shift shift_;
  Plan plan_;
  std::int64_t layer_ = 0;
  LayerRows* rows_ = nullptr;  ///< of the current layer; null without storage
  std::map<std::int64_t, LayerRows> layers_;
  std::vector<ShiftedKeys> shifted_;
  MaskRows mask_;
};

}  // namespace kvo::optimized
