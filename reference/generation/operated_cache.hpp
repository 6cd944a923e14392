// reference/generation/operated_cache.hpp: how rows are kept in caches of any kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/subject/inner.hpp"
#include "reference/generation/inner_caches.hpp"
#include "reference/provider/operated_provider.hpp"

namespace kvo::generation {

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
