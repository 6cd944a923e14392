// reference/views/operations.hpp: the operations of contract `views`.
//
// An absent `cache` is cache 0. All caches of a case are over one pool.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/describe/storage.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/views/cache.hpp"

namespace kvo::views {

using CacheHandle = CacheOfCase<std::int64_t>;
using LayerNumber = LayerOfModel<std::int64_t>;
using ViewsNumber = HandleOf<"views">;

inline constexpr std::array<std::string_view, 2> kRowAxes{"position", "channel"};
inline constexpr std::array<std::string_view, 3> kPackedAxes{"head", "position", "dim"};

/// A query that answers one number.
KVO_RECORD(Number, (std::int64_t, n, "how many"))
KVO_RECORD_WITH((static constexpr auto kAxes = kRowAxes;), ShownView,
                (std::int64_t, start, "position of the first token"),
                (std::int64_t, length, "tokens"),
                (Device, device, "where it is stored", Device::kCpu),
                (std::int64_t, gpu, "number of the GPU; 0 on a CPU"), (Tensor, k, "keys"),
                (Tensor, v, "values"))
KVO_OPERATION(New, new_, "Makes an empty cache in the place of the one that had the number (MK-1).",
              Nothing, (Maybe<CacheHandle>, cache))
KVO_OPERATION(Fork, fork, "Makes a cache with the first committed tokens of another one (MK-31).",
              Nothing, (Maybe<CacheHandle>, cache, "which cache of the case is made"),
              (CacheHandle, from, "the cache that is forked"), (std::int64_t, tokens, "tokens"))
KVO_RECORD(AppendReturns, (std::int64_t, start, "position of the first token"),
           (std::vector<ShownView>, views, "the tokens, cut where blocks end"),
           (Maybe<ViewsNumber>, handle, "number of these views, to read them again"))
KVO_OPERATION_WITH((static constexpr auto kAxes = kRowAxes;), Append, append,
                   "Writes tokens of one layer after the committed ones (MK-2, MK-10 to MK-16).",
                   AppendReturns, (Maybe<CacheHandle>, cache), (LayerNumber, layer),
                   (Tensor, k, "keys"), (Tensor, v, "values"),
                   (std::optional<bool>, keep, "whether the views get a number"))
KVO_OPERATION(Commit, commit,
              "Counts pending tokens of every layer, and drops the others (MK-3, MK-17, MK-18).",
              Nothing, (Maybe<CacheHandle>, cache), (std::int64_t, n, "tokens"))
KVO_RECORD_WITH((static constexpr auto kAxes = kRowAxes;), ContiguousKvReturns,
                (Nullable<bool>, ok, "whether they do; null where the rules leave it to the cache"),
                (std::optional<Tensor>, k,
                 "keys; what is not offered is read by views where ok is null"),
                (std::optional<Tensor>, v, "values"))
KVO_OPERATION(ContiguousKv, contiguous_kv,
              "The first tokens of a layer, where they lie in one piece (MK-4, MK-22).",
              ContiguousKvReturns, (Maybe<CacheHandle>, cache), (LayerNumber, layer),
              (std::int64_t, kv_len, "tokens"),
              (std::int64_t, kv_dim, "elements of a token: num_kv_heads * head_dim"))
KVO_RECORD(ShowViewsReturns, (std::vector<ShownView>, views, "in order of positions"),
           (Maybe<ViewsNumber>, handle, "number of these views, to read them again"))
KVO_OPERATION(ShowViews, views, "All that a layer holds, block by block (MK-5, MK-19).",
              ShowViewsReturns, (Maybe<CacheHandle>, cache), (LayerNumber, layer),
              (std::optional<bool>, keep, "whether the views get a number"))
KVO_RECORD_WITH((static constexpr auto kAxes = kPackedAxes;), ShowPackedShown,
                (std::int64_t, start, "position of the first token"),
                (std::int64_t, length, "tokens"), (std::int64_t, block_size, "tokens a block"),
                (std::int64_t, head_dim, "elements of one head"),
                (std::int64_t, num_kv_heads, "heads"), (Tensor, k, "keys"), (Tensor, v, "values"))
KVO_RECORD(ShowPackedReturns, (std::vector<ShowPackedShown>, views, "in order of positions"))
KVO_OPERATION_WITH((using Shown = ShowPackedShown;), ShowPacked, views_packed,
                   "All that a layer on a CPU holds, head by head (MK-6, MK-20, MK-21).",
                   ShowPackedReturns, (Maybe<CacheHandle>, cache), (LayerNumber, layer))
KVO_RECORD(RereadReturns, (bool, stale, "whether they reach beyond what the layer held since"),
           (std::vector<ShownView>, views, "as they show now; none if stale"))
KVO_OPERATION(Reread, reread,
              "Looks through earlier views again, unless they are stale (MK-15, MK-24).",
              RereadReturns, (ViewsNumber, handle, "number of the views"))
KVO_RECORD(LayerDeviceReturns, (Device, device, "where it is stored", Device::kCpu),
           (std::int64_t, gpu, "number of the GPU; 0 on a CPU"))
KVO_OPERATION(LayerDevice, layer_device, "Where a layer is stored (MK-7, MK-26).",
              LayerDeviceReturns, (Maybe<CacheHandle>, cache), (LayerNumber, layer))
KVO_RECORD(IsOnGpuReturns, (Nullable<bool>, on_gpu, "null where some do and some do not"))
KVO_OPERATION(IsOnGpu, is_on_gpu, "Whether all layers lie on a GPU (MK-27).", IsOnGpuReturns,
              (Maybe<CacheHandle>, cache))
KVO_OPERATION(MaxSeqLen, max_seq_len, "Most tokens of a sequence (MK-26).", Number,
              (Maybe<CacheHandle>, cache))
KVO_OPERATION(SeqLen, seq_len, "Committed tokens (MK-1).", Number, (Maybe<CacheHandle>, cache))
KVO_OPERATION(Truncate, truncate,
              "Drops what is pending, and the tokens from a position on (MK-8, MK-23, MK-24).",
              Nothing, (Maybe<CacheHandle>, cache), (std::int64_t, n, "tokens that stay, at most"))
KVO_OPERATION(Free, free, "Drops everything for good (MK-8, MK-28).", Nothing,
              (Maybe<CacheHandle>, cache))
KVO_OPERATION(FreeBlocks, free_blocks, "Blocks of the pool that no cache holds (MK-25).", Number)

/// The config of a case: its pool, its caches, and how rules with two readings are read; absent:
/// as Options says.
KVO_RECORD(Config, (std::int64_t, num_layers, "layers", 1),
           (std::int64_t, block_size, "tokens a block", 16),
           (std::int64_t, num_kv_heads, "heads", 1),
           (std::int64_t, head_dim, "elements of one head", 4),
           (std::int64_t, max_seq_len, "most tokens of a sequence", 1024),
           (std::int64_t, blocks, "blocks of the pool; one holds tokens of one layer", 64),
           (RowStorage, rows),
           (std::optional<std::vector<std::int64_t>>, devices,
            "of each layer: the number of its GPU, or -1 for the CPU; none: all there"),
           (std::optional<bool>, append_stacks, "an append goes after pending tokens (MK-11)"),
           (std::optional<bool>, append_views_blocks,
            "an append's views cover its first block whole (MK-15)"),
           (std::optional<bool>, commit_keeps_rest,
            "what a commit does not count stays pending (MK-17)"),
           (std::optional<bool>, views_committed_only, "views do not show pending tokens (MK-19)"),
           (std::optional<PackedStride>, packed_stride,
            "tokens from head to head: block_size or length (MK-20)"),
           (std::optional<bool>, robustness,
            "commits of tokens that are not there reach the cache (MK-18)"))

/// The options that a config asks for.
[[nodiscard]] Options options_of(const Config& config);

#define KVO_VIEWS_OPERATIONS                                                                    \
  views::New, views::Fork, views::Append, views::Commit, views::ContiguousKv, views::ShowViews, \
      views::ShowPacked, views::Reread, views::LayerDevice, views::IsOnGpu, views::MaxSeqLen,   \
      views::SeqLen, views::Truncate, views::Free, views::FreeBlocks
using Ops = boost::mp11::mp_list<KVO_VIEWS_OPERATIONS>;

/// A cache of a case, and what its layers hold. That follows from the rules and from what
/// succeeded: it says which earlier views are stale (MK-24), and which commits are the caller's
/// error (MK-18).
struct Followed {
  std::unique_ptr<Cache> cache;
  std::uint64_t life = 0;  ///< another one for each cache that was made
  std::int64_t seq_len = 0;
  std::vector<std::int64_t> pending;  ///< [layer]
  bool shares = false;                ///< it was forked, or is a fork
  bool closed = false;

  Cache* operator->() const { return cache.get(); }
  /// Tokens of a layer that there is.
  [[nodiscard]] std::int64_t held(std::int64_t layer) const {
    return seq_len + pending[static_cast<std::size_t>(layer)];
  }
};

/// Views that got a number.
struct NumberedViews {
  std::uint64_t life = 0;  ///< of their cache
  std::int64_t layer = 0;
  std::vector<View> views = {};
  bool stale = false;

  /// Whether they show that position, or one after it.
  [[nodiscard]] bool reaches(std::int64_t position) const {
    return !views.empty() && views.back().start + views.back().length > position;
  }
};

/// What a session of the kind has made. Random scripts look at that of a reference.
struct CachesOfCase {
  std::unique_ptr<Pool> pool;
  NumberedCaches<Followed> caches;
  std::int64_t count = 0;  ///< numbers that a cache has
  std::vector<NumberedViews> numbered;
};

/// The cache kind `views.paged`.
[[nodiscard]] const CacheKind& paged_kind();

/// A subject whose caches are over pools that `make` makes.
[[nodiscard]] Subject make_subject(std::string variant, std::string doc, MakePool make);

}  // namespace kvo::views

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_VIEWS_OPERATIONS)
}  // namespace kvo
