#include "optimized/snapshot/prefix_tree.hpp"

#include <algorithm>
#include <utility>

#include "optimized/snapshot/token_match.hpp"

namespace kvo::optimized {
namespace {

constexpr std::size_t kSlack = 8;  // one part in so many may be unused

}  // namespace

TokenSlice::TokenSlice(std::span<const std::int32_t> tokens) : run_(new Run), size_(tokens.size()) {
  run_->tokens.assign(tokens.begin(), tokens.end());
}

TokenSlice TokenSlice::cut_front(std::int64_t count) {
  TokenSlice front = *this;
  front.size_ = static_cast<std::size_t>(count);
  begin_ += front.size_;
  size_ -= front.size_;
  return front;
}

void TokenSlice::append(std::span<const std::int32_t> more) {
  if (run_ && !ends_run()) {
    TokenSlice copy;
    copy.run_ = new Run;
    copy.run_->tokens.reserve(size_ + more.size());
    copy.append(tokens());
    *this = std::move(copy);
  }
  if (run_) {
    std::vector<std::int32_t>& all = run_->tokens;
    if (all.capacity() < all.size() + more.size())
      all.reserve(std::max(all.size() + more.size(), all.size() + all.size() / kSlack));
    all.insert(all.end(), more.begin(), more.end());
  }
  size_ += more.size();
}

void TokenSlice::append(const TokenSlice& behind) {
  if (run_ && run_ == behind.run_ && begin_ + size_ == behind.begin_)
    size_ += behind.size_;
  else
    append(behind.tokens());
}

void TokenSlice::give_up() {
  if (ends_run() && run_->use_count() > 1) {
    std::vector<std::int32_t>& all = run_->tokens;
    all.resize(begin_);
    if (all.capacity() > all.size() + all.size() / kSlack) all.shrink_to_fit();
  }
  *this = TokenSlice();
}

std::size_t TokenSlice::share_of_storage() const {
  if (!run_) return 0;
  return (sizeof(Run) + run_->tokens.capacity() * sizeof(std::int32_t)) / run_->use_count();
}

PrefixNode* PrefixChildren::find(std::int32_t token) const {
  if (many_) {
    const auto found = many_->find(token);
    return found != many_->end() ? found->second : nullptr;
  }
  for (std::size_t i = 0; i < size_; ++i)
    if (tokens_[i] == token) return few_[i];
  return nullptr;
}

void PrefixChildren::put(std::int32_t token, PrefixNode& child) {
  if (!many_ && size_ == kFew) {
    auto many = std::make_unique<Many>();
    for (std::size_t i = 0; i < size_; ++i) many->emplace(tokens_[i], few_[i]);
    many->emplace(token, &child);
    many_ = std::move(many);
  } else if (many_) {
    many_->emplace(token, &child);
  } else {
    tokens_[size_] = token;
    few_[size_] = &child;
  }
  ++size_;
}

void PrefixChildren::push_back(PrefixNode& child, std::int32_t token) {
  put(token, child);
  child.previous = last_;
  child.next = nullptr;
  child.rank = last_ != nullptr ? last_->rank + 1 : 0;
  (last_ != nullptr ? last_->next : first_) = &child;
  last_ = &child;
}

void PrefixChildren::replace(PrefixNode& child, PrefixNode& by, std::int32_t token) {
  if (many_)
    many_->at(token) = &by;
  else
    *std::ranges::find(few_, &child) = &by;
  by.previous = child.previous;
  by.next = child.next;
  by.rank = child.rank;
  (by.previous != nullptr ? by.previous->next : first_) = &by;
  (by.next != nullptr ? by.next->previous : last_) = &by;
}

void PrefixChildren::erase(PrefixNode& child, std::int32_t token) {
  --size_;
  if (many_) {
    many_->erase(token);
  } else {
    const auto at = static_cast<std::size_t>(std::ranges::find(few_, &child) - few_.begin());
    tokens_[at] = tokens_[size_];
    few_[at] = few_[size_];
  }
  (child.previous != nullptr ? child.previous->next : first_) = child.next;
  (child.next != nullptr ? child.next->previous : last_) = child.previous;
}

std::size_t PrefixChildren::storage() const {
  // A slot holds a token and a pointer; 15 share 16 bytes of hashes.
  const std::size_t many =
      many_ ? sizeof(Many) + many_->bucket_count() * (sizeof(Many::value_type) + 2) : 0;
  return sizeof(*this) + many;
}

KeptSnapshots::KeptSnapshots(std::vector<snapshot::SnapshotPtr> snapshots)
    : list(std::move(snapshots)) {
  for (const snapshot::SnapshotPtr& one : list) {
    bytes += snapshot::size_of(one);
    any = any || one != nullptr;
  }
}

// The deeper one goes up until they meet. Ends tell which is deeper, because they fall on the way
// up; a count of nodes would change below each split and merge.
bool stands_before(const PrefixNode& a, const PrefixNode& b) {
  const PrefixNode* one = &a;
  const PrefixNode* other = &b;
  const PrefixNode* below_one = nullptr;  // where it came from
  const PrefixNode* below_other = nullptr;
  while (one != other) {
    if (one->end < other->end)
      below_other = std::exchange(other, other->parent);
    else
      below_one = std::exchange(one, one->parent);
  }
  if (below_one == nullptr || below_other == nullptr) return below_other != nullptr;
  return below_one->rank < below_other->rank;
}

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
