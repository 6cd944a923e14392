// reference/provider/contiguous.hpp: the cache kind `provider.contiguous`.
//
// A session holds several caches; `new` with the number of an earlier one replaces it.
// Source   rules ZF-8 to ZF-18.
#pragma once

#include "reference/contract/values/numeric.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::provider {

/// One buffer [batch][max_seq_len][dim] for K and one for V a layer, made by its first update. Rows
/// come in as f32 and are kept, and seen through views, as they are stored; a row is the last axis.
class Contiguous : public Provider {
 public:
  [[nodiscard]] virtual std::int64_t num_layers() const = 0;
};

/// What a cache is made of.
struct ContiguousOptions {
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;  ///< positions
  StorageFormat storage = {};    ///< of rows
};

/// Makes a cache.
/// Errors  kOutOfRange: as check() says of the storage; a size is negative; with
///         kNegativeSizesAbort kPrecondition for num_layers alone (ZF-8). kNotSupported: it stores
///         no such rows.
using MakeContiguous = std::function<Result<std::unique_ptr<Contiguous>>(
    const ContiguousOptions& options, QuirkSet<Quirk> quirks)>;

}  // namespace kvo::provider
