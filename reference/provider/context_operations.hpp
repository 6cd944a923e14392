// reference/provider/context_operations.hpp: the operations of `provider.context`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/provider/context.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

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
KVO_DESCRIBE(Background)

struct WithCache {
  static constexpr std::string_view kName = "with_cache";
  static constexpr std::string_view kDoc = "Stores a provider (ZF-72).";
  using Returns = Nothing;
  Stored kind = Stored::kKv;
};
KVO_DESCRIBE(WithCache, (kind, "what is stored"))

struct WithKvCache {
  static constexpr std::string_view kName = "with_kv_cache";
  static constexpr std::string_view kDoc = "Stores a contiguous cache, or a null one (ZF-73).";
  using Returns = Nothing;
  Stored kind = Stored::kKv;
};
KVO_DESCRIBE(WithKvCache, (kind, "what is stored"))

struct WithCacheNested {
  static constexpr std::string_view kName = "with_cache_nested";
  static constexpr std::string_view kDoc = "Stores a provider, then another on top (ZF-72).";
  using Returns = Nothing;
  Stored outer = Stored::kKv;
  Stored inner = Stored::kKv;
};
KVO_DESCRIBE(WithCacheNested, (outer, "kind of the outer cache"),
             (inner, "kind of the inner cache"))

struct GetCache {
  static constexpr std::string_view kName = "get_cache";
  static constexpr std::string_view kDoc = "Finds the stored provider (ZF-73).";
  struct Returns {
    bool found = false;
    std::optional<FoundKind> kind = std::nullopt;
  };
};
KVO_DESCRIBE(GetCache)
KVO_DESCRIBE(GetCache::Returns, (found, "whether there was anything"),
             (kind, "what was found; absent: nothing"))

struct GetCacheOtherType {
  static constexpr std::string_view kName = "get_cache_other_type";
  static constexpr std::string_view kDoc = "Asks for another element type (ZF-73).";
  struct Returns {
    bool found = false;
  };
};
KVO_DESCRIBE(GetCacheOtherType)
KVO_DESCRIBE(GetCacheOtherType::Returns, (found, "whether there was anything"))

struct GetKvCache {
  static constexpr std::string_view kName = "get_kv_cache";
  static constexpr std::string_view kDoc = "Finds the stored contiguous cache (ZF-74).";
  struct Returns {
    bool found = false;
    bool nil = false;
  };
};
KVO_DESCRIBE(GetKvCache)
KVO_DESCRIBE(GetKvCache::Returns, (found, "whether there was anything"),
             (nil, "whether it is a null cache"))

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
