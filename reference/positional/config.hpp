// reference/positional/config.hpp: what the header of a log says of a case.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/positional/cache.hpp"
#include "reference/positional/shift.hpp"

namespace kvo::positional {

KVO_DESCRIBE(BackendConfig, (cache_padding, "cells that a visible range is rounded to; 0 is 1"),
             (permuted_v, "whether V is shown as [kv_head][head_dim][cell]"),
             (mask_dtype, "element type of masks"))

/// The config of one cache, and of a wrapper's members. Absent numbers are 0.
struct CacheConfig {
  std::optional<MemberKind> cache = std::nullopt;
  std::optional<std::int32_t> window = std::nullopt;
  std::optional<std::int32_t> memory = std::nullopt;
  std::optional<std::int32_t> chunk = std::nullopt;
  std::optional<Nullable<ShiftConfig>> shift = std::nullopt;
  std::optional<BackendConfig> backend = std::nullopt;
};
KVO_DESCRIBE(CacheConfig, (cache, "which cache a wrapper's member is; absent elsewhere"),
             (window, "positions before a token that it sees"),
             (memory, "positions before the newest that are kept; absent: the window"),
             (chunk, "positions of a chunk"), (shift, "the shift function; null or absent: none"),
             (backend, "what the backend asks for; absent in members"))

/// The config of a wrapper.
struct WrapperConfig {
  std::vector<CacheConfig> caches;
  std::optional<BackendConfig> backend = std::nullopt;
};
KVO_DESCRIBE(WrapperConfig, (caches, "the members, in order"),
             (backend, "what the backend asks for, of all of them"))

/// The cache that a kind other than the wrapper is; nothing for the wrapper.
[[nodiscard]] std::optional<MemberKind> member_kind_of(const CacheKind& kind);

/// The members of a case of any kind, a single cache as the only one, each with its kind.
[[nodiscard]] std::vector<CacheConfig> members_of(const CacheKind& kind, const Setup& setup);
/// What the backend of a case asks for.
[[nodiscard]] BackendConfig backend_of(const CacheKind& kind, const Setup& setup);
/// A member as its constructor gets it.
[[nodiscard]] MemberOptions member_options(const CacheConfig& config);

}  // namespace kvo::positional
