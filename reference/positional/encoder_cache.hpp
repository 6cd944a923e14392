// reference/positional/encoder_cache.hpp: one encoder result, replaced as a whole.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "reference/positional/cache.hpp"

namespace kvo::positional {

/// Rows without positions, for one sequence (OK-70 to OK-77).
class EncoderCache : public Cache {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Cache>> make(const CacheOptions& options);
  explicit EncoderCache(const CacheOptions& options)
      : Cache(options.quirks), backend_(options.backend) {}

  Status do_set_config(const BackendConfig& config, std::optional<std::int64_t> member) override;
  Status do_init(const InitOptions& arguments) override;
  Status do_start_forward(const Batch& batch) override;
  Status do_set_layer(std::int64_t layer) override;
  Status do_put(const Rows& k, const Rows& v) override;
  Result<Shown> do_get() override;
  Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) override;
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override;
  [[nodiscard]] Result<bool> do_encoder_cached() const override;
  using Cache::do_set_causal;  // which only a causal cache has: a wrapper may ask

 private:
  /// The token that a result belongs to.
  struct Entry {
    std::int32_t position = 0;
    std::int64_t sequence = 0;
  };
  /// What was put last; copies of a cache share it.
  struct Layer {                // NOLINT(bugprone-exception-escape): as Tensor
    std::shared_ptr<Tensor> k;  ///< [token][kv_head][k_head_dim], f32
    std::shared_ptr<Tensor> v;  ///< [token][kv_head][v_head_dim], f32; get permutes
    bool written = false;
  };

  [[nodiscard]] BackendConfig effective() const { return config_.value_or(backend_); }

  BackendConfig backend_;
  std::optional<BackendConfig> config_;
  std::optional<Entry> remembered_;  ///< by start_forward (OK-71)
  std::optional<Entry> stored_;      ///< by put (OK-72)
  bool cached_ = false;
  bool reserve_ = false;
  std::int64_t layer_ = 0;
  std::map<std::int64_t, Layer> layers_;
};

}  // namespace kvo::positional
