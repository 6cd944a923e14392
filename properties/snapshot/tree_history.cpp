#include "properties/snapshot/tree_history.hpp"

#include <algorithm>
#include <utility>

namespace kvo::snapshot {
namespace {

using WrongTree = std::optional<std::string>;

std::string node_name(std::size_t at) {
  return "node " + std::to_string(at);
}

// MR-60: edges, ends, and what siblings begin with.
WrongTree wrong_edges(const Tree::Returns& tree, const std::vector<Tokens>& sequences) {
  std::set<std::pair<std::int64_t, std::int32_t>> begins;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    if (node.end != std::ssize(sequences[at])) return node_name(at) + " ends elsewhere";
    if (at == 0) {
      if (!node.tokens.empty()) return "the root has tokens";
      continue;
    }
    if (node.tokens.empty()) return node_name(at) + " has no tokens";
    if (!begins.emplace(*node.parent, node.tokens.front()).second)
      return node_name(at) + " begins as a sibling does";
  }
  return std::nullopt;
}

WrongTree wrong_sequences(const std::vector<Tokens>& sequences, const TreeHistory& history) {
  FiledSequences shown;
  for (std::size_t at = 0; at < sequences.size(); ++at) {
    if (!history.filed.begins(sequences[at]))
      return node_name(at) + " stands for tokens that nobody filed";
    shown.add(sequences[at]);
  }
  for (const Tokens& filed : history.present.sequences())
    if (!shown.begins(filed))
      return "a sequence of " + std::to_string(filed.size()) + " tokens is lost";
  return std::nullopt;
}

// MR-61: it leads to tokens that the layers hold.
WrongTree wrong_path(const Tree::Returns& tree, const std::vector<Tokens>& sequences,
                     const TreeHistory& history) {
  if (tree.nodes.empty())
    return tree.active.empty() ? std::nullopt : WrongTree("a path without a tree");
  if (tree.active.empty() || tree.active.front() != 0) return "the path does not begin at the root";
  for (std::size_t i = 0; i < tree.active.size(); ++i) {
    const std::int64_t at = tree.active[i];
    if (at < 0 || at >= std::ssize(tree.nodes)) return "the path leads out of the tree";
    if (i > 0 && tree.nodes[static_cast<std::size_t>(at)].parent !=
                     Nullable<std::int64_t>(tree.active[i - 1]))
      return "the path leaps";
  }
  const Tokens& frontier = sequences[static_cast<std::size_t>(tree.active.back())];
  if (common_prefix(frontier, history.live) != std::ssize(frontier))
    return "the frontier stands for tokens that the layers do not hold";
  if (history.frontier && *history.frontier != std::ssize(frontier))
    return "the frontier ends at " + std::to_string(frontier.size()) + ", what was filed at " +
           std::to_string(*history.frontier);
  return std::nullopt;
}

// MR-63: whoever was used, the nodes above were, too.
WrongTree wrong_times(const Tree::Returns& tree, const TreeHistory& history) {
  std::set<std::int64_t> times;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    times.insert(node.last_used);
    if (at > 0 && tree.nodes[static_cast<std::size_t>(*node.parent)].last_used < node.last_used)
      return node_name(at) + " was used after the one above";
  }
  if (times.empty()) return std::nullopt;
  if (*times.begin() != 0 || *times.rbegin() != std::ssize(times) - 1) return "times are no ranks";
  for (const std::int64_t at : tree.active)
    if (history.just_closed &&
        tree.nodes[static_cast<std::size_t>(at)].last_used != *times.rbegin())
      return node_name(static_cast<std::size_t>(at)) + " was used last and is older";
  return std::nullopt;
}

// MR-62, MR-74: rows of the tokens that lead to them, counted, and no more than may be.
WrongTree wrong_snapshots(const Tree::Returns& tree, const std::vector<Tokens>& sequences,
                          const TreeHistory& history) {
  std::int64_t bytes = 0;
  bool evictable = false;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    if (!node.snapshots.has_value()) continue;
    if (node.snapshots->size() != history.layers.size())
      return node_name(at) + " has not one snapshot a layer";
    for (std::size_t i = 0; i < node.snapshots->size(); ++i) {
      const auto& one = (*node.snapshots)[i];
      if (!one.has_value()) continue;
      if (auto words = wrong_snapshot(history.layers[i], *one, sequences[at]))
        return node_name(at) + ", layer " + std::to_string(i) + ": " + *words;
      bytes += one->size.value_or(0);
      evictable =
          evictable || (at > 0 && std::ranges::find(tree.active, static_cast<std::int64_t>(at)) ==
                                      tree.active.end());
    }
  }
  if (bytes != tree.paged_out_bytes)
    return std::to_string(tree.paged_out_bytes) + " bytes are counted of " + std::to_string(bytes);
  if (history.limit && bytes > *history.limit && evictable)
    return std::to_string(bytes) + " bytes are kept where " + std::to_string(*history.limit) +
           " are allowed";
  return std::nullopt;
}

