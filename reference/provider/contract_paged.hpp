// reference/provider/contract_paged.hpp: the cache kind `provider.paged`.
//
// A session holds one pool and several caches over it; `new` with the number of an earlier cache
// replaces it (its blocks stay taken), and so does `new_pool` (the caches keep the earlier pool).
//
// Words    channels   K's first axis; a position holds channels * dim = head_dim cells of the pool.
//          table      the blocks of a cache, in order of positions; shared by its layers (ZF-32).
// Shapes   keys and values are [channels, position, dim].
// Source   rules ZF-27 to ZF-41.
#pragma once

#include "reference/block_pool/contract.hpp"
#include "reference/provider/contract.hpp"

namespace kvo::provider {

struct Table {
  static constexpr std::string_view kName = "table";
  static constexpr std::string_view kDoc = "The block table and the cursors of all layers (ZF-40).";
  struct Returns {
    std::vector<Nullable<std::int64_t>> blocks;
    std::vector<std::int64_t> cursors;
  };
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Table, (), (cache))
BOOST_DESCRIBE_STRUCT(Table::Returns, (), (blocks, cursors))

/// A cache whose rows lie in the blocks of a pool.
class Paged : public Provider {
 public:
  [[nodiscard]] virtual std::int64_t num_layers() const = 0;
  /// Gives every block back and empties the cache: what reset does too (ZF-37).
  /// Errors  kPrecondition: the table has a null entry (ZF-38).
  [[nodiscard]] virtual Status free() = 0;
  /// The block table and the cursors.
  [[nodiscard]] virtual Table::Returns table() const = 0;
};

struct NewPool {
  static constexpr std::string_view kName = "new_pool";
  static constexpr std::string_view kDoc = "Makes the pool of the caches to come (ZF-20).";
  struct Returns {
    std::int64_t cap = 0;
  };
  std::int64_t num_layers = 0;
  std::int64_t block_size = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_memory_mb = 0;
};
BOOST_DESCRIBE_STRUCT(NewPool, (), (num_layers, block_size, head_dim, max_memory_mb))
BOOST_DESCRIBE_STRUCT(NewPool::Returns, (), (cap))

struct NewPaged {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes an empty cache over the pool (ZF-27).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t num_layers = 0;
};
BOOST_DESCRIBE_STRUCT(NewPaged, (), (cache, num_layers))

struct Free {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Gives every block of a cache back (ZF-37).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Free, (), (cache))

struct DrainPool {
  static constexpr std::string_view kName = "drain";
  static constexpr std::string_view kDoc =
      "Takes and keeps blocks of the pool until `leave` are available (ZF-23).";
  struct Returns {
    std::int64_t taken = 0;
  };
  std::int64_t leave = 0;
};
BOOST_DESCRIBE_STRUCT(DrainPool, (), (leave))
BOOST_DESCRIBE_STRUCT(DrainPool::Returns, (), (taken))

using PagedOps =
    boost::mp11::mp_list<NewPool, NewPaged, Update, Get, Reread, Poke, Truncate, Reset, Free,
                         SeqLen, NumLayers, Table, block_pool::Available, block_pool::Alloc,
                         block_pool::FreeBlock, block_pool::ReadBlock, DrainPool>;

/// The cache kind `provider.paged`.
[[nodiscard]] const CacheKind& paged_kind();

/// What a paged cache is made of; a null pool is allowed to be asked for.
struct PagedSetup {
  std::shared_ptr<block_pool::BlockPool> pool;
  std::int64_t num_layers = 0;
  block_pool::Owner owner = block_pool::kNoCache;  ///< the cache's own number at the pool
};

/// Makes a cache.
/// Errors  kPrecondition: no pool, or negative num_layers; documented: other:nil_pool, and
///         kOutOfRange for num_layers negative or above the pool's (ZF-27, ZF-34).
using MakePaged =
    std::function<Result<std::unique_ptr<Paged>>(const PagedSetup& setup, Profile profile)>;

/// A subject whose pools and caches come from these.
[[nodiscard]] Subject make_paged_subject(std::string engine, std::string doc,
                                         block_pool::MakePool make_pool, MakePaged make);

}  // namespace kvo::provider
