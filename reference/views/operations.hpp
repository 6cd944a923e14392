// reference/views/operations.hpp: the operations of contract `views`.
//
// An absent `cache` is cache 0. All caches of a case are over one pool.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/views/cache.hpp"

namespace kvo::views {

inline constexpr std::array<std::string_view, 2> kRowAxes{"position", "channel"};
inline constexpr std::array<std::string_view, 3> kPackedAxes{"head", "position", "dim"};

/// A query that answers one number.
struct Number {
  std::int64_t n = 0;
};
KVO_DESCRIBE(Number, (n, "how many"))

struct ShownView {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr auto kAxes = kRowAxes;
  std::int64_t start = 0;
  std::int64_t length = 0;
  Device device = Device::kCpu;
  std::int64_t gpu = 0;
  Tensor k;
  Tensor v;
};
KVO_DESCRIBE(ShownView, (start, "position of the first token"), (length, "tokens"),
             (device, "where it lies"), (gpu, "number of the GPU; 0 on a CPU"), (k, "keys"),
             (v, "values"))

struct New {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes an empty cache in the place of the one that had the number (MK-1).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(New, (cache, "which cache of the case"))

struct Fork {
  static constexpr std::string_view kName = "fork";
  static constexpr std::string_view kDoc =
      "Makes a cache with the first committed tokens of another one (MK-31).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t from = 0;
  std::int64_t tokens = 0;
};
KVO_DESCRIBE(Fork, (cache, "which cache of the case is made"), (from, "the cache that is forked"),
             (tokens, "tokens"))

struct Append {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr std::string_view kName = "append";
  static constexpr std::string_view kDoc =
      "Writes tokens of one layer behind the committed ones (MK-2, MK-10 to MK-16).";
  struct Returns {
    std::int64_t start = 0;
    std::vector<ShownView> views = {};
    std::optional<std::int64_t> handle = std::nullopt;
  };
  static constexpr auto kAxes = kRowAxes;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  Tensor k;
  Tensor v;
  std::optional<bool> keep = std::nullopt;
};
KVO_DESCRIBE(Append, (cache, "which cache of the case"), (layer, "layer, counted from 0"),
             (k, "keys"), (v, "values"), (keep, "whether the views get a number"))
KVO_DESCRIBE(Append::Returns, (start, "position of the first token"),
             (views, "the tokens, cut where blocks end"),
             (handle, "number of these views, to read them again"))

struct Commit {
  static constexpr std::string_view kName = "commit";
  static constexpr std::string_view kDoc =
      "Counts pending tokens of every layer, and drops the others (MK-3, MK-17, MK-18).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t n = 0;
};
KVO_DESCRIBE(Commit, (cache, "which cache of the case"), (n, "tokens"))

struct ContiguousKv {
  static constexpr std::string_view kName = "contiguous_kv";
  static constexpr std::string_view kDoc =
      "The first tokens of a layer, where they lie in one piece (MK-4, MK-22).";
  struct Returns {  // NOLINT(bugprone-exception-escape): as Tensor
    static constexpr auto kAxes = kRowAxes;
    Nullable<bool> ok;
    std::optional<Tensor> k = std::nullopt;
    std::optional<Tensor> v = std::nullopt;
  };
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  std::int64_t kv_len = 0;
  std::int64_t kv_dim = 0;
};
KVO_DESCRIBE(ContiguousKv, (cache, "which cache of the case"), (layer, "layer, counted from 0"),
             (kv_len, "tokens"), (kv_dim, "elements of a token: num_kv_heads * head_dim"))
KVO_DESCRIBE(ContiguousKv::Returns,
             (ok, "whether they do; null where the rules leave it to the cache"),
             (k, "keys; what is not offered is read by views where ok is null"), (v, "values"))

struct ShowViews {
  static constexpr std::string_view kName = "views";
  static constexpr std::string_view kDoc = "All that a layer holds, block by block (MK-5, MK-19).";
  struct Returns {
    std::vector<ShownView> views = {};
    std::optional<std::int64_t> handle = std::nullopt;
  };
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  std::optional<bool> keep = std::nullopt;
};
KVO_DESCRIBE(ShowViews, (cache, "which cache of the case"), (layer, "layer, counted from 0"),
             (keep, "whether the views get a number"))
KVO_DESCRIBE(ShowViews::Returns, (views, "in order of positions"),
             (handle, "number of these views, to read them again"))

struct ShowPacked {
  static constexpr std::string_view kName = "views_packed";
  static constexpr std::string_view kDoc =
      "All that a layer on a CPU holds, head by head (MK-6, MK-20, MK-21).";
  struct Shown {  // NOLINT(bugprone-exception-escape): as Tensor
    static constexpr auto kAxes = kPackedAxes;
    std::int64_t start = 0;
    std::int64_t length = 0;
    std::int64_t block_size = 0;
    std::int64_t head_dim = 0;
    std::int64_t num_kv_heads = 0;
    Tensor k;
    Tensor v;
  };
  struct Returns {
    std::vector<Shown> views = {};
  };
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
};
KVO_DESCRIBE(ShowPacked, (cache, "which cache of the case"), (layer, "layer, counted from 0"))
KVO_DESCRIBE(ShowPacked::Shown, (start, "position of the first token"), (length, "tokens"),
             (block_size, "tokens a block"), (head_dim, "elements of one head"),
             (num_kv_heads, "heads"), (k, "keys"), (v, "values"))
KVO_DESCRIBE(ShowPacked::Returns, (views, "in order of positions"))

struct Reread {
  static constexpr std::string_view kName = "reread";
  static constexpr std::string_view kDoc =
      "Looks through earlier views again, unless they are stale (MK-15, MK-24).";
  struct Returns {
    bool stale = false;
    std::vector<ShownView> views = {};
  };
  std::int64_t handle = 0;
};
KVO_DESCRIBE(Reread, (handle, "number of the views"))
KVO_DESCRIBE(Reread::Returns, (stale, "whether they reach beyond what the layer held since"),
             (views, "as they show now; none if stale"))

struct LayerDevice {
  static constexpr std::string_view kName = "layer_device";
  static constexpr std::string_view kDoc = "Where a layer lies (MK-7, MK-26).";
  struct Returns {
    Device device = Device::kCpu;
    std::int64_t gpu = 0;
  };
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
};
KVO_DESCRIBE(LayerDevice, (cache, "which cache of the case"), (layer, "layer, counted from 0"))
KVO_DESCRIBE(LayerDevice::Returns, (device, "where it lies"),
             (gpu, "number of the GPU; 0 on a CPU"))

struct IsOnGpu {
  static constexpr std::string_view kName = "is_on_gpu";
  static constexpr std::string_view kDoc = "Whether all layers lie on a GPU (MK-27).";
  struct Returns {
    Nullable<bool> on_gpu;
  };
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(IsOnGpu, (cache, "which cache of the case"))
KVO_DESCRIBE(IsOnGpu::Returns, (on_gpu, "null where some do and some do not"))

struct MaxSeqLen {
  static constexpr std::string_view kName = "max_seq_len";
  static constexpr std::string_view kDoc = "Most tokens of a sequence (MK-26).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(MaxSeqLen, (cache, "which cache of the case"))

struct SeqLen {
  static constexpr std::string_view kName = "seq_len";
  static constexpr std::string_view kDoc = "Committed tokens (MK-1).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(SeqLen, (cache, "which cache of the case"))

struct Truncate {
  static constexpr std::string_view kName = "truncate";
  static constexpr std::string_view kDoc =
      "Drops what is pending, and the tokens from a position on (MK-8, MK-23, MK-24).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t n = 0;
};
KVO_DESCRIBE(Truncate, (cache, "which cache of the case"), (n, "tokens that stay, at most"))

struct Free {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Drops everything for good (MK-8, MK-28).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(Free, (cache, "which cache of the case"))

struct FreeBlocks {
  static constexpr std::string_view kName = "free_blocks";
  static constexpr std::string_view kDoc = "Blocks of the pool that no cache holds (MK-25).";
  using Returns = Number;
};
KVO_DESCRIBE(FreeBlocks)

/// The config of a case: its pool, its caches, and how rules with two readings are read; absent:
/// as Options says.
struct Config {
  std::int64_t num_layers = 1;
  std::int64_t block_size = 16;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_dim = 4;
  std::int64_t max_seq_len = 1024;
  std::int64_t blocks = 64;
  std::optional<StorageType> storage = std::nullopt;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
  std::optional<std::vector<std::int64_t>> devices = std::nullopt;
  std::optional<bool> append_stacks = std::nullopt;
  std::optional<bool> append_views_blocks = std::nullopt;
  std::optional<bool> commit_keeps_rest = std::nullopt;
  std::optional<bool> views_committed_only = std::nullopt;
  std::optional<PackedStride> packed_stride = std::nullopt;
  std::optional<bool> robustness = std::nullopt;
};
KVO_DESCRIBE(Config, (num_layers, "layers"), (block_size, "tokens a block"),
             (num_kv_heads, "heads"), (head_dim, "elements of one head"),
             (max_seq_len, "most tokens of a sequence"),
             (blocks, "blocks of the pool; one holds tokens of one layer"),
             (storage, "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4 (MK-29)"),
             (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
             (offset, "of q8 and q4: whether a group has an offset, too; absent: false"),
             (devices, "of each layer: the number of its GPU, or -1 for the CPU; none: all there"),
             (append_stacks, "an append goes behind what is pending (MK-11)"),
             (append_views_blocks, "an append's views cover its first block whole (MK-15)"),
             (commit_keeps_rest, "what a commit does not count stays pending (MK-17)"),
             (views_committed_only, "views do not show pending tokens (MK-19)"),
             (packed_stride, "tokens from head to head: block_size or length (MK-20)"),
             (robustness, "commits of tokens that are not there reach the cache (MK-18)"))

/// The options that a config asks for.
[[nodiscard]] Options options_of(const Config& config);

#define KVO_VIEWS_OPERATIONS                                                                    \
  views::New, views::Fork, views::Append, views::Commit, views::ContiguousKv, views::ShowViews, \
      views::ShowPacked, views::Reread, views::LayerDevice, views::IsOnGpu, views::MaxSeqLen,   \
      views::SeqLen, views::Truncate, views::Free, views::FreeBlocks
using Ops = boost::mp11::mp_list<KVO_VIEWS_OPERATIONS>;

/// The cache kind `views.paged`.
[[nodiscard]] const CacheKind& paged_kind();

/// A subject whose caches are over pools that `make` makes.
[[nodiscard]] Subject make_subject(std::string variant, std::string doc, MakePool make);

}  // namespace kvo::views

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_VIEWS_OPERATIONS)
}  // namespace kvo
