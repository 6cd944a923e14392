// reference/generation/inner_caches.hpp: caches of other contracts, driven through the operations
// of their subjects, so that whatever can be a subject can be the cache of a generation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/subject/inner.hpp"
#include "reference/generation/cache_source.hpp"
#include "reference/generation/options.hpp"
#include "reference/provider/operated_provider.hpp"

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

using provider::pair_of;

/// How operations of one kind keep rows, layer by layer: what stands behind a cache that is bounded
/// and counts by itself.
class RowStore {
 public:
  virtual ~RowStore() = default;
  /// Adds rows [1, positions, dim] behind `past` positions of a layer. Errors  of the cache.
  [[nodiscard]] virtual Status add(std::int64_t layer, std::int64_t past, const Tensor& k,
                                   const Tensor& v) = 0;
  /// All rows of a layer, [1, positions, dim]. Errors  of the cache.
  [[nodiscard]] virtual Result<provider::KvPair> rows(std::int64_t layer) = 0;
  /// Begins a fresh cache where the last one was, over the same memory; false: there is no way to.
  /// Errors  of the cache.
  [[nodiscard]] virtual Result<bool> begin_anew() { return false; }
  /// Cuts every layer to at most `n` positions, n >= 0. Errors  of the cache.
  [[nodiscard]] virtual Status cut(std::int64_t n) = 0;
  /// Takes positions [begin, end) out of every layer; those behind move down, and their keys with
  /// them: a context shift. Keys hold their position as a summand.
  /// Errors  kNotSupported: the cache only takes from the end.
  [[nodiscard]] virtual Status discard(std::int64_t /*begin*/, std::int64_t /*end*/) {
    return fail(Code::kNotSupported, "discard");
  }
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const = 0;
};

/// A store of a stand-in's kind, or nothing for another kind. Errors  of the subject.
[[nodiscard]] Result<std::unique_ptr<RowStore>> make_store(const Subject& subject,
                                                           const Setup& setup,
                                                           const CacheSizes& sizes,
                                                           const ProbeSlot& probe);

}  // namespace kvo::generation
