// reference/provider/context_cache.hpp: the reference of `provider.context`.
#pragma once

#include <memory>

#include "reference/provider/context.hpp"

namespace kvo::provider {

/// What is stored last shadows everything before it, so it is all that a context has to hold.
class CacheContext final : public Context {
 public:
  static std::shared_ptr<const Context> make(QuirkSet<Quirk> quirks);

  /// `found` says whether a provider counts as stored; a found null is a null contiguous cache.
  CacheContext(QuirkSet<Quirk> quirks, Lookup<Provider> stored)
      : quirks_(quirks), stored_(std::move(stored)) {}

  [[nodiscard]] std::shared_ptr<const Context> with_cache(
      std::shared_ptr<Provider> cache) const override;
  [[nodiscard]] std::shared_ptr<const Context> with_kv_cache(
      std::shared_ptr<Contiguous> cache) const override;
  [[nodiscard]] Lookup<Provider> get_cache(DType element) const override;
  [[nodiscard]] Lookup<Contiguous> get_kv_cache() const override;

 private:
  QuirkSet<Quirk> quirks_;
  Lookup<Provider> stored_;
};

}  // namespace kvo::provider
