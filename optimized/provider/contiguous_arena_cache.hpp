// optimized/provider/contiguous_arena_cache.hpp: `provider.contiguous`, fast on a CPU.
#pragma once

#include <memory>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "reference/provider/contiguous.hpp"

namespace kvo::optimized {

/// The buffers of all layers lie in one arena that is never cleared (a query shows written cells
/// only), and a batch row is copied as one run.
class ContiguousArenaCache final : public provider::Contiguous {
 public:
  /// Errors  as provider::MakeContiguous says.
  static Result<std::unique_ptr<provider::Contiguous>> make(std::int64_t num_layers,
                                                            std::int64_t max_seq_len,
                                                            QuirkSet<provider::Quirk> quirks);

  ContiguousArenaCache(std::int64_t num_layers, std::int64_t max_seq_len,
                       QuirkSet<provider::Quirk> quirks)
      : layers_(static_cast<std::size_t>(num_layers)), max_seq_len_(max_seq_len), quirks_(quirks) {}

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(layers_.size());
  }
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  struct Layer {
    Buffer k;  ///< [batch][max_seq_len][dim]; without storage until pinned
    Buffer v;
    std::int64_t cursor = 0;
    std::int64_t batch = 0;
    std::int64_t dim = 0;
  };

  /// Makes the buffers of a layer and pins K's batch and dim.
  void pin(Layer& layer, const Tensor& k, std::size_t cells);
  [[nodiscard]] Status check_v(const Layer& layer, const provider::Rows& rows) const;
  [[nodiscard]] Error size_error(const char* what) const {
    return fail(has(provider::Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
                what);
  }
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::vector<Layer> layers_;
  Arena arena_{.written = Written::kBitByBit};
  ResultSides results_;
  std::int64_t max_seq_len_;
  QuirkSet<provider::Quirk> quirks_;
};

}  // namespace kvo::optimized
