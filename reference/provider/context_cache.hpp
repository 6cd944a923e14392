// reference/provider/context_cache.hpp: the reference of `provider.context`.
#pragma once

#include <memory>

#include "reference/provider/context.hpp"

namespace kvo::provider {

/// What is stored last shadows everything before it, so it is all that a context has to hold.
class CacheContext final : public Context {
 public:
  static std::shared_ptr<const Context> make(QuirkSet<Quirk> quirks) {
    return std::make_shared<CacheContext>(quirks, Lookup<Provider>{});
  }

  /// `found` says whether a provider counts as stored; a found null is a null contiguous cache.
  CacheContext(QuirkSet<Quirk> quirks, Lookup<Provider> stored)
      : quirks_(quirks), stored_(std::move(stored)) {}

  [[nodiscard]] std::shared_ptr<const Context> with_cache(
      std::shared_ptr<Provider> cache) const override {
    const bool found = cache != nullptr;
    return std::make_shared<CacheContext>(quirks_, Lookup<Provider>{found, std::move(cache)});
  }
  [[nodiscard]] std::shared_ptr<const Context> with_kv_cache(
      std::shared_ptr<Contiguous> cache) const override {
    const bool found = cache != nullptr || quirks_.has(Quirk::kNullKvFound);  // ZF-73
    return std::make_shared<CacheContext>(quirks_, Lookup<Provider>{found, std::move(cache)});
  }
  [[nodiscard]] Lookup<Provider> get_cache(DType element) const override {
    return element == DType::kF32 ? stored_ : Lookup<Provider>{};
  }
  [[nodiscard]] Lookup<Contiguous> get_kv_cache() const override {
    auto kv = std::dynamic_pointer_cast<Contiguous>(stored_.cache);
    return {kv != nullptr, kv};
  }

 private:
  QuirkSet<Quirk> quirks_;
  Lookup<Provider> stored_;
};

}  // namespace kvo::provider
