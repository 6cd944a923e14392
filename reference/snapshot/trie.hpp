// reference/snapshot/trie.hpp: a tree of prefixes whose nodes keep snapshots of a group of layers.
//
// Words    session     from begin to close: inputs that are looked up, and what follows them.
//          frontier    the last node of the active path; its tokens are those that the layers hold.
//          paged out   kept as snapshots of a node, which count towards the limit.
// Source   rules MR-60 to MR-75.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/contract/describe/storage.hpp"
#include "reference/snapshot/cache.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {

using Tokens = std::vector<std::int32_t>;

/// The layers of a model, in order; a layer that keeps nothing is null.
using Layers = std::vector<std::unique_ptr<Cache>>;

/// One number a layer; a null layer shows null.
using Offsets = std::vector<Nullable<std::int64_t>>;

KVO_RECORD(OffsetsOnly,
           (Offsets, offsets, "tokens that each layer holds; null: a layer without a cache"))
KVO_OPERATION(NewTrie, new_, "Makes an empty trie over the config's layers (MR-61).", Nothing)
KVO_RECORD(BeginReturns, (Tokens, remaining, "inputs after those that the layers hold"),
           (std::int64_t, snapshot_offset, "where a snapshot is requested; 0: nowhere"),
           (Offsets, offsets, "tokens that each layer holds; null: a layer without a cache"))
KVO_OPERATION(Begin, begin,
              "Opens a session: the layers come to hold the longest known prefix (MR-66, MR-67).",
              BeginReturns, (Tokens, inputs, "tokens"))
KVO_OPERATION(
    Feed, feed,
    "The model: writes tokens into the layers, keys as the token, values as its position + 1.",
    OffsetsOnly, (Tokens, tokens, "tokens"))
KVO_RECORD(KeepReturns,
           (std::int64_t, snapshot_offset, "where a snapshot is still requested; 0: nowhere"))
KVO_OPERATION(Keep, snapshot, "Keeps what the layers hold now as a restore point (MR-69).",
              KeepReturns, (bool, user, "whether a user requested it: the node is marked"))
KVO_OPERATION(Output, output, "Tokens that the session made (MR-68).", Nothing,
              (Tokens, tokens, "tokens"))
KVO_OPERATION(CloseSession, close, "Files the session's tokens (MR-71).", OffsetsOnly)
KVO_OPERATION(SetLimit, set_limit, "Sets the bytes that snapshots may take (MR-74).", Nothing,
              (std::int64_t, bytes, "bytes"))
KVO_OPERATION(Enforce, enforce, "Evicts until the limit is kept (MR-74).", Nothing)
KVO_RECORD(FindReturns,
           (std::vector<std::int64_t>, path, "nodes by number in pre-order, the root first"),
           (std::int64_t, matched, "tokens"))
KVO_OPERATION(Find, find, "The longest known prefix (MR-65).", FindReturns,
              (Tokens, tokens, "tokens"))
KVO_RECORD(LayerState, (std::int64_t, offset, "tokens"),
           (Nullable<std::vector<Nullable<Tensor>>>, state,
            "keys and values, or conv and delta; null: no buffer"))
KVO_RECORD(LayerStatesReturns,
           (std::vector<Nullable<LayerState>>, layers, "null: a layer without a cache"))
KVO_OPERATION(LayerStates, state, "Everything that each layer holds.", LayerStatesReturns)
KVO_RECORD(TreeNode, (Nullable<std::int64_t>, parent, "number of the node above; null: the root"),
           (Tokens, tokens, "that lead to the node from the one above"),
           (std::int64_t, end, "tokens from the root"), (bool, user, "whether a user marked it"),
           (std::int64_t, last_used, "rank of its time in the tree, 0 the oldest"),
           (Nullable<std::vector<Nullable<Contents>>>, snapshots,
            "one a layer, null where there is none; null: no list"))
KVO_RECORD(TreeReturns, (std::vector<TreeNode>, nodes, "pre-order, children in order"),
           (std::vector<std::int64_t>, active,
            "the active path by number; -1: cut off from the tree"),
           (std::int64_t, paged_out_bytes, "that snapshots count for"))
