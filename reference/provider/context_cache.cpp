#include "reference/provider/context_cache.hpp"

namespace kvo::provider {

std::shared_ptr<const Context> CacheContext::make(QuirkSet<Quirk> quirks) {
  return std::make_shared<CacheContext>(quirks, Lookup<Provider>{});
}

std::shared_ptr<const Context> CacheContext::with_cache(std::shared_ptr<Provider> cache) const {
  const bool found = cache != nullptr;
  return std::make_shared<CacheContext>(quirks_, Lookup<Provider>{found, std::move(cache)});
}

std::shared_ptr<const Context> CacheContext::with_kv_cache(
    std::shared_ptr<Contiguous> cache) const {
  const bool found = cache != nullptr || quirks_.has(Quirk::kNullKvFound);  // ZF-73
  return std::make_shared<CacheContext>(quirks_, Lookup<Provider>{found, std::move(cache)});
}

Lookup<Provider> CacheContext::get_cache(DType element) const {
  return element == DType::kF32 ? stored_ : Lookup<Provider>{};
}

Lookup<Contiguous> CacheContext::get_kv_cache() const {
  auto kv = std::dynamic_pointer_cast<Contiguous>(stored_.cache);
  return {kv != nullptr, kv};
}

}  // namespace kvo::provider
