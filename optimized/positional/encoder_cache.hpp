// optimized/positional/encoder_cache.hpp: one encoder result, stored in the order it is shown in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "optimized/positional/cells.hpp"
#include "optimized/positional/member.hpp"
#include "optimized/positional/rows.hpp"

namespace kvo::optimized {

/// Rows without positions, for one sequence (OK-70 to OK-77).
class PositionalEncoderCache final : public PositionalMember {
 public:
  [[nodiscard]] static Result<std::unique_ptr<positional::Cache>> make(
      const positional::CacheOptions& options);
  PositionalEncoderCache(const positional::BackendConfig& backend,
                         QuirkSet<positional::Quirk> quirks)
      : PositionalMember(backend, quirks) {}

  Status prepare_init(const positional::InitOptions& arguments) override;
  Status prepare_start(const positional::Batch& batch) override;
  Status prepare_copy(std::int64_t source, std::int64_t target, std::int32_t length) override;
  Status prepare_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override;
  void commit() noexcept override { state_ = next_; }
  void commit_unwound(const positional::Batch& batch) noexcept override;
  void cancel() noexcept override {}  // each change is prepared anew

  Status do_set_layer(std::int64_t layer) override;
  Status do_put(const positional::Rows& k, const positional::Rows& v) override;
  Result<positional::Shown> do_get() override;
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t /*sequence*/,
                                           std::int32_t /*position*/) const override {
    return true;
  }
  [[nodiscard]] Result<bool> do_encoder_cached() const override { return state_.cached; }

 private:
  /// The token that a result belongs to.
  struct Entry {
    std::int32_t position = 0;
    std::int64_t sequence = 0;
  };
  struct State {
    std::optional<Entry> remembered;  ///< by start_forward (OK-71)
    std::optional<Entry> stored;      ///< by put (OK-72)
    bool cached = false;
    bool reserve = false;
  };
  /// The rows of a put: those of a pool that has just as many cells.
  struct Layer {
    Layer(const LayerRows::Plan& plan, const LayerRows::Form& form)
        : rows(plan, form), tokens(plan.cells) {}
    LayerRows rows;
    std::int64_t tokens;
    bool written = false;
  };

  [[nodiscard]] bool covers(std::int64_t sequence, std::int32_t begin, std::int32_t end) const;

  State state_;
  State next_;
  std::int64_t layer_ = 0;
  std::map<std::int64_t, Layer> layers_;
};

}  // namespace kvo::optimized
