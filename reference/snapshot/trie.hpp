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
#include <vector>

#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

using Tokens = std::vector<std::int32_t>;

/// The layers of a model, in order; a layer that keeps nothing is null.
using Layers = std::vector<std::unique_ptr<Cache>>;

/// What begin() found.
struct Begun {
  Tokens remaining;                  ///< inputs behind what the layers hold now
  std::int64_t snapshot_offset = 0;  ///< where a snapshot is asked for; 0: nowhere
};

/// A node as it is shown.
struct NodeView {
  std::optional<std::int64_t> parent = std::nullopt;  ///< number in pre-order; the root has none
  Tokens tokens = {};
  std::int64_t end = 0;
  bool user = false;
  std::int64_t last_used = 0;  ///< rank among the times of the tree, 0 the oldest
  /// Absent: it has no list; else one snapshot a layer, null where there is none.
  std::optional<std::vector<SnapshotPtr>> snapshots = std::nullopt;
};

struct TreeView {
  std::vector<NodeView> nodes;       ///< pre-order, children in order
  std::vector<std::int64_t> active;  ///< numbers of the active path; -1: cut off from the tree
  std::int64_t paged_out_bytes = 0;
};

struct Found {
  std::vector<std::int64_t> path;  ///< numbers of nodes, the root first
  std::int64_t matched = 0;        ///< tokens
};

/// What keeping and restoring came to (MR-75).
struct Usage {
  std::int64_t paged_out_bytes = 0;
  std::int64_t evictions = 0;  ///< nodes
  std::int64_t page_ins = 0;   ///< restores of single layers
};

/// A prefix cache over the layers of one model. Errors change nothing, but for evictions done
/// before one that kNullLayerAborts stops.
class PrefixTrie {
 public:
  virtual ~PrefixTrie() = default;

  /// What the model writes to.
  [[nodiscard]] virtual std::span<const std::unique_ptr<Cache>> layers() const = 0;

  /// Opens a session: the layers come to hold as much of `inputs` as is known (MR-66, MR-67).
  [[nodiscard]] virtual Result<Begun> begin(const Tokens& inputs) = 0;
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
  [[nodiscard]] virtual Found find(const Tokens& tokens) const = 0;
  [[nodiscard]] virtual TreeView tree() const = 0;
  /// What tree() does not need to be walked for (MR-75).
  [[nodiscard]] virtual Usage usage() const = 0;
};

using MakeTrie =
    std::function<std::unique_ptr<PrefixTrie>(Layers layers, std::int64_t limit, QuirkSet<Quirk>)>;

}  // namespace kvo::snapshot
