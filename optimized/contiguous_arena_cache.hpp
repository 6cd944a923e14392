// optimized/contiguous_arena_cache.hpp: `provider.contiguous`, fast on a CPU.
#pragma once

#include <memory>
#include <vector>

#include "optimized/arena.hpp"
#include "reference/provider/contract_contiguous.hpp"

namespace kvo::optimized {

/// The buffers of all layers lie in one arena that is never cleared (a query shows written cells
/// only), and a batch row is copied as one run.
class ContiguousArenaCache final : public provider::Contiguous {
 public:
  /// Errors  kPrecondition, documented kOutOfRange: negative sizes (ZF-8).
  static Result<std::unique_ptr<provider::Contiguous>> make(std::int64_t num_layers,
                                                            std::int64_t max_seq_len,
                                                            Profile profile);

  ContiguousArenaCache(std::int64_t num_layers, std::int64_t max_seq_len, Profile profile)
      : layers_(static_cast<std::size_t>(num_layers)),
        max_seq_len_(max_seq_len),
        documented_(profile == Profile::kDocumented) {}

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
    return fail(documented_ ? Code::kOutOfRange : Code::kPrecondition, what);
  }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::vector<Layer> layers_;
  Arena arena_;
  std::int64_t max_seq_len_;
  bool documented_;
};

}  // namespace kvo::optimized
