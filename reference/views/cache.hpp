// reference/views/cache.hpp: the contract `views`: one sequence, several layers, read where it
// lies.
//
// Words    pending     tokens that a layer was given and that no commit has counted yet.
//          held        what a layer holds: the committed tokens, and behind them its pending ones.
//          channel     index within a token: num_kv_heads * head_dim of them, head by head.
//          packed      rows copied head by head, for attention on a CPU.
// Shapes   rows are [token, channel], row-major; of each token every head is stored by itself.
// Views    show memory of the cache: rows written to a position later show through them, until the
//          layer no longer holds all of their positions (MK-15, MK-24), or MK-31 moves the block.
// Threads  none (MK-30).
// Source   rules MK-1 to MK-31.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/describe/enum.hpp>

#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::views {

enum class PackedStride : std::uint8_t { kBlockSize, kLength };
BOOST_DESCRIBE_ENUM(PackedStride, kBlockSize, kLength)
enum class Device : std::uint8_t { kCpu, kGpu };
BOOST_DESCRIBE_ENUM(Device, kCpu, kGpu)

/// Where a layer lies.
struct Placement {
  Device device = Device::kCpu;
  std::int64_t gpu = 0;  ///< number of the GPU; 0 on a CPU
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Sizes of the caches over one pool, and how they read the rules that can be read in two ways.
struct Options {
  std::int64_t num_layers = 1;
  std::int64_t block_size = 16;  ///< tokens a block
  std::int64_t num_kv_heads = 1;
  std::int64_t head_dim = 4;
  std::int64_t max_seq_len = 1024;      ///< tokens a sequence
  std::int64_t blocks = 64;             ///< of the pool; a block is one layer's
  StorageFormat storage = {};           ///< what rows are kept in (MK-29)
  std::vector<Placement> devices = {};  ///< [layer]
  bool append_stacks = false;           ///< an append goes behind what is pending (MK-11)
  bool append_views_blocks = false;     ///< an append's views cover whole blocks (MK-15)
  bool commit_keeps_rest = false;       ///< what a commit does not count stays pending (MK-17)
  bool views_committed_only = false;    ///< views do not show pending tokens (MK-19)
  PackedStride packed_stride = PackedStride::kBlockSize;  ///< from head to head, in tokens (MK-20)

  [[nodiscard]] std::int64_t kv_dim() const { return num_kv_heads * head_dim; }
  /// Bytes that the K of a token takes, and its V.
  [[nodiscard]] std::size_t token_bytes() const {
    return static_cast<std::size_t>(num_kv_heads) *
           stored_bytes(storage, static_cast<std::size_t>(head_dim));
  }
  [[nodiscard]] std::int64_t blocks_of(std::int64_t tokens) const {
    return tokens == 0 ? 0 : (tokens - 1) / block_size + 1;
  }
};

/// Whether caches can be made of these.
/// Errors  kOutOfRange: a size that is negative, or 0 where nothing would be left, a block of more
///         than 2^31 elements, more than 2^16 layers, not one device a layer, or no such storage.
[[nodiscard]] Status check(const Options& options);

/// Some tokens of a layer, all of one block (MK-5), as Options::storage keeps them.
struct View {
  std::int64_t start = 0;   ///< position of the first
  std::int64_t length = 0;  ///< tokens
  Placement placement = {};
  const std::byte* k = nullptr;  ///< [length, num_kv_heads] rows of head_dim elements
  const std::byte* v = nullptr;
};

/// The tokens of a View, f32: head h, token t, element d at (h * stride + t) * head_dim + d, where
/// the stride is block_size or length (MK-6, MK-20). Other cells are of any value.
struct PackedView {
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int64_t block_size = 0;
  std::int64_t head_dim = 0;
  std::int64_t num_kv_heads = 0;
  std::span<const float> k = {};
  std::span<const float> v = {};
};

/// Rows in one piece, [kv_len, num_kv_heads], as those of a View.
struct ContiguousRows {
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
};

/// What an append did.
struct Appended {
  std::int64_t start = 0;            ///< position of the first token
  std::span<const View> views = {};  ///< valid until the next call; what they show lives longer
};

/// A cache of the contract. Errors change nothing.
class Cache {
 public:
  virtual ~Cache() = default;

  /// Writes tokens behind the committed ones, in the place of what is pending (MK-10 to MK-16).
  /// Shape   k and v are [tokens, kv_dim], f32; borrowed for the call.
  /// Errors  kClosed; kOutOfRange: no such layer; kBadShape; kFull: beyond max_seq_len;
  ///         kExhausted: too few free blocks.
  [[nodiscard]] virtual Result<Appended> append(std::int64_t layer, const Tensor& k,
                                                const Tensor& v) = 0;
  /// Counts n pending tokens of every layer, and drops the others (MK-3, MK-17).
  /// Errors  kBadPosition: n is negative, or more than some layer has pending (MK-18).
  [[nodiscard]] virtual Status commit(std::int64_t n) = 0;
  /// The first kv_len tokens that a layer holds, where they lie in one piece (MK-4, MK-22).
  /// Errors  kClosed; kOutOfRange: no such layer, or not so many tokens; kBadShape: kv_dim.
  [[nodiscard]] virtual Result<std::optional<ContiguousRows>> contiguous_kv(
      std::int64_t layer, std::int64_t kv_len, std::int64_t kv_dim) = 0;
  /// All that a layer holds, block by block; nothing where there is no such layer (MK-5, MK-19).
  /// Valid until the next call; what the views show lives longer.
  [[nodiscard]] virtual std::span<const View> views(std::int64_t layer) = 0;
  /// The same head by head, valid until the next call; nothing on a GPU (MK-6, MK-20, MK-21).
  [[nodiscard]] virtual std::span<const PackedView> views_packed(std::int64_t layer) = 0;

  /// Where a layer lies (MK-7, MK-26). Requires  there is that layer (MK-14).
  [[nodiscard]] virtual Placement layer_device(std::int64_t layer) const = 0;
  /// Whether all layers lie on a GPU; of any value where some do (MK-27).
  [[nodiscard]] virtual bool is_on_gpu() const = 0;
  [[nodiscard]] virtual std::int64_t max_seq_len() const = 0;
  /// Committed tokens (MK-1).
  [[nodiscard]] virtual std::int64_t seq_len() const = 0;

  /// Drops what is pending, and the tokens from position `tokens` on, if there are any (MK-23).
  virtual void truncate(std::int64_t tokens) = 0;
  /// Drops everything for good (MK-28).
  virtual void free() = 0;

  /// A cache over the same pool with the first `tokens` committed tokens (MK-31).
  /// Errors  kClosed; kBadPosition: not so many are committed; kExhausted.
  [[nodiscard]] virtual Result<std::unique_ptr<Cache>> fork(std::int64_t tokens) = 0;

  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// The blocks that caches take and give back. Its caches may outlive it.
class Pool {
 public:
  virtual ~Pool() = default;
  /// An empty cache.
  [[nodiscard]] virtual std::unique_ptr<Cache> make_cache() = 0;
  /// Blocks that no cache holds (MK-25).
  [[nodiscard]] virtual std::int64_t free_blocks() const = 0;
  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// Makes a pool. Requires  check(options).
/// Errors  kNotSupported: a storage type that its memory does not know.
using MakePool = std::function<Result<std::unique_ptr<Pool>>(const Options& options)>;

}  // namespace kvo::views
