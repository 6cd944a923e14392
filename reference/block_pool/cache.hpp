// reference/block_pool/cache.hpp: the contract `block_pool`: fixed-size blocks of K and V cells.
//
// Words    block    K and V cells of block_size positions in every layer; its number is its index.
//          side     one of the two, K or V: num_layers * block_size * head_dim cells, which come in
//                   and are read as f32 and lie there as the pool's storage format says.
//          position the head_dim cells of one position and layer: what groups of codes end with.
//          used     positions of a block that hold rows; kept for the owner, counted by nobody.
//          owner    who holds a block: a number that its cache was made with.
// Shapes   a side is [layer][position][head_dim], row-major.
// Threads  alloc, free and available may run side by side (ZF-26). A block's cells and `used`
//          belong to its owner.
// Source   rules ZF-19 to ZF-26.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/enum.hpp>

#include "reference/block_pool/quirks.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/result.hpp"

namespace kvo::block_pool {

enum class Side : std::uint8_t { kK, kV };
BOOST_DESCRIBE_ENUM(Side, kK, kV)

/// Sizes of a pool, each of which must be positive (ZF-19), and how it stores rows.
struct Geometry {
  std::int64_t num_layers = 0;
  std::int64_t block_size = 0;     ///< positions a block
  std::int64_t head_dim = 0;       ///< cells a position and layer: channels * dim of a row
  std::int64_t max_memory_mb = 0;  ///< budget for all blocks, in 2^20 bytes
  StorageFormat storage = {};      ///< of rows
};

/// What follows from a geometry (ZF-20).
struct Sizes {
  std::int64_t side = 0;        ///< cells a side
  std::int64_t side_bytes = 0;  ///< what they take as they are stored
  std::int64_t blocks = 0;      ///< blocks that the budget pays for, at least 1
};

/// The sizes of a pool.
/// Errors  kOutOfRange: as check() says of the storage; non_positive. other:budget_too_small.
///         kOutOfRange, with kPoolSizeOverflowAborts kPrecondition: a product leaves 63 bits, as
///         it is stored or in f32 (ZF-1).
[[nodiscard]] Result<Sizes> sizes_of(const Geometry& geometry, QuirkSet<Quirk> quirks);

/// Who allocates and frees. Each cache has its own number; kNoCache is everybody else.
using Owner = std::uint64_t;
inline constexpr Owner kNoCache = 0;

/// The cells of a block in host memory, each [layer][position] of head_dim cells as they are
/// stored.
struct Sides {
  std::span<std::byte> k;
  std::span<std::byte> v;
};

/// A pool of the contract. Block numbers that callers pass must be in [0, cap()).
class BlockPool {
 public:
  virtual ~BlockPool() = default;

  [[nodiscard]] virtual Geometry geometry() const = 0;
  /// Blocks in all, free or not.
  [[nodiscard]] virtual std::int64_t cap() const = 0;
  [[nodiscard]] std::int64_t block_size() const { return geometry().block_size; }
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
  /// The bytes of cells [index, index + count) of one side in host memory, inside of which they
  /// must lie. Those of codes are whole groups of one position.
  [[nodiscard]] std::span<std::byte> stored(std::int64_t block, Side side, std::int64_t index,
                                            std::int64_t count);
  /// Stores or reads the cells [index, index + size) of one side; they must lie inside it. Those of
  /// codes begin with a group, and end with one or with a position.
  virtual void write(std::int64_t block, Side side, std::int64_t index,
                     std::span<const float> cells);
  virtual void read(std::int64_t block, Side side, std::int64_t index, std::span<float> out);

  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// Makes a pool.
/// Errors  as of sizes_of; kNotSupported: it stores no such rows.
using MakePool = std::function<Result<std::unique_ptr<BlockPool>>(const Geometry& geometry,
                                                                  QuirkSet<Quirk> quirks)>;

}  // namespace kvo::block_pool
