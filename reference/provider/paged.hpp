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

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/block_pool/operations.hpp"
#include "reference/contract/describe/storage.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// What `table` shows.
KVO_RECORD(ShownTable,
           (std::vector<Nullable<std::int64_t>>, blocks,
            "block numbers in order of position; null for an entry without block"),
           (std::vector<std::int64_t>, cursors, "positions held by each layer"))

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

/// Errors  as MakePaged says.
[[nodiscard]] inline Status check(const PagedOptions& options, QuirkSet<Quirk> quirks) {
  if (!options.pool)
    return quirks.has(Quirk::kNilPoolAborts) ? fail(Code::kPrecondition, "no pool")
                                             : fail_other("nil_pool");
  if (options.num_layers < 0 && quirks.has(Quirk::kNegativeLayersAbort))
    return fail(Code::kPrecondition, "num_layers");
  const bool too_many = options.num_layers > options.pool->geometry().num_layers;
  if (options.num_layers < 0 || (too_many && !quirks.has(Quirk::kSurplusLayersAccepted)))
    return fail(Code::kOutOfRange, "num_layers");
  return {};
}

/// Makes a cache.
/// Errors  other:nil_pool, with kNilPoolAborts kPrecondition; kOutOfRange: negative num_layers,
/// with
///         kNegativeLayersAbort kPrecondition, and, unless kSurplusLayersAccepted, more layers than
///         the pool's (ZF-27, ZF-34).
using MakePaged = std::function<Result<std::unique_ptr<Paged>>(const PagedOptions& options,
                                                               QuirkSet<Quirk> quirks)>;

KVO_OPERATION(Table, table, "The block table and the cursors of all layers (ZF-40).", ShownTable,
              (Maybe<CacheHandle>, cache))
KVO_RECORD(NewPoolReturns, (std::int64_t, cap, "blocks of the pool"))
KVO_OPERATION(NewPool, new_pool, "Makes the pool of the caches to come (ZF-20).", NewPoolReturns,
              (std::int64_t, num_layers, "layers"), (std::int64_t, block_size, "positions a block"),
              (std::int64_t, head_dim, "elements of one head"),
              (std::int64_t, max_memory_mb, "memory of the pool, in MB of 2^20 bytes"))
KVO_OPERATION(NewPaged, new_, "Makes an empty cache over the pool (ZF-27).", Nothing,
              (Maybe<CacheHandle>, cache), (std::int64_t, num_layers, "layers"))
KVO_OPERATION(Free, free, "Gives every block of a cache back (ZF-37).", Nothing,
              (Maybe<CacheHandle>, cache))
KVO_RECORD(DrainPoolReturns, (std::int64_t, taken, "blocks that were taken"))
KVO_OPERATION(DrainPool, drain,
              "Takes and keeps blocks of the pool until `leave` are available (ZF-23).",
              DrainPoolReturns, (std::int64_t, leave, "blocks to leave free"))

/// The config of a case: how its pools store rows. The sizes repeat what its first operations say,
/// for people; they are not used.
KVO_RECORD(PagedConfig, (std::optional<std::int64_t>, caches, "caches of the case"),
           (std::optional<std::int64_t>, num_layers, "layers"),
           (std::optional<block_pool::New>, pool, "sizes of the pool"), (RowStorage, rows))

#define KVO_PAGED_OPERATIONS \
  provider::NewPool, provider::NewPaged, provider::Free, provider::Table, provider::DrainPool
using PagedOps =
    boost::mp11::mp_list<NewPool, NewPaged, Update, Get, Reread, Poke, Truncate, Reset, Free,
                         SeqLen, NumLayers, Table, block_pool::Available, block_pool::Alloc,
                         block_pool::FreeBlock, block_pool::ReadBlock, DrainPool>;

/// The cache kind `provider.paged`.
[[nodiscard]] const CacheKind& paged_kind();

/// A subject whose pools and caches come from these.
[[nodiscard]] Subject make_paged_subject(std::string variant, std::string doc,
                                         block_pool::MakePool make_pool, MakePaged make);

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_PAGED_OPERATIONS)
}  // namespace kvo
