// reference/provider/paged.hpp: the cache kind `provider.paged`.
//
// A session holds one pool and several caches over it; `new` with the number of an earlier cache
// replaces it (its blocks stay taken), and so does `new_pool` (the caches keep the earlier pool).
//
// Words    channels   K's first axis; a position holds channels * dim = head_dim cells of the pool.
//          table      the blocks of a cache, in order of positions; shared by its layers (ZF-32).
//          row        the dim cells of one channel and position, stored by itself: where rows are
//                     codes, groups must end with it (channels == 1, or dim in whole groups).
// Shapes   keys and values are [channels, position, dim].
// Source   rules ZF-27 to ZF-41.
#pragma once

#include "reference/block_pool/cache.hpp"
#include "reference/contract/describe/describe.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::provider {

/// What `table` shows: the blocks in order of position, null where there is none, and the cursor of
/// each layer.
struct ShownTable {
  std::vector<Nullable<std::int64_t>> blocks;
  std::vector<std::int64_t> cursors;
};

/// A cache whose rows lie in the blocks of a pool, in the pool's storage format. A result holds
/// copies of them as they are stored.
class Paged : public Provider {
 public:
  [[nodiscard]] virtual std::int64_t num_layers() const = 0;
  /// Gives every block back and empties the cache: what reset does too (ZF-37).
  /// Errors  kPrecondition: the table has a null entry (ZF-38).
  [[nodiscard]] virtual Status free() = 0;
  /// The block table and the cursors.
  [[nodiscard]] virtual ShownTable table() const = 0;
};

/// What a paged cache is made of; a null pool is allowed to be asked for.
struct PagedOptions {
  std::shared_ptr<block_pool::BlockPool> pool;
  std::int64_t num_layers = 0;
  block_pool::Owner owner = block_pool::kNoCache;  ///< the cache's own number at the pool
};

/// Makes a cache.
/// Errors  other:nil_pool, with kNilPoolAborts kPrecondition; kOutOfRange: negative num_layers,
/// with
///         kNegativeLayersAbort kPrecondition, and, unless kSurplusLayersAccepted, more layers than
///         the pool's (ZF-27, ZF-34).
using MakePaged = std::function<Result<std::unique_ptr<Paged>>(const PagedOptions& options,
                                                               QuirkSet<Quirk> quirks)>;

}  // namespace kvo::provider
