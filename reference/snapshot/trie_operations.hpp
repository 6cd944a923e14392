// reference/snapshot/trie_operations.hpp: the operations of the prefix trie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/snapshot/operations.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {

/// One number a layer; a null layer shows null.
using Offsets = std::vector<Nullable<std::int64_t>>;

struct OffsetsOnly {
  Offsets offsets;
};
KVO_DESCRIBE(OffsetsOnly, (offsets, "tokens that each layer holds; null: a layer without a cache"))

struct NewTrie {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes an empty trie over the config's layers (MR-61).";
  using Returns = Nothing;
};
KVO_DESCRIBE(NewTrie)

struct Begin {
  static constexpr std::string_view kName = "begin";
  static constexpr std::string_view kDoc =
      "Opens a session: the layers come to hold the longest known prefix (MR-66, MR-67).";
  struct Returns {
    Tokens remaining;
    std::int64_t snapshot_offset = 0;
    Offsets offsets;
  };
  Tokens inputs;
};
KVO_DESCRIBE(Begin, (inputs, "tokens"))
KVO_DESCRIBE(Begin::Returns, (remaining, "inputs behind what the layers hold"),
             (snapshot_offset, "where a snapshot is asked for; 0: nowhere"),
             (offsets, "tokens that each layer holds; null: a layer without a cache"))

struct Feed {
  static constexpr std::string_view kName = "feed";
  static constexpr std::string_view kDoc =
      "The model: writes tokens into the layers, keys as the token, values as its position + 1.";
  using Returns = OffsetsOnly;
  Tokens tokens;
};
KVO_DESCRIBE(Feed, (tokens, "tokens"))

struct Keep {
  static constexpr std::string_view kName = "snapshot";
  static constexpr std::string_view kDoc =
      "Keeps what the layers hold now as a restore point (MR-69).";
  struct Returns {
    std::int64_t snapshot_offset = 0;
  };
  bool user = false;
};
KVO_DESCRIBE(Keep, (user, "whether a user asked for it: the node is marked"))
KVO_DESCRIBE(Keep::Returns, (snapshot_offset, "where a snapshot is still asked for; 0: nowhere"))

struct Output {
  static constexpr std::string_view kName = "output";
  static constexpr std::string_view kDoc = "Tokens that the session made (MR-68).";
  using Returns = Nothing;
  Tokens tokens;
};
KVO_DESCRIBE(Output, (tokens, "tokens"))

struct CloseSession {
  static constexpr std::string_view kName = "close";
  static constexpr std::string_view kDoc = "Files the session's tokens (MR-71).";
  using Returns = OffsetsOnly;
};
KVO_DESCRIBE(CloseSession)

struct SetLimit {
  static constexpr std::string_view kName = "set_limit";
  static constexpr std::string_view kDoc = "Sets the bytes that snapshots may take (MR-74).";
  using Returns = Nothing;
  std::int64_t bytes = 0;
};
KVO_DESCRIBE(SetLimit, (bytes, "bytes"))

struct Enforce {
  static constexpr std::string_view kName = "enforce";
  static constexpr std::string_view kDoc = "Evicts until the limit is kept (MR-74).";
  using Returns = Nothing;
};
KVO_DESCRIBE(Enforce)

struct Find {
  static constexpr std::string_view kName = "find";
  static constexpr std::string_view kDoc = "The longest known prefix (MR-65).";
  struct Returns {
    std::vector<std::int64_t> path;
    std::int64_t matched = 0;
  };
  Tokens tokens;
};
KVO_DESCRIBE(Find, (tokens, "tokens"))
KVO_DESCRIBE(Find::Returns, (path, "nodes by number in pre-order, the root first"),
             (matched, "tokens"))

struct LayerState {
  std::int64_t offset = 0;
  Nullable<std::vector<Nullable<Tensor>>> state;
};
KVO_DESCRIBE(LayerState, (offset, "tokens"),
             (state, "keys and values, or conv and delta; null: no buffer"))

struct LayerStates {
  static constexpr std::string_view kName = "state";
  static constexpr std::string_view kDoc = "Everything that each layer holds.";
  struct Returns {
    std::vector<Nullable<LayerState>> layers;
  };
};
KVO_DESCRIBE(LayerStates)
KVO_DESCRIBE(LayerStates::Returns, (layers, "null: a layer without a cache"))

struct TreeNode {
  Nullable<std::int64_t> parent;
  Tokens tokens;
  std::int64_t end = 0;
  bool user = false;
  std::int64_t last_used = 0;
  Nullable<std::vector<Nullable<Contents>>> snapshots;
};
KVO_DESCRIBE(TreeNode, (parent, "number of the node above; null: the root"),
             (tokens, "that lead to the node from the one above"), (end, "tokens from the root"),
             (user, "whether a user marked it"),
             (last_used, "rank of its time in the tree, 0 the oldest"),
             (snapshots, "one a layer, null where there is none; null: no list"))

struct Tree {
  static constexpr std::string_view kName = "tree";
  static constexpr std::string_view kDoc = "The whole tree in pre-order (MR-60 to MR-63).";
  struct Returns {
    std::vector<TreeNode> nodes;
    std::vector<std::int64_t> active;
    std::int64_t paged_out_bytes = 0;
  };
};
KVO_DESCRIBE(Tree)
KVO_DESCRIBE(Tree::Returns, (nodes, "pre-order, children in order"),
             (active, "the active path by number; -1: cut off from the tree"),
             (paged_out_bytes, "that snapshots count for"))

struct ShowUsage {
  static constexpr std::string_view kName = "usage";
  static constexpr std::string_view kDoc = "What keeping and restoring came to so far (MR-75).";
  struct Returns {
    std::int64_t paged_out_bytes = 0;
    std::int64_t evictions = 0;
    std::int64_t page_ins = 0;
  };
};
KVO_DESCRIBE(ShowUsage)
KVO_DESCRIBE(ShowUsage::Returns, (paged_out_bytes, "that snapshots count for now"),
             (evictions, "nodes evicted since the trie was made"),
             (page_ins, "restores of single layers from a node's snapshot since then"))

struct TrieConfig {
  std::vector<std::string> layers;
  std::int64_t limit_bytes = std::int64_t{8} << 30U;
  std::optional<std::string> model = std::nullopt;
  std::optional<StorageType> storage = std::nullopt;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
};
KVO_DESCRIBE(TrieConfig,
             (layers, "kv, recurrent, rotating:N with a window of N tokens, none: a null layer"),
             (limit_bytes, "that snapshots may take"), (model, "token-echo; not looked at"),
             (storage,
              "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4, made of f32 rows; "
              "absent, f32: rows are kept in the type that comes in"),
             (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
             (offset, "of q8 and q4: whether a group has an offset, too; absent: false"))

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
