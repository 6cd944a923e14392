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
