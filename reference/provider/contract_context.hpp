// reference/provider/contract_context.hpp: the cache kind `provider.context`: lookup helpers.
//
// A context carries a provider to code deep below; contexts are immutable and derive from others.
//
// Words    key   one for both ways to store: an inner context shadows outer ones.
// Source   rules ZF-72 to ZF-74.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "reference/provider/contract_contiguous.hpp"

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

// ---- Operations. They derive from the current context and ask it. ----

/// What is stored: a contiguous cache, another provider, or null.
enum class Stored : std::uint8_t { kKv, kPaged, kNil };
BOOST_DESCRIBE_ENUM(Stored, kKv, kPaged, kNil)

/// What was found.
enum class FoundKind : std::uint8_t { kKv, kPaged, kTypedNilKv };
BOOST_DESCRIBE_ENUM(FoundKind, kKv, kPaged, kTypedNilKv)

struct Background {
  static constexpr std::string_view kName = "background";
  static constexpr std::string_view kDoc = "Starts again with nothing stored (ZF-72).";
  using Returns = Nothing;
};
BOOST_DESCRIBE_STRUCT(Background, (), ())

struct WithCache {
  static constexpr std::string_view kName = "with_cache";
  static constexpr std::string_view kDoc = "Stores a provider (ZF-72).";
  using Returns = Nothing;
  Stored kind = Stored::kKv;
};
BOOST_DESCRIBE_STRUCT(WithCache, (), (kind))

struct WithKvCache {
  static constexpr std::string_view kName = "with_kv_cache";
  static constexpr std::string_view kDoc = "Stores a contiguous cache, or a null one (ZF-73).";
  using Returns = Nothing;
  Stored kind = Stored::kKv;
};
BOOST_DESCRIBE_STRUCT(WithKvCache, (), (kind))

struct WithCacheNested {
  static constexpr std::string_view kName = "with_cache_nested";
  static constexpr std::string_view kDoc = "Stores a provider, then another on top (ZF-72).";
  using Returns = Nothing;
  Stored outer = Stored::kKv;
  Stored inner = Stored::kKv;
};
BOOST_DESCRIBE_STRUCT(WithCacheNested, (), (outer, inner))

struct GetCache {
  static constexpr std::string_view kName = "get_cache";
  static constexpr std::string_view kDoc = "Finds the stored provider (ZF-73).";
  struct Returns {
    bool found = false;
    std::optional<FoundKind> kind = std::nullopt;
  };
};
BOOST_DESCRIBE_STRUCT(GetCache, (), ())
BOOST_DESCRIBE_STRUCT(GetCache::Returns, (), (found, kind))

struct GetCacheOtherType {
  static constexpr std::string_view kName = "get_cache_other_type";
  static constexpr std::string_view kDoc = "Asks for another element type (ZF-73).";
  struct Returns {
    bool found = false;
  };
};
BOOST_DESCRIBE_STRUCT(GetCacheOtherType, (), ())
BOOST_DESCRIBE_STRUCT(GetCacheOtherType::Returns, (), (found))

struct GetKvCache {
  static constexpr std::string_view kName = "get_kv_cache";
  static constexpr std::string_view kDoc = "Finds the stored contiguous cache (ZF-74).";
  struct Returns {
    bool found = false;
    bool nil = false;
  };
};
BOOST_DESCRIBE_STRUCT(GetKvCache, (), ())
BOOST_DESCRIBE_STRUCT(GetKvCache::Returns, (), (found, nil))

using ContextOps = boost::mp11::mp_list<Background, WithCache, WithKvCache, WithCacheNested,
                                        GetCache, GetCacheOtherType, GetKvCache>;

/// The cache kind `provider.context`.
[[nodiscard]] const CacheKind& context_kind();

/// Makes a context with nothing stored.
using MakeContext = std::function<std::shared_ptr<const Context>(Profile profile)>;

/// A subject whose contexts come from `make`.
[[nodiscard]] Subject make_context_subject(std::string engine, std::string doc, MakeContext make);

}  // namespace kvo::provider
