// reference/generation/inner_caches.hpp: caches of other contracts, driven through the operations
// of their subjects, so that whatever can be a subject can be the cache of a generation.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "reference/contract/subject/inner.hpp"
#include "reference/generation/cache_source.hpp"
#include "reference/generation/options.hpp"

namespace kvo::generation {

/// What the caches of a generator are to be.
struct CacheSizes {
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;  ///< positions
  std::int64_t dim = 0;          ///< elements of a row, where a cache must know it beforehand
  std::string_view dtype = {};   ///< "fp16" or nothing
};

/// Names of kinds whose subjects can stand where a generation asks for a contiguous cache.
[[nodiscard]] const std::vector<std::string_view>& stand_ins();

/// Caches of a subject of one of stand_ins(): they take `sizes.max_seq_len` positions a layer.
/// Errors  of the subject; kNotSupported: another kind.
[[nodiscard]] Result<std::unique_ptr<CacheSource>> contiguous_caches(const Subject& subject,
                                                                     const Setup& setup,
                                                                     const CacheSizes& sizes,
                                                                     const ProbeSlot& probe);
/// Caches of a subject of provider.tensor. Errors  of the subject.
[[nodiscard]] Result<std::unique_ptr<CacheSource>> tensor_caches(const Subject& subject,
                                                                 const Setup& setup,
                                                                 const CacheSizes& sizes,
                                                                 const ProbeSlot& probe);
/// Caches of a subject of provider.paged over a pool of blocks of 16 positions (ZF-75).
/// Errors  of the pool, of the subject.
[[nodiscard]] Result<std::unique_ptr<CacheSource>> paged_caches(const Subject& subject,
                                                                const Setup& setup,
                                                                const CacheSizes& sizes,
                                                                const PagedOption& option,
                                                                const ProbeSlot& probe);

}  // namespace kvo::generation
