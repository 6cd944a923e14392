// reference/block_pool/operations.hpp: the operations of contract `block_pool`, described.
//
// All but `new` are kPrecondition without a pool, and for a block that it has not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/block_pool/cache.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::block_pool {

struct Number {
  std::int64_t n = 0;
};
KVO_DESCRIBE(Number, (n, "how many, or at most how many"))

struct New {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes a pool in the place of the earlier one (ZF-20).";
  struct Returns {
    std::int64_t cap = 0;
    std::int64_t elems_per_side = 0;
  };
  std::int64_t num_layers = 0;
  std::int64_t block_size = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_memory_mb = 0;
};
KVO_DESCRIBE(New, (num_layers, "layers"), (block_size, "positions a block"),
             (head_dim, "elements of one head"),
             (max_memory_mb, "memory of the pool, in MB of 2^20 bytes"))
KVO_DESCRIBE(New::Returns, (cap, "blocks of the pool"),
             (elems_per_side, "elements of K, and of V, in one block"))

struct Alloc {
  static constexpr std::string_view kName = "alloc";
  static constexpr std::string_view kDoc = "Takes the block on top of the stack (ZF-23).";
  struct Returns {
    std::int64_t block = 0;
    std::int64_t used = 0;
  };
};
KVO_DESCRIBE(Alloc)
KVO_DESCRIBE(Alloc::Returns, (block, "block, counted from 0 in its pool"),
             (used, "positions written in a block"))

struct FreeBlock {
  static constexpr std::string_view kName = "free_block";
  static constexpr std::string_view kDoc = "Gives a block back (ZF-24).";
  using Returns = Nothing;
  Nullable<std::int64_t> block;
};
KVO_DESCRIBE(FreeBlock, (block, "block, counted from 0 in its pool"))

struct Drain {
  static constexpr std::string_view kName = "drain";
  static constexpr std::string_view kDoc = "Takes blocks until `leave` are available (ZF-23).";
  struct Returns {
    std::int64_t taken = 0;
    std::int64_t last = 0;  ///< the block taken last, or -1
  };
  std::int64_t leave = 0;
};
KVO_DESCRIBE(Drain, (leave, "blocks to leave free"))
KVO_DESCRIBE(Drain::Returns, (taken, "blocks that were taken"),
             (last, "block that was taken last; -1 if none"))

struct SetUsed {
  static constexpr std::string_view kName = "set_used";
  static constexpr std::string_view kDoc = "Writes the count of used positions of a block (ZF-21).";
  using Returns = Nothing;
  std::int64_t block = 0;
  std::int64_t used = 0;
};
KVO_DESCRIBE(SetUsed, (block, "block, counted from 0 in its pool"),
             (used, "positions written in a block"))

struct WriteBlock {
  static constexpr std::string_view kName = "write_block";
  static constexpr std::string_view kDoc =
      "Writes one cell of a block (ZF-21); precondition where rows are codes.";
  using Returns = Nothing;
  std::int64_t block = 0;
  Side side = Side::kK;
  std::int64_t index = 0;  ///< flat
  float value = 0;
};
KVO_DESCRIBE(WriteBlock, (block, "block, counted from 0 in its pool"), (side, "k or v"),
             (index, "flat index of the element"), (value, "what the element is set to"))

struct ReadBlock {
  static constexpr std::string_view kName = "read_block";
  static constexpr std::string_view kDoc = "Reads both sides of a block, flat (ZF-21).";
  struct Returns {
    std::vector<float> k;
    std::vector<float> v;
    std::int64_t used = 0;
  };
  std::int64_t block = 0;
};
KVO_DESCRIBE(ReadBlock, (block, "block, counted from 0 in its pool"))
KVO_DESCRIBE(ReadBlock::Returns, (k, "keys"), (v, "values"), (used, "positions written in a block"))

struct Available {
  static constexpr std::string_view kName = "available";
  static constexpr std::string_view kDoc = "The number of free blocks (ZF-25).";
  using Returns = Number;
};
KVO_DESCRIBE(Available)

struct Cap {
  static constexpr std::string_view kName = "cap";
  static constexpr std::string_view kDoc = "The number of blocks (ZF-25).";
  using Returns = Number;
};
KVO_DESCRIBE(Cap)

struct BlockSize {
  static constexpr std::string_view kName = "block_size";
  static constexpr std::string_view kDoc = "Positions a block (ZF-25).";
  using Returns = Number;
};
KVO_DESCRIBE(BlockSize)

struct Concurrent {
  static constexpr std::string_view kName = "concurrent";
  static constexpr std::string_view kDoc =
      "Threads take up to `hold` blocks each and free them, again and again; then the free blocks "
      "are put in ascending order with `used` 0, since the threads leave them in any (ZF-26).";
  struct Returns {
    std::int64_t available = 0;
    bool double_owner_seen = false;
  };
  std::int64_t workers = 0;
  std::int64_t iterations = 0;
  std::int64_t hold = 0;
};
KVO_DESCRIBE(Concurrent, (workers, "threads"), (iterations, "rounds of each worker"),
             (hold, "blocks that a worker takes at most"))
KVO_DESCRIBE(Concurrent::Returns, (available, "free blocks"),
             (double_owner_seen, "whether two workers ever held the same block"))

/// The config of a case: how its pools store rows. The sizes repeat what its first `new` says, for
/// people; they are not used.
struct Config {
  std::optional<std::int64_t> num_layers = std::nullopt;
  std::optional<std::int64_t> block_size = std::nullopt;
  std::optional<std::int64_t> head_dim = std::nullopt;
  std::optional<std::int64_t> max_memory_mb = std::nullopt;
  std::optional<StorageType> storage = std::nullopt;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
};
KVO_DESCRIBE(Config, (num_layers, "layers"), (block_size, "positions a block"),
             (head_dim, "cells of a position and layer"), (max_memory_mb, "budget, in 2^20 bytes"),
             (storage,
              "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4; absent: f32"),
             (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
             (offset, "of q8 and q4: whether a group has an offset, too; absent: false"))

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
