// reference/provider/paged_operations.hpp: the operations of `provider.paged`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/block_pool/operations.hpp"
#include "reference/provider/operations.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::provider {

KVO_DESCRIBE(ShownTable,
             (blocks, "block numbers in order of position; null for an entry without block"),
             (cursors, "positions held by each layer"))

struct Table {
  static constexpr std::string_view kName = "table";
  static constexpr std::string_view kDoc = "The block table and the cursors of all layers (ZF-40).";
  using Returns = ShownTable;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(Table, (cache, "which cache of the case, as numbered when it was made"))

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
KVO_DESCRIBE(NewPool, (num_layers, "layers"), (block_size, "positions a block"),
             (head_dim, "elements of one head"),
             (max_memory_mb, "memory of the pool, in MB of 2^20 bytes"))
KVO_DESCRIBE(NewPool::Returns, (cap, "blocks of the pool"))

struct NewPaged {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes an empty cache over the pool (ZF-27).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t num_layers = 0;
};
KVO_DESCRIBE(NewPaged, (cache, "which cache of the case, as numbered when it was made"),
             (num_layers, "layers"))

struct Free {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Gives every block of a cache back (ZF-37).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(Free, (cache, "which cache of the case, as numbered when it was made"))

struct DrainPool {
  static constexpr std::string_view kName = "drain";
  static constexpr std::string_view kDoc =
      "Takes and keeps blocks of the pool until `leave` are available (ZF-23).";
  struct Returns {
    std::int64_t taken = 0;
  };
  std::int64_t leave = 0;
};
KVO_DESCRIBE(DrainPool, (leave, "blocks to leave free"))
KVO_DESCRIBE(DrainPool::Returns, (taken, "blocks that were taken"))

/// The config of a case: how its pools store rows. The sizes repeat what its first operations say,
/// for people; they are not used.
struct PagedConfig {
  std::optional<std::int64_t> caches = std::nullopt;
  std::optional<std::int64_t> num_layers = std::nullopt;
  std::optional<block_pool::New> pool = std::nullopt;
  std::optional<StorageType> storage = std::nullopt;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
};
KVO_DESCRIBE(PagedConfig, (caches, "caches of the case"), (num_layers, "layers"),
             (pool, "sizes of the pool"),
             (storage,
              "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4; absent: f32"),
             (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
             (offset, "of q8 and q4: whether a group has an offset, too; absent: false"))

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
