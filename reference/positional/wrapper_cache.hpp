// reference/positional/wrapper_cache.hpp: caches that run in step, one for each type of layer.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "reference/positional/causal_cache.hpp"
#include "reference/positional/encoder_cache.hpp"

namespace kvo::positional {

/// Members in order; put, get and what concerns a batch go to the selected one (OK-80 to OK-88).
class WrapperCache : public Cache {
 public:
  using Member = std::variant<CausalCache, EncoderCache>;
  using Members = std::vector<Member>;

  /// Errors  kPrecondition: no member; as CausalCache.
  [[nodiscard]] static Result<std::unique_ptr<Cache>> make(const CacheOptions& options);
  explicit WrapperCache(const CacheOptions& options);

  Status do_set_config(const BackendConfig& config, std::optional<std::int64_t> member) override;
  Status do_init(const InitOptions& arguments) override;
  Status do_start_forward(const Batch& batch) override;
  Status do_set_layer(std::int64_t layer) override;
  Status do_set_layer_type(std::int64_t type) override;
  [[nodiscard]] Result<std::int64_t> do_underlying_cache() const override;
  Status do_put(const Rows& k, const Rows& v) override;
  Result<Shown> do_get() override;
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override;
  Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) override;
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override;
  [[nodiscard]] Result<bool> do_encoder_cached() const override;

  /// For those who look on; valid until the next call.
  [[nodiscard]] const Members& members() const { return members_; }

 private:
  /// Does the same to copies of the members, in order up to the first that fails (OK-80). They take
  /// the members' place when none does, or when the cache has the quirk that keeps what was done.
  template <class Operation>
  [[nodiscard]] Status each(std::optional<Quirk> keeps, Operation&& operation);

  Members members_;
  std::int64_t selected_ = 0;
};

/// A member of a reference, which is the only one of a cache of its own; null for an encoder.
[[nodiscard]] inline const CausalCache* causal_member(const Cache& cache, std::size_t member) {
  const auto* wrapper = dynamic_cast<const WrapperCache*>(&cache);
  return wrapper != nullptr ? std::get_if<CausalCache>(&wrapper->members()[member])
                            : dynamic_cast<const CausalCache*>(&cache);
}

}  // namespace kvo::positional
