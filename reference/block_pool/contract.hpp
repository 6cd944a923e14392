// reference/block_pool/contract.hpp: the contract `block_pool`: fixed-size blocks of K and V cells.
//
// Words    block    K and V cells of block_size positions in every layer; its number is its index.
//          side     one of the two, K or V: num_layers * block_size * head_dim cells, f32.
//          used     positions of a block that hold rows; kept for the owner, counted by nobody.
//          owner    who holds a block: a number that its cache was made with.
// Shapes   a side is [layer][position][head_dim], row-major.
// Threads  alloc, free and available may run side by side (ZF-26). A block's cells and `used`
// belong
//          to its owner.
// Source   rules ZF-19 to ZF-26.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject.hpp"

namespace kvo::block_pool {

enum class Side : std::uint8_t { kK, kV };
BOOST_DESCRIBE_ENUM(Side, kK, kV)

/// Sizes of a pool; each must be positive (ZF-19).
struct Geometry {
  std::int64_t num_layers = 0;
  std::int64_t block_size = 0;     ///< positions a block
  std::int64_t head_dim = 0;       ///< cells a position and layer: channels * dim of a row
  std::int64_t max_memory_mb = 0;  ///< budget for all blocks, in 2^20 bytes
};

/// What follows from a geometry (ZF-20).
struct Sizes {
  std::int64_t side = 0;    ///< cells a side
  std::int64_t blocks = 0;  ///< blocks that the budget pays for, at least 1
};

/// The sizes of a pool.
/// Errors  kOutOfRange non_positive; other:budget_too_small; kPrecondition, documented kOutOfRange:
///         a product leaves 63 bits (ZF-1).
[[nodiscard]] Result<Sizes> sizes_of(const Geometry& geometry, Profile profile);

/// Who allocates and frees. Each cache has its own number; kNoCache is everybody else.
using Owner = std::uint64_t;
inline constexpr Owner kNoCache = 0;

/// The cells of a block in host memory, each [layer][position][head_dim].
struct Sides {
  std::span<float> k;
  std::span<float> v;
};

/// A pool of the contract. Block numbers that callers pass must be in [0, cap()).
class BlockPool {
 public:
  virtual ~BlockPool() = default;

  [[nodiscard]] virtual Geometry geometry() const = 0;
  /// Blocks in all, free or not.
  [[nodiscard]] virtual std::int64_t cap() const = 0;
  /// Free blocks: the height of the stack (ZF-25).
  [[nodiscard]] virtual std::int64_t available() const = 0;

  /// Pops blocks.size() blocks for `owner`, in order of popping; all or none (ZF-23).
  /// Errors  kExhausted: fewer are available.
  [[nodiscard]] virtual Status alloc(Owner owner, std::span<std::int64_t> blocks) = 0;
  /// Pushes the blocks in order and sets their `used` to 0 (ZF-24). Documented: a block that
  /// `owner` did not allocate is left alone.
  virtual void free(Owner owner, std::span<const std::int64_t> blocks) = 0;

  [[nodiscard]] virtual std::int64_t used(std::int64_t block) const = 0;
  virtual void set_used(std::int64_t block, std::int64_t used) = 0;

