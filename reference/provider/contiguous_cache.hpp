// reference/provider/contiguous_cache.hpp: the reference of `provider.contiguous`.
#pragma once

#include <memory>
#include <vector>

#include "reference/contract/values/stored_rows.hpp"
#include "reference/provider/contiguous.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract: a zeroed K and V buffer a layer.
class ContiguousCache : public Contiguous {
 public:
  /// Errors  as MakeContiguous says.
  static Result<std::unique_ptr<Contiguous>> make(const ContiguousOptions& options,
                                                  QuirkSet<Quirk> quirks);

  ContiguousCache(const ContiguousOptions& options, QuirkSet<Quirk> quirks)
      : layers_(static_cast<std::size_t>(options.num_layers)),
        max_seq_len_(options.max_seq_len),
        storage_(options.storage),
        quirks_(quirks) {}

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
  struct Layer {
    std::shared_ptr<StoredRows> k;  ///< [batch][max_seq_len][dim]; null until pinned
    std::shared_ptr<StoredRows> v;
    std::int64_t cursor = 0;
    std::int64_t batch = 0;
    std::int64_t dim = 0;
  };

  /// Pins batch and dim of K and makes the buffers (ZF-9.3).
  [[nodiscard]] Status pin(Layer& layer, const Tensor& k) const;
  /// Whether V can be copied into `layer` with K's sizes (ZF-9.7, ZF-11, ZF-18).
  [[nodiscard]] Status check_v(const Layer& layer, const Rows& rows) const;
  /// What a size product that does not fit answers (ZF-1).
  [[nodiscard]] Error overflow(const char* what) const {
    return fail(quirks_.has(Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
                what);
  }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::vector<Layer> layers_;
  std::int64_t max_seq_len_;
  StorageFormat storage_;
  QuirkSet<Quirk> quirks_;
};

}  // namespace kvo::provider
