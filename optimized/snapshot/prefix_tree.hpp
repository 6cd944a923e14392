// optimized/snapshot/prefix_tree.hpp: a compressed radix tree of token sequences, without layers.
//
// No function calls itself: a chain of any depth is walked, numbered and destroyed in a loop.
// Source   rules MR-60, MR-65, MR-72, MR-73.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "optimized/snapshot/prefix_node.hpp"

namespace kvo::optimized {

/// Where a search ended (MR-65).
struct PrefixWalk {
  std::vector<PrefixNode*> path;  ///< from the node that it began with
  std::int64_t matched = 0;       ///< tokens
  std::int64_t into_last = 0;     ///< those of them on the last edge
};

/// Owns the nodes below its root, and the root.
class PrefixTree {
 public:
  PrefixTree() = default;
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;
  ~PrefixTree();

  /// Null before plant().
  [[nodiscard]] PrefixNode* root() const { return root_; }
  void plant(std::int64_t last_used);

  /// The longest prefix of `tokens` from a node on (MR-65).
  [[nodiscard]] static PrefixWalk walk(PrefixNode& from, std::span<const std::int32_t> tokens);
  /// The same, of which only the number of tokens is wanted.
  [[nodiscard]] static std::int64_t matched(const PrefixNode& from,
                                            std::span<const std::int32_t> tokens);

  /// Adds a last child, with the time of `parent`. Below a lost node it is lost, too.
  PrefixNode& append_child(PrefixNode& parent, std::span<const std::int32_t> tokens);
  /// Makes a node of the first `at` tokens of an edge, without a list (MR-72). Returns  it.
  PrefixNode& split(PrefixNode& node, std::int64_t at);
  /// Gives `node` the tokens, end, mark, children and, if later, the time of its only child
  /// (MR-73), which is then out of the tree: destroyed, or lost if it is active.
  void merge(PrefixNode& node);
  /// Destroys a node without children; not the root.
  void remove(PrefixNode& node);

  /// All nodes in pre-order, which are numbered then. Kept until the structure changes.
  [[nodiscard]] const std::vector<const PrefixNode*>& numbered() const;
  /// Bytes of nodes, tokens and lists of snapshots, not of what snapshots hold.
  [[nodiscard]] std::size_t storage() const;

 private:
  PrefixNode* root_ = nullptr;
  mutable std::vector<const PrefixNode*> numbered_ = {};  ///< empty: to be made
};

/// The next node in pre-order, or null.
[[nodiscard]] PrefixNode* next_in_preorder(const PrefixNode& node);

}  // namespace kvo::optimized
