#include "optimized/snapshot/prefix_tree.hpp"

#include <algorithm>
#include <utility>

#include "optimized/snapshot/token_match.hpp"

namespace kvo::optimized {
namespace {

// The child whose edge begins with the next of `left`, or null.
PrefixNode* child_for(const PrefixNode& node, std::span<const std::int32_t> left) {
  return left.empty() || !node.children ? nullptr : node.children->find(left.front());
}

PrefixChildren& children_of(PrefixNode& node) {
  if (!node.children) node.children = std::make_unique<PrefixChildren>();
  return *node.children;
}

}  // namespace

PrefixNode* next_in_preorder(const PrefixNode& node) {
  if (PrefixNode* child = node.first_child()) return child;
  const PrefixNode* at = &node;
  while (at != nullptr && at->next == nullptr) at = at->parent;
  return at != nullptr ? at->next : nullptr;
}

// Each node's children are put in front of the list of those that are still to go.
PrefixTree::~PrefixTree() {
  PrefixNode* node = root_;
  while (node != nullptr) {
    PrefixNode* next = node->next;
    if (node->children) {
      node->children->last()->next = next;
      next = node->children->first();
    }
    const std::unique_ptr<PrefixNode> gone(std::exchange(node, next));
  }
}

void PrefixTree::plant(std::int64_t last_used) {
  auto root = std::make_unique<PrefixNode>();
  root->last_used = last_used;
  numbered_.clear();
  root_ = root.release();
}

PrefixWalk PrefixTree::walk(PrefixNode& from, std::span<const std::int32_t> tokens) {
  PrefixWalk found{.path = {&from}};
  while (PrefixNode* child = child_for(*found.path.back(), tokens)) {
    found.path.push_back(child);
    found.into_last = matched_tokens(child->tokens.tokens(), tokens);
    found.matched += found.into_last;
    if (found.into_last < child->tokens.size()) break;
    tokens = tokens.subspan(static_cast<std::size_t>(found.into_last));
  }
  return found;
}

std::int64_t PrefixTree::matched(const PrefixNode& from, std::span<const std::int32_t> tokens) {
  const PrefixNode* node = &from;
  std::int64_t sum = 0;
  while (const PrefixNode* child = child_for(*node, tokens)) {
    const std::int64_t same = matched_tokens(child->tokens.tokens(), tokens);
    sum += same;
    if (same < child->tokens.size()) break;
    tokens = tokens.subspan(static_cast<std::size_t>(same));
    node = child;
  }
  return sum;
}

PrefixNode& PrefixTree::append_child(PrefixNode& parent, std::span<const std::int32_t> tokens) {
  auto child = std::make_unique<PrefixNode>();
  child->tokens = TokenSlice(tokens);
  child->end = parent.end + child->tokens.size();
  child->parent = &parent;
  child->last_used = parent.last_used;
  child->lost = parent.lost;
  children_of(parent).push_back(*child, tokens.front());
  if (child->lost) child->tokens.forget();
  numbered_.clear();
  return *child.release();
}

PrefixNode& PrefixTree::split(PrefixNode& node, std::int64_t at) {
  auto upper = std::make_unique<PrefixNode>();
  const std::int32_t first = node.tokens.tokens().front();
  const std::int32_t second = node.tokens.tokens()[static_cast<std::size_t>(at)];
  upper->children = std::make_unique<PrefixChildren>();
  upper->end = node.start() + at;
  upper->parent = node.parent;
  upper->last_used = node.last_used;
  upper->tokens = node.tokens.cut_front(at);
  node.parent->children->replace(node, *upper, first);
  node.parent = upper.get();
  upper->children->push_back(node, second);
  numbered_.clear();
  return *upper.release();
}

void PrefixTree::merge(PrefixNode& node) {
  node.tokens.append(node.first_child()->tokens);
  std::unique_ptr<PrefixNode> child(node.first_child());
  node.end = child->end;
  node.user = child->user;
  node.last_used = std::max(node.last_used, child->last_used);
  node.children = std::move(child->children);
  for (PrefixNode* one = node.first_child(); one != nullptr; one = one->next) one->parent = &node;
  numbered_.clear();
  child->parent = nullptr;
  if (!child->active) return;
  child->tokens.forget();
  child.release()->lost = true;
}

void PrefixTree::remove(PrefixNode& node) {
  const std::unique_ptr<PrefixNode> gone(&node);
  PrefixNode& parent = *node.parent;
  parent.children->erase(node, node.tokens.tokens().front());
  if (parent.children->size() == 0) parent.children.reset();
  node.tokens.give_up();
  numbered_.clear();
}

const std::vector<const PrefixNode*>& PrefixTree::numbered() const {
  if (!numbered_.empty()) return numbered_;
  for (PrefixNode* node = root_; node != nullptr; node = next_in_preorder(*node)) {
    node->number = std::ssize(numbered_);
    numbered_.push_back(node);
  }
  return numbered_;
}

std::size_t PrefixTree::storage() const {
  std::size_t sum = 0;
  for (const PrefixNode* node = root_; node != nullptr; node = next_in_preorder(*node)) {
    sum += sizeof(*node) + node->tokens.share_of_storage();
    if (node->children) sum += node->children->storage();
    if (node->snapshots)
      sum += sizeof(*node->snapshots) +
             node->snapshots->list.capacity() * sizeof(snapshot::SnapshotPtr);
  }
  return sum;
}

}  // namespace kvo::optimized
