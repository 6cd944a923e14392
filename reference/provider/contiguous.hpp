// reference/provider/contiguous.hpp: the cache kind `provider.contiguous`.
//
// A session holds several caches; `new` with the number of an earlier one replaces it.
// Source   rules ZF-8 to ZF-18.
#pragma once

#include "reference/provider/cache.hpp"

namespace kvo::provider {

/// One buffer [batch][max_seq_len][dim] for K and one for V a layer, made by its first update.
class Contiguous : public Provider {
 public:
  [[nodiscard]] virtual std::int64_t num_layers() const = 0;
};

/// Makes a cache; max_seq_len in positions.
/// Errors  kOutOfRange: either is negative; with kNegativeSizesAbort kPrecondition for num_layers
///         alone (ZF-8).
using MakeContiguous = std::function<Result<std::unique_ptr<Contiguous>>(
    std::int64_t num_layers, std::int64_t max_seq_len, QuirkSet<Quirk> quirks)>;

}  // namespace kvo::provider