// How many tokens of a path the rows of one layer cover, from the first on without a gap.
std::int64_t covered(const Tree::Returns& tree, const std::vector<std::int64_t>& path,
                     std::size_t layer) {
  std::int64_t end = 0;
  for (const std::int64_t at : path) {
    const auto& list = tree.nodes[static_cast<std::size_t>(at)].snapshots;
    if (!list.has_value() || !(*list)[layer].has_value()) continue;
    const Contents& one = *(*list)[layer];
    if (one.from.value_or(0) <= end) end = std::max(end, one.to.value_or(*one.offset));
  }
  return end;
}

// MR-67: who leaves a path pages it out. A leaf is a restore point, and kv has all rows before it.
WrongTree wrong_leaves(const Tree::Returns& tree, const TreeHistory& history) {
  std::vector<bool> has_children(tree.nodes.size());
  for (const TreeNode& node : tree.nodes)
    if (node.parent.has_value()) has_children[static_cast<std::size_t>(*node.parent)] = true;
  for (std::size_t at = 1; at < tree.nodes.size(); ++at) {
    const bool active =
        std::ranges::find(tree.active, static_cast<std::int64_t>(at)) != tree.active.end();
    if (has_children[at] || active) continue;
    std::vector<std::int64_t> path{static_cast<std::int64_t>(at)};
    while (path.front() > 0)
      path.insert(path.begin(), *tree.nodes[static_cast<std::size_t>(path.front())].parent);
    for (std::size_t i = 0; i < history.layers.size(); ++i) {
      if (history.layers[i].kind == LayerPlan::Kind::kNone) continue;
      if (!tree.nodes[at].snapshots.has_value() || !(*tree.nodes[at].snapshots)[i].has_value())
        return node_name(at) + " was left and has no snapshot of layer " + std::to_string(i);
      if (history.layers[i].kind == LayerPlan::Kind::kKv &&
          covered(tree, path, i) < tree.nodes[at].end)
        return node_name(at) + ": layer " + std::to_string(i) + " lacks rows on the way there";
    }
  }
  return std::nullopt;
}

WrongTree wrong_marks(const Tree::Returns& tree, const std::vector<Tokens>& sequences,
                      const TreeHistory& history) {
  if (history.marked == nullptr) return std::nullopt;
  std::set<Tokens> shown;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (!tree.nodes[at].user) continue;
    shown.insert(sequences[at]);
    if (!history.marked->contains(sequences[at])) return node_name(at) + " was never marked";
  }
  if (history.all_marks && shown.size() != history.marked->size()) return "a mark is lost";
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Tokens>> sequences_of(const Tree::Returns& tree) {
  std::vector<Tokens> sequences;
  std::vector<std::int64_t> open;  // the path to the node before
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    if (node.parent.has_value() != (at > 0)) return std::nullopt;
    while (at > 0 && !open.empty() && open.back() != *node.parent) open.pop_back();
    if (at > 0 && open.empty()) return std::nullopt;
    Tokens sequence = at > 0 ? sequences[static_cast<std::size_t>(*node.parent)] : Tokens();
    sequence.insert(sequence.end(), node.tokens.begin(), node.tokens.end());
    sequences.push_back(std::move(sequence));
    open.push_back(static_cast<std::int64_t>(at));
  }
  return sequences;
}

std::optional<std::string> wrong_tree(const Tree::Returns& tree,
                                      const std::vector<Tokens>& sequences,
                                      const TreeHistory& history) {
  if (auto words = wrong_edges(tree, sequences)) return words;
  if (auto words = wrong_sequences(sequences, history)) return words;
  if (auto words = wrong_path(tree, sequences, history)) return words;
  if (auto words = wrong_times(tree, history)) return words;
  if (auto words = wrong_snapshots(tree, sequences, history)) return words;
  if (history.all_kept)
    if (auto words = wrong_leaves(tree, history)) return words;
  return wrong_marks(tree, sequences, history);
}

}  // namespace kvo::snapshot
