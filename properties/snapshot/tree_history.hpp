// properties/snapshot/tree_history.hpp: what a trie's tree must be like by what was filed.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "properties/snapshot/filed_sequences.hpp"
#include "properties/snapshot/model_rows.hpp"

namespace kvo::snapshot {

/// What the history of a case says of the tree.
struct TreeHistory {
  const std::vector<LayerPlan>& layers;
  const FiledSequences& filed;    ///< whatever is in the tree is a prefix of one of these
  const FiledSequences& present;  ///< these are in the tree for sure
  const Tokens& live;             ///< what the layers hold
  /// Where the frontier ends; nothing: not known.
  std::optional<std::int64_t> frontier = std::nullopt;
  /// Sequences whose end a user marked; nothing: marks are not followed.
  const std::set<Tokens>* marked = nullptr;
  bool all_marks = false;                            ///< each of them is in the tree
  bool just_closed = false;                          ///< the active path was used last
  std::optional<std::int64_t> limit = std::nullopt;  ///< that evictions have kept
  /// Nothing was evicted, and each session was filed before the next: what was left was kept.
  bool all_kept = false;
};

/// The sequence that leads to each node; nothing where parents are no tree in pre-order.
[[nodiscard]] std::optional<std::vector<Tokens>> sequences_of(const Tree::Returns& tree);

/// Words for the first thing that is wrong.
/// Requires  sequences are sequences_of(tree).
[[nodiscard]] std::optional<std::string> wrong_tree(const Tree::Returns& tree,
                                                    const std::vector<Tokens>& sequences,
                                                    const TreeHistory& history);

}  // namespace kvo::snapshot
