// reference/provider/paged_operations.hpp: the operations of `provider.paged`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/block_pool/operations.hpp"
#include "reference/contract/describe/storage.hpp"
#include "reference/provider/operations.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::provider {

KVO_DESCRIBE(ShownTable,
             (blocks, "block numbers in order of position; null for an entry without block"),
             (cursors, "positions held by each layer"))

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
