// What a tree shows of itself.
#include <algorithm>

#include "optimized/prefix/radix_tree.hpp"

namespace kvo::optimized {

using prefix::NodeState;
using prefix::Token;

// Depth first, along the links.
void RadixTree::all_slots(prefix::Numbers& to) const {
  make_room(to, static_cast<std::size_t>(total_));
  for (Id id = nodes_[kRoot].first; id != kNone;) {
    const prefix::NumbersView own = slots(id);
    to.insert(to.end(), own.begin(), own.end());
    if (nodes_[id].first != kNone) {
      id = nodes_[id].first;
      continue;
    }
    while (id != kRoot && nodes_[id].later == kNone) id = nodes_[id].parent;
    id = id == kRoot ? kNone : nodes_[id].later;
  }
}

void RadixTree::fill(prefix::RadixState& state) const {
  state.evictable = evictable_;
  state.protected_ = protected_;
  state.total = total_;
  for (std::size_t id = 1; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.number < 0 || node.gone) continue;
    const Namespaces::Words& words = spaces_.words(node.space);
    const Token* const tokens = node.run.tokens();
    const std::int64_t* const own = node.run.slots();
    state.nodes.push_back(
        {.node = node.number,
         .parent = nodes_[node.parent].number,
         .tokens = {tokens, tokens + node.units + (options_.pairs ? 1 : 0)},
         .slots = {own, own + node.units},
         .lock = node.lock,
         .hits = node.hits,
         .priority = node.priority,
         .extra = words.extra,
         .salt = words.salt.empty() ? std::nullopt : std::optional<std::string>(words.salt)});
  }
  std::ranges::sort(state.nodes, {}, &NodeState::node);
  std::vector<Id> leaves = leaves_.leaves();
  std::ranges::sort(leaves, [&](Id a, Id b) { return before(a, b); });
  for (const Id leaf : leaves) state.leaves.push_back(nodes_[leaf].number);
}

std::optional<std::string> RadixTree::broken_invariant() const {
  std::int64_t units = 0;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.number < 0 || node.gone) continue;
    units += node.units;
    if (static_cast<std::int64_t>(node.run.units) != node.units) return "a run is not its node's";
    if ((node.place != kNowhere) != (node.first == kNone && node.lock <= 0))
      return "a leaf is not listed";
  }
  if (units != total_) return "the slots are not those of the nodes";
  if (!keeps_shells() && evictable_ + protected_ != total_)
    return "sizes are not those of the nodes";
  return std::nullopt;
}

}  // namespace kvo::optimized
