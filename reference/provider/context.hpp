// reference/provider/context.hpp: the cache kind `provider.context`: lookup helpers.
//
// A context carries a provider to code deep below; contexts are immutable and derive from others.
//
// Words    key   one for both ways to store: an inner context shadows outer ones.
// Source   rules ZF-72 to ZF-74.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "reference/provider/contiguous.hpp"

namespace kvo::provider {

/// What a lookup finds. Original: a null contiguous cache that was stored counts as found (ZF-73).
template <class Cache>
struct Lookup {
  bool found = false;
  std::shared_ptr<Cache> cache = nullptr;
};

/// An immutable context. No call fails.
class Context {
 public:
  virtual ~Context() = default;

  /// A context with `cache` on top of this one; null counts as absent, but shadows (ZF-72).
  [[nodiscard]] virtual std::shared_ptr<const Context> with_cache(
      std::shared_ptr<Provider> cache) const = 0;
  /// The same for a contiguous cache; original: null is stored as a cache (ZF-73).
  [[nodiscard]] virtual std::shared_ptr<const Context> with_kv_cache(
      std::shared_ptr<Contiguous> cache) const = 0;
  /// The stored provider, if its elements are of that type: all here are f32 (ZF-73).
  [[nodiscard]] virtual Lookup<Provider> get_cache(DType element) const = 0;
  /// The stored provider, if it is a contiguous cache and not null (ZF-74).
  [[nodiscard]] virtual Lookup<Contiguous> get_kv_cache() const = 0;
};

/// Makes a context with nothing stored.
using MakeContext = std::function<std::shared_ptr<const Context>(QuirkSet<Quirk> quirks)>;

}  // namespace kvo::provider
