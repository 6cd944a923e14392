// reference/provider/contiguous_cache.hpp: the reference of `provider.contiguous`.
#pragma once

#include <memory>
#include <vector>

#include "reference/provider/contract_contiguous.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract: a zeroed K and V buffer a layer.
class ContiguousCache : public Contiguous {
 public:
  /// Errors  kPrecondition, documented kOutOfRange: negative sizes (ZF-8).
  static Result<std::unique_ptr<Contiguous>> make(std::int64_t num_layers, std::int64_t max_seq_len,
                                                  Profile profile);

  ContiguousCache(std::int64_t num_layers, std::int64_t max_seq_len, Profile profile)
      : layers_(static_cast<std::size_t>(num_layers)),
        max_seq_len_(max_seq_len),
        quirks_(Quirks::of(profile)) {}

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(layers_.size());
  }
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  /// Where the original departs from what it promises.
  struct Quirks {
    bool null_aborts;         ///< ZF-9.2
    bool pins_before_checks;  ///< ZF-10
    bool v_shape_ignored;     ///< ZF-11
    bool negative_truncate;   ///< ZF-18
    bool sizes_unchecked;     ///< ZF-1: a product that overflows aborts
    static Quirks of(Profile profile);
  };
  struct Layer {
    std::shared_ptr<HostStorage> k;  ///< [batch][max_seq_len][dim]; null until pinned
    std::shared_ptr<HostStorage> v;
    std::int64_t cursor = 0;
    std::int64_t batch = 0;
    std::int64_t dim = 0;
  };

  /// Pins batch and dim of K and makes the buffers (ZF-9.3).
  [[nodiscard]] Status pin(Layer& layer, const Tensor& k) const;
  /// Whether V can be copied into `layer` with K's sizes (ZF-9.7, ZF-11, ZF-18).
  [[nodiscard]] Status check_v(const Layer& layer, const Rows& rows) const;
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::vector<Layer> layers_;
  std::int64_t max_seq_len_;
  Quirks quirks_;
};

}  // namespace kvo::provider