KVO_OPERATION(Tree, tree, "The whole tree in pre-order (MR-60 to MR-63).", TreeReturns)
KVO_RECORD(ShowUsageReturns, (std::int64_t, paged_out_bytes, "that snapshots count for now"),
           (std::int64_t, evictions, "nodes evicted since the trie was made"),
           (std::int64_t, page_ins, "restores of single layers from a node's snapshot since then"))
KVO_OPERATION(ShowUsage, usage, "What keeping and restoring came to so far (MR-75).",
              ShowUsageReturns)
KVO_RECORD(TrieConfig,
           (std::vector<std::string>, layers,
            "kv, recurrent, rotating:N with a window of N tokens, none: a null layer"),
           (std::int64_t, limit_bytes, "that snapshots may take", std::int64_t{8} << 30U),
           (std::optional<std::string>, model, "token-echo; not looked at"), (RowStorage, rows))

/// A tree, and the snapshots of its nodes.
struct TreeView {
  Tree::Returns shown = {};  ///< without snapshots
  /// Of each node. Absent: it has no list; else one a layer, null where there is none.
  std::vector<std::optional<std::vector<SnapshotPtr>>> snapshots = {};
};

/// A prefix cache over the layers of one model. Errors change nothing, but for evictions done
/// before one that kNullLayerAborts stops.
class PrefixTrie {
 public:
  virtual ~PrefixTrie() = default;

  /// What the model writes to.
  [[nodiscard]] virtual std::span<const std::unique_ptr<Cache>> layers() const = 0;

  /// Opens a session: the layers come to hold as much of `inputs` as is known (MR-66, MR-67).
  /// Returns  without offsets.
  [[nodiscard]] virtual Result<Begin::Returns> begin(const Tokens& inputs) = 0;
  /// Tokens that the session made (MR-68).
  virtual void output(const Tokens& tokens) = 0;
  /// Keeps what the layers hold now in the frontier (MR-69). Returns  the offset still asked for.
  /// Errors  kPrecondition: layers at different offsets, or none that began;
  ///         kOutOfRange: the session has fewer tokens than the layers.
  [[nodiscard]] virtual Result<std::int64_t> snapshot(bool user) = 0;
  /// Files the session's tokens (MR-71). Errors  as snapshot.
  [[nodiscard]] virtual Status close() = 0;

  /// Bytes that snapshots may take; takes effect with the next eviction (MR-74).
  virtual void set_limit(std::int64_t bytes) = 0;
  /// Evicts until the limit is kept. Errors  with kNullLayerAborts kPrecondition.
  [[nodiscard]] virtual Status enforce() = 0;

  /// The longest known prefix (MR-65).
  [[nodiscard]] virtual Find::Returns find(const Tokens& tokens) const = 0;
  [[nodiscard]] virtual TreeView tree() const = 0;
  /// What tree() does not need to be walked for (MR-75).
  [[nodiscard]] virtual ShowUsage::Returns usage() const = 0;
};

using MakeTrie =
    std::function<std::unique_ptr<PrefixTrie>(Layers layers, std::int64_t limit, QuirkSet<Quirk>)>;

#define KVO_SNAPSHOT_TRIE_OPERATIONS                                                    \
  snapshot::NewTrie, snapshot::Begin, snapshot::Feed, snapshot::Keep, snapshot::Output, \
      snapshot::CloseSession, snapshot::SetLimit, snapshot::Enforce, snapshot::Find,    \
      snapshot::LayerStates, snapshot::Tree, snapshot::ShowUsage
using TrieOps = boost::mp11::mp_list<KVO_SNAPSHOT_TRIE_OPERATIONS>;

[[nodiscard]] const CacheKind& trie_kind();

/// A subject whose tries come from `make_trie`, over layers from `make`.
[[nodiscard]] Subject make_trie_subject(const std::string& variant, const std::string& doc,
                                        const MakeCaches& make, const MakeTrie& make_trie);

}  // namespace kvo::snapshot

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_SNAPSHOT_TRIE_OPERATIONS)
}  // namespace kvo
