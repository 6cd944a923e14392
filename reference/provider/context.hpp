// reference/provider/context.hpp: the cache kind `provider.context`: lookup helpers.
//
// A context carries a provider to code deep below; contexts are immutable and derive from others.
//
// Words    key   one for both ways to store: an inner context shadows outer ones.
// Source   rules ZF-72 to ZF-74.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/provider/contiguous.hpp"
#include "reference/provider/operations.hpp"

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

/// What is stored: a contiguous cache, another provider, or null.
enum class Stored : std::uint8_t { kKv, kPaged, kNil };
BOOST_DESCRIBE_ENUM(Stored, kKv, kPaged, kNil)

/// What was found.
enum class FoundKind : std::uint8_t { kKv, kPaged, kTypedNilKv };
BOOST_DESCRIBE_ENUM(FoundKind, kKv, kPaged, kTypedNilKv)

KVO_OPERATION(Background, background, "Starts again with nothing stored (ZF-72).", Nothing)
KVO_OPERATION(WithCache, with_cache, "Stores a provider (ZF-72).", Nothing,
              (Stored, kind, "what is stored", Stored::kKv))
KVO_OPERATION(WithKvCache, with_kv_cache, "Stores a contiguous cache, or a null one (ZF-73).",
              Nothing, (Stored, kind, "what is stored", Stored::kKv))
KVO_OPERATION(WithCacheNested, with_cache_nested, "Stores a provider, then another on top (ZF-72).",
              Nothing, (Stored, outer, "kind of the outer cache", Stored::kKv),
              (Stored, inner, "kind of the inner cache", Stored::kKv))
KVO_RECORD(GetCacheReturns, (bool, found, "whether there was anything"),
           (std::optional<FoundKind>, kind, "what was found; absent: nothing"))
KVO_OPERATION(GetCache, get_cache, "Finds the stored provider (ZF-73).", GetCacheReturns)
KVO_RECORD(GetCacheOtherTypeReturns, (bool, found, "whether there was anything"))
KVO_OPERATION(GetCacheOtherType, get_cache_other_type, "Asks for another element type (ZF-73).",
              GetCacheOtherTypeReturns)
KVO_RECORD(GetKvCacheReturns, (bool, found, "whether there was anything"),
           (bool, nil, "whether it is a null cache"))
KVO_OPERATION(GetKvCache, get_kv_cache, "Finds the stored contiguous cache (ZF-74).",
              GetKvCacheReturns)

#define KVO_CONTEXT_OPERATIONS                                                                 \
  provider::Background, provider::WithCache, provider::WithKvCache, provider::WithCacheNested, \
      provider::GetCache, provider::GetCacheOtherType, provider::GetKvCache
using ContextOps = boost::mp11::mp_list<KVO_CONTEXT_OPERATIONS>;

/// The cache kind `provider.context`.
[[nodiscard]] const CacheKind& context_kind();

/// A subject whose contexts come from `make`.
[[nodiscard]] Subject make_context_subject(std::string variant, std::string doc, MakeContext make);

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_CONTEXT_OPERATIONS)
}  // namespace kvo
