// reference/block_pool/operations.hpp: the operations of contract `block_pool`, described.
//
// All but `new` are kPrecondition without a pool, and for a block that it has not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/block_pool/cache.hpp"
#include "reference/contract/describe/storage.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::block_pool {

struct BlockNumber {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "block, counted from 0 in its pool",
                                  .handle_of = "block"};
};

KVO_RECORD(Number, (std::int64_t, n, "how many, or at most how many"))
KVO_RECORD(NewReturns, (std::int64_t, cap, "blocks of the pool"),
           (std::int64_t, elems_per_side, "elements of K, and of V, in one block"))
KVO_OPERATION(New, new_, "Makes a pool in the place of the earlier one (ZF-20).", NewReturns,
              (std::int64_t, num_layers, "layers"), (std::int64_t, block_size, "positions a block"),
              (std::int64_t, head_dim, "elements of one head"),
              (std::int64_t, max_memory_mb, "memory of the pool, in MB of 2^20 bytes"))
KVO_RECORD(AllocReturns, (BlockNumber, block), (std::int64_t, used, "positions written in a block"))
KVO_OPERATION(Alloc, alloc, "Takes the block on top of the stack (ZF-23).", AllocReturns)
KVO_OPERATION(FreeBlock, free_block, "Gives a block back (ZF-24).", Nothing,
              (OrNull<BlockNumber>, block))
KVO_RECORD(DrainReturns, (std::int64_t, taken, "blocks that were taken"),
           (BlockNumber, last, "block that was taken last; -1 if none"))
KVO_OPERATION(Drain, drain, "Takes blocks until `leave` are available (ZF-23).", DrainReturns,
              (std::int64_t, leave, "blocks to leave free"))
KVO_OPERATION(SetUsed, set_used, "Writes the count of used positions of a block (ZF-21).", Nothing,
              (BlockNumber, block), (std::int64_t, used, "positions written in a block"))
KVO_OPERATION(WriteBlock, write_block,
              "Writes one cell of a block (ZF-21); precondition where rows are codes.", Nothing,
              (BlockNumber, block), (Side, side, "k or v", Side::kK),
              (std::int64_t, index, "flat index of the element"),
              (float, value, "what the element is set to"))
KVO_RECORD(ReadBlockReturns, (std::vector<float>, k, "keys"), (std::vector<float>, v, "values"),
           (std::int64_t, used, "positions written in a block"))
KVO_OPERATION(ReadBlock, read_block, "Reads both sides of a block, flat (ZF-21).", ReadBlockReturns,
              (BlockNumber, block))
KVO_OPERATION(Available, available, "The number of free blocks (ZF-25).", Number)
KVO_OPERATION(Cap, cap, "The number of blocks (ZF-25).", Number)
KVO_OPERATION(BlockSize, block_size, "Positions a block (ZF-25).", Number)
KVO_RECORD(ConcurrentReturns, (std::int64_t, available, "free blocks"),
           (bool, double_owner_seen, "whether two workers ever held the same block"))
KVO_OPERATION(
    Concurrent, concurrent,
    "Threads take up to `hold` blocks each and free them, again and again; then the free blocks "
    "are put in ascending order with `used` 0, since the threads leave them in any (ZF-26).",
    ConcurrentReturns, (std::int64_t, workers, "threads"),
    (std::int64_t, iterations, "rounds of each worker"),
    (std::int64_t, hold, "blocks that a worker takes at most"))

/// The config of a case: how its pools store rows. The sizes repeat what its first `new` says, for
/// people; they are not used.
KVO_RECORD(Config, (std::optional<std::int64_t>, num_layers, "layers"),
           (std::optional<std::int64_t>, block_size, "positions a block"),
           (std::optional<std::int64_t>, head_dim, "cells of a position and layer"),
           (std::optional<std::int64_t>, max_memory_mb, "budget, in 2^20 bytes"),
           (RowStorage, rows))

#define KVO_BLOCK_POOL_OPERATIONS                                                                \
  block_pool::New, block_pool::Alloc, block_pool::FreeBlock, block_pool::Drain,                  \
      block_pool::SetUsed, block_pool::WriteBlock, block_pool::ReadBlock, block_pool::Available, \
      block_pool::Cap, block_pool::BlockSize, block_pool::Concurrent
using Ops = boost::mp11::mp_list<KVO_BLOCK_POOL_OPERATIONS>;

/// The cache kind `block_pool.stack`.
[[nodiscard]] const CacheKind& stack_kind();

/// A subject whose pools come from `make`.
[[nodiscard]] Subject make_subject(std::string variant, std::string doc, MakePool make);

/// Both sides of a block and its `used`, as `read_block` shows them.
[[nodiscard]] ReadBlock::Returns read_block(BlockPool& pool, std::int64_t block);

}  // namespace kvo::block_pool

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_BLOCK_POOL_OPERATIONS)
}  // namespace kvo