  /// The cells of a block, valid as long as the pool; both empty where they are not in host memory.
  [[nodiscard]] virtual Sides sides(std::int64_t block) = 0;
  /// Copies to or from the cells [index, index + size) of one side; they must lie inside it.
  virtual void write(std::int64_t block, Side side, std::int64_t index,
                     std::span<const float> cells);
  virtual void read(std::int64_t block, Side side, std::int64_t index, std::span<float> out);

  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

// ---- Operations. All but `new` are kPrecondition without a pool, and for a block it has not. ----

struct Number {
  std::int64_t n = 0;
};
BOOST_DESCRIBE_STRUCT(Number, (), (n))

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
BOOST_DESCRIBE_STRUCT(New, (), (num_layers, block_size, head_dim, max_memory_mb))
BOOST_DESCRIBE_STRUCT(New::Returns, (), (cap, elems_per_side))

struct Alloc {
  static constexpr std::string_view kName = "alloc";
  static constexpr std::string_view kDoc = "Takes the block on top of the stack (ZF-23).";
  struct Returns {
    std::int64_t block = 0;
    std::int64_t used = 0;
  };
};
BOOST_DESCRIBE_STRUCT(Alloc, (), ())
BOOST_DESCRIBE_STRUCT(Alloc::Returns, (), (block, used))

struct FreeBlock {
  static constexpr std::string_view kName = "free_block";
  static constexpr std::string_view kDoc = "Gives a block back (ZF-24).";
  using Returns = Nothing;
  Nullable<std::int64_t> block;
};
BOOST_DESCRIBE_STRUCT(FreeBlock, (), (block))

struct Drain {
  static constexpr std::string_view kName = "drain";
  static constexpr std::string_view kDoc = "Takes blocks until `leave` are available (ZF-23).";
  struct Returns {
    std::int64_t taken = 0;
    std::int64_t last = 0;  ///< the block taken last, or -1
  };
  std::int64_t leave = 0;
};
BOOST_DESCRIBE_STRUCT(Drain, (), (leave))
BOOST_DESCRIBE_STRUCT(Drain::Returns, (), (taken, last))

struct SetUsed {
  static constexpr std::string_view kName = "set_used";
  static constexpr std::string_view kDoc = "Writes the count of used positions of a block (ZF-21).";
  using Returns = Nothing;
  std::int64_t block = 0;
  std::int64_t used = 0;
};
BOOST_DESCRIBE_STRUCT(SetUsed, (), (block, used))

struct WriteBlock {
  static constexpr std::string_view kName = "write_block";
  static constexpr std::string_view kDoc = "Writes one cell of a block (ZF-21).";
  using Returns = Nothing;
  std::int64_t block = 0;
  Side side = Side::kK;
  std::int64_t index = 0;  ///< flat
  float value = 0;
};
BOOST_DESCRIBE_STRUCT(WriteBlock, (), (block, side, index, value))

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
BOOST_DESCRIBE_STRUCT(ReadBlock, (), (block))
BOOST_DESCRIBE_STRUCT(ReadBlock::Returns, (), (k, v, used))

struct Available {
  static constexpr std::string_view kName = "available";
  static constexpr std::string_view kDoc = "The number of free blocks (ZF-25).";
  using Returns = Number;
};
BOOST_DESCRIBE_STRUCT(Available, (), ())

struct Cap {
  static constexpr std::string_view kName = "cap";
  static constexpr std::string_view kDoc = "The number of blocks (ZF-25).";
  using Returns = Number;
};
BOOST_DESCRIBE_STRUCT(Cap, (), ())

struct BlockSize {
  static constexpr std::string_view kName = "block_size";
  static constexpr std::string_view kDoc = "Positions a block (ZF-25).";
  using Returns = Number;
};
BOOST_DESCRIBE_STRUCT(BlockSize, (), ())

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
BOOST_DESCRIBE_STRUCT(Concurrent, (), (workers, iterations, hold))
BOOST_DESCRIBE_STRUCT(Concurrent::Returns, (), (available, double_owner_seen))

using Ops = boost::mp11::mp_list<New, Alloc, FreeBlock, Drain, SetUsed, WriteBlock, ReadBlock,
                                 Available, Cap, BlockSize, Concurrent>;

/// The cache kind `block_pool.stack`.
[[nodiscard]] const CacheKind& stack_kind();

/// Makes a pool; errors as of sizes_of.
using MakePool =
    std::function<Result<std::unique_ptr<BlockPool>>(const Geometry& geometry, Profile profile)>;

/// A subject whose pools come from `make`.
[[nodiscard]] Subject make_subject(std::string engine, std::string doc, MakePool make);

/// Both sides of a block and its `used`, as `read_block` shows them.
[[nodiscard]] ReadBlock::Returns read_block(BlockPool& pool, std::int64_t block);

}  // namespace kvo::block_pool
