#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "reference/contract/values/mark.hpp"
#include "reference/snapshot/make_trie.hpp"

namespace kvo::snapshot {
namespace {

using Snapshots = std::vector<SnapshotPtr>;

struct Node;
using NodePtr = std::shared_ptr<Node>;

// MR-60
struct Node {
  Tokens tokens = {};
  std::int64_t end = 0;
  Node* parent = nullptr;
  std::vector<NodePtr> children = {};
  std::int64_t last_used = 0;
  bool user = false;
  std::optional<Snapshots> snapshots = std::nullopt;

  [[nodiscard]] std::int64_t start() const { return end - std::ssize(tokens); }
  [[nodiscard]] bool has_snapshot() const {
    return snapshots &&
           std::ranges::any_of(*snapshots, [](const auto& one) { return one != nullptr; });
  }
};

std::int64_t bytes(const Node& node) {
  std::int64_t sum = 0;
  if (node.snapshots)
    for (const SnapshotPtr& one : *node.snapshots) sum += size_of(one);
  return sum;
}

// How many tokens of `edge` and of `tokens` from `at` on are the same.
std::int64_t matched(const Tokens& edge, const Tokens& tokens, std::int64_t at) {
  const auto [ours, theirs] =
      std::ranges::mismatch(edge, std::span(tokens).subspan(static_cast<std::size_t>(at)));
  return ours - edge.begin();
}

// An error leaves everything as it was, as a refusal does.
bool restored(Cache& layer, const SnapshotPtr& snapshot, std::int64_t target) {
  const auto done = layer.restore(snapshot, target);
  return done && *done;
}

SnapshotPtr taken(const Result<SnapshotPtr>& snapshot) {
  return snapshot ? *snapshot : nullptr;
}

// Where two do not adjoin the parent stays, and the child's restore point is given up.
SnapshotPtr merged_on(Cache& layer, const SnapshotPtr& parent, const SnapshotPtr& child) {
  const auto merged = layer.merge(parent, child);
  if (merged) return *merged;
  if (child) (void)child->close();
  return parent;
}

// The end of what a snapshot holds.
std::int64_t end_of(const SnapshotPtr& snapshot) {
  const Content content = snapshot->content();
  return content.to ? *content.to : content.offset.value_or(0);
}

// The smallest offset of the layers, 0 without any (MR-64).
std::int64_t least_offset(std::span<const std::unique_ptr<Cache>> layers) {
  std::optional<std::int64_t> least;
  for (const auto& layer : layers)
    if (layer) least = std::min(least.value_or(layer->offset()), layer->offset());
  return least.value_or(0);
}

class Trie final : public PrefixTrie {
 public:
  Trie(Layers layers, std::int64_t limit, QuirkSet<Quirk> quirks)
      : layers_(std::move(layers)), limit_(limit), quirks_(quirks) {}

  [[nodiscard]] std::span<const std::unique_ptr<Cache>> layers() const override { return layers_; }
  [[nodiscard]] Result<Begin::Returns> begin(const Tokens& inputs) override;
  void output(const Tokens& tokens) override {
    sequence_.insert(sequence_.end(), tokens.begin(), tokens.end());
  }
  [[nodiscard]] Result<std::int64_t> snapshot(bool user) override;
  [[nodiscard]] Status close() override;
  void set_limit(std::int64_t bytes) override { limit_ = bytes; }
  [[nodiscard]] Status enforce() override { return evict(); }
  [[nodiscard]] Find::Returns find(const Tokens& tokens) const override;
  [[nodiscard]] TreeView tree() const override;
  [[nodiscard]] ShowUsage::Returns usage() const override {
    return {paged_out_, evictions_, page_ins_};
  }

 private:
  struct Walk {
    std::vector<NodePtr> path;
    std::int64_t matched = 0;
  };
  [[nodiscard]] static Walk walk(const NodePtr& from, const Tokens& tokens);
  [[nodiscard]] std::int64_t offset() const { return least_offset(layers_); }
  [[nodiscard]] Node& frontier() const { return *active_.back(); }
  [[nodiscard]] bool is_active(const Node& node) const {
    return std::ranges::any_of(active_, [&](const NodePtr& one) { return one.get() == &node; });
  }
  [[nodiscard]] bool complete(const Node& node) const;
  [[nodiscard]] Snapshots snapshots_from(std::int64_t start) const;

  void set_snapshots(Node& node, std::optional<Snapshots> list, bool consumed = false);
  Status switch_to(const Walk& found);
  void page_in(const std::vector<NodePtr>& path, std::int64_t matched);
  void advance_to(std::int64_t end);
  NodePtr split(const NodePtr& node, std::int64_t at);
  [[nodiscard]] Status can_merge(const Node& node, const Node& child) const;
  Status merge(Node& node);
  Status evict();
  Status evict(Node& node);
  [[nodiscard]] Node* victim() const;
  Status remove(Node& node);
  [[nodiscard]] Status can_file(std::int64_t end) const;
  void number(const Node& node, std::map<const Node*, std::int64_t>& numbers) const;

  Layers layers_;
  std::int64_t limit_;
  QuirkSet<Quirk> quirks_;
  NodePtr root_ = nullptr;
  std::vector<NodePtr> active_ = {};  ///< MR-61
  std::int64_t paged_out_ = 0;        ///< MR-62
  std::int64_t evictions_ = 0;        ///< MR-75
  std::int64_t page_ins_ = 0;         ///< MR-75
  std::int64_t clock_ = 0;            ///< MR-63
  Tokens sequence_ = {};              ///< inputs and outputs of the session
  std::int64_t snapshot_offset_ = 0;
  bool open_ = false;
};

// ---- Search ----

// MR-65
Trie::Walk Trie::walk(const NodePtr& from, const Tokens& tokens) {
  Walk found{.path = {from}};
  while (found.matched < std::ssize(tokens)) {
    const std::int32_t next = tokens[static_cast<std::size_t>(found.matched)];
    const auto& children = found.path.back()->children;
    const auto child = std::ranges::find_if(
        children, [&](const NodePtr& one) { return one->tokens.front() == next; });
    if (child == children.end()) break;
    const std::int64_t same = matched((*child)->tokens, tokens, found.matched);
    found.path.push_back(*child);
    found.matched += same;
    if (same < std::ssize(found.path.back()->tokens)) break;
  }
  return found;
}

Find::Returns Trie::find(const Tokens& tokens) const {
  if (root_ == nullptr) return {};
  const Walk found = walk(root_, tokens);
  std::map<const Node*, std::int64_t> numbers;
  number(*root_, numbers);
  Find::Returns shown{.path = {}, .matched = found.matched};
  for (const NodePtr& node : found.path) shown.path.push_back(numbers.at(node.get()));
  return shown;
}

// ---- Session ----

// MR-66
Result<Begin::Returns> Trie::begin(const Tokens& inputs) {
  if (open_ && !quirks_.has(Quirk::kBeginForgets) && offset() > frontier().end)
    if (const Status closed = close(); !closed) return closed.error();
  if (root_ == nullptr) {
    root_ = std::make_shared<Node>(Node{.last_used = ++clock_});
    active_ = {root_};
  }
  Walk found = walk(root_, inputs);
  if (found.matched == std::ssize(inputs) && found.matched > 0)
    found = walk(root_, Tokens(inputs.begin(), inputs.end() - 1));
  if (const Status done = switch_to(found); !done) return done.error();
  sequence_ = inputs;
  open_ = true;
  const std::int64_t prefix = offset();
  snapshot_offset_ = prefix < found.matched ? found.matched : 0;
  const auto rest = std::min<std::int64_t>(prefix, std::ssize(inputs));
  return Begin::Returns{Tokens(inputs.begin() + rest, inputs.end()), snapshot_offset_};
}

// MR-67.2
bool Trie::complete(const Node& node) const {
  if (!node.snapshots) return false;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool counts = layers_[i] != nullptr || quirks_.has(Quirk::kNullLayerIncomplete);
    if (counts && (*node.snapshots)[i] == nullptr) return false;
  }
  return true;
}

Snapshots Trie::snapshots_from(std::int64_t start) const {
  Snapshots list;
  for (const auto& layer : layers_) list.push_back(layer ? taken(layer->snapshot(start)) : nullptr);
  return list;
}

// MR-67
Status Trie::switch_to(const Walk& found) {
  const auto& [path, m] = found;
  const auto shared = std::ranges::mismatch(active_, path).in1 - active_.begin();
  const std::int64_t ancestor = active_[static_cast<std::size_t>(shared - 1)]->end;
  if (Node& leaf = frontier(); (shared < std::ssize(active_) || m < leaf.end) && !complete(leaf))
    set_snapshots(leaf, snapshots_from(leaf.start()));
  for (const auto& layer : layers_)
    if (layer && !restored(*layer, nullptr, std::min(ancestor, m))) layer->free();
  page_in(path, m);
  active_ = path;
  const std::int64_t reached = offset();
  const bool together = std::ranges::all_of(layers_, [&](const auto& layer) {
    return !layer || layer->offset() == reached || restored(*layer, nullptr, reached);
  });
  if (!together)
    for (const auto& layer : layers_)
      if (layer) layer->free();
  const auto last = std::ranges::find_if(active_.rbegin(), active_.rend(),
                                         [&](const NodePtr& one) { return one->end <= reached; });
  active_.erase(last.base(), active_.end());
  return evict();
}

// MR-67.4
void Trie::page_in(const std::vector<NodePtr>& path, std::int64_t matched) {
  for (const NodePtr& node : path) {
    if (!node->has_snapshot()) continue;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const SnapshotPtr& snapshot = (*node->snapshots)[i];
      if (!layers_[i] || snapshot == nullptr) continue;
      std::int64_t goal = std::min(node->end, matched);
      if (!quirks_.has(Quirk::kPageInStops)) goal = std::min(goal, end_of(snapshot));
      if (layers_[i]->offset() >= goal) continue;
      if (!restored(*layers_[i], snapshot, goal)) return;
      ++page_ins_;
      KVO_MARK("snapshot.trie", "paged in");
    }
  }
}

// MR-69, MR-71: whether the session has the tokens up to `end`.
Status Trie::can_file(std::int64_t end) const {
  if (root_ == nullptr) return fail(Code::kPrecondition, "no session");
  if (end <= frontier().end || end <= std::ssize(sequence_)) return {};
  return fail(quirks_.has(Quirk::kShortSequence) ? Code::kPrecondition : Code::kOutOfRange,
              "sequence");
}

// MR-69
Result<std::int64_t> Trie::snapshot(bool user) {
  const std::int64_t now = offset();
  if (now <= 0) return snapshot_offset_;
  if (const Status can = can_file(now); !can) return can.error();
  const bool behind = frontier().end > now;
  if (behind && !quirks_.has(Quirk::kFrontierBehind)) return fail(Code::kPrecondition, "frontier");
  const bool attach = !behind && (frontier().end < now || !complete(frontier()));
  for (const auto& layer : layers_)
    if (attach && layer && layer->offset() != now) return fail(Code::kPrecondition, "layers");
  if (snapshot_offset_ > 0 && now >= snapshot_offset_) snapshot_offset_ = 0;
  if (behind) return snapshot_offset_;
  if (frontier().end < now) advance_to(now);
  if (user) frontier().user = true;
  if (attach) {
    set_snapshots(frontier(), snapshots_from(frontier().start()));
    if (const Status done = evict(); !done) return done.error();
  }
  return snapshot_offset_;
}

// MR-71
Status Trie::close() {
  const std::int64_t now = offset();
  if (now <= 0) return {};
  if (const Status can = can_file(now); !can) return can.error();
  if (now > frontier().end) advance_to(now);
  ++clock_;
  for (const NodePtr& node : active_) node->last_used = clock_;
  open_ = false;
  return {};
}

// MR-70: the frontier comes to end at `end`, with the session's tokens.
void Trie::advance_to(std::int64_t end) {
  const Tokens tokens(sequence_.begin() + frontier().end, sequence_.begin() + end);
  Walk found = walk(active_.back(), tokens);
  std::int64_t into_last = found.matched;
  for (std::size_t i = 1; i + 1 < found.path.size(); ++i)
    into_last -= std::ssize(found.path[i]->tokens);
  if (found.path.size() > 1 && into_last < std::ssize(found.path.back()->tokens))
    found.path.back() = split(found.path.back(), into_last);
  active_.insert(active_.end(), found.path.begin() + 1, found.path.end());
  const Tokens rest(tokens.begin() + found.matched, tokens.end());
  if (rest.empty()) return;
  Node& last = frontier();
  const bool marked = last.user && !quirks_.has(Quirk::kUserLeafGrows);
  if (last.children.empty() && !last.user) set_snapshots(last, std::nullopt);
  if (&last == root_.get() || !last.children.empty() || last.has_snapshot() || marked) {
    last.children.push_back(std::make_shared<Node>(
        Node{.tokens = rest, .end = end, .parent = &last, .last_used = last.last_used}));
    if (last.children.size() > 1) KVO_MARK("snapshot.trie", "branched");
    if (last.children.size() > 2) KVO_MARK("snapshot.trie", "three branches");
    if (last.children.size() > 9) KVO_MARK("snapshot.trie", "ten branches");
    active_.push_back(last.children.back());
  } else {
    last.tokens.insert(last.tokens.end(), rest.begin(), rest.end());
    last.end = end;
  }
}

// ---- Nodes ----

// MR-62
void Trie::set_snapshots(Node& node, std::optional<Snapshots> list, bool consumed) {
  paged_out_ -= bytes(node);
  if (node.snapshots && !consumed)
    for (const SnapshotPtr& one : *node.snapshots)
      if (one) (void)one->close();
  node.snapshots = std::move(list);
  paged_out_ += bytes(node);
}

// MR-72: the upper part becomes a node of its own, which is returned.
NodePtr Trie::split(const NodePtr& node, std::int64_t at) {
  auto upper =
      std::make_shared<Node>(Node{.tokens = Tokens(node->tokens.begin(), node->tokens.begin() + at),
                                  .end = node->start() + at,
                                  .parent = node->parent,
                                  .children = {node},
                                  .last_used = node->last_used});
  *std::ranges::find(node->parent->children, node) = upper;
  node->parent = upper.get();
  node->tokens.erase(node->tokens.begin(), node->tokens.begin() + at);
  if (!node->has_snapshot()) return upper;
  Snapshots before(layers_.size());
  Snapshots behind(layers_.size());
  const std::int64_t whole = bytes(*node);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (layers_[i] && (*node->snapshots)[i])
      std::tie(before[i], behind[i]) = layers_[i]->split((*node->snapshots)[i], upper->end).value();
  paged_out_ -= whole;
  node->snapshots = std::move(behind);
  upper->snapshots = std::move(before);
  paged_out_ += bytes(*node) + bytes(*upper);
  return upper;
}

Status Trie::can_merge(const Node& node, const Node& child) const {
  const bool null = std::ranges::any_of(layers_, [](const auto& layer) { return !layer; });
  if (null && (node.snapshots || child.snapshots) && quirks_.has(Quirk::kNullLayerAborts))
    return fail(Code::kPrecondition, "a layer that is null");
  return {};
}

// MR-73: takes the only child in.
Status Trie::merge(Node& node) {
  const NodePtr child = node.children.front();
  if (Status can = can_merge(node, *child); !can) return can;
  if (node.snapshots || child->snapshots) {
    const std::int64_t before = bytes(node) + bytes(*child);
    Snapshots merged(layers_.size());
    const auto of = [](const Node& one, std::size_t i) {
      return one.snapshots ? (*one.snapshots)[i] : nullptr;
    };
    for (std::size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i]) merged[i] = merged_on(*layers_[i], of(node, i), of(*child, i));
    node.snapshots = std::move(merged);
    child->snapshots.reset();
    paged_out_ += bytes(node) - before;
  }
  node.tokens.insert(node.tokens.end(), child->tokens.begin(), child->tokens.end());
  node.end = child->end;
  node.user = child->user;
  node.last_used = std::max(node.last_used, child->last_used);
  node.children = std::move(child->children);
  for (const NodePtr& grandchild : node.children) grandchild->parent = &node;
  child->children.clear();
  child->parent = nullptr;
  return {};
}

// MR-74: the first in pre-order of those that go first.
Node* Trie::victim() const {
  Node* first = nullptr;
  const auto look = [&](const auto& self, const NodePtr& node) -> void {
    const auto order = [](const Node& one) {
      return std::tuple(one.last_used, -one.end, -bytes(one));
    };
    if (node != root_ && node->has_snapshot() && !is_active(*node) &&
        (first == nullptr || order(*node) < order(*first)))
      first = node.get();
    for (const NodePtr& child : node->children) self(self, child);
  };
  if (root_) look(look, root_);
  return first;
}

Status Trie::remove(Node& node) {
  Node& parent = *node.parent;
  const auto other =
      std::ranges::find_if(parent.children, [&](const NodePtr& one) { return one.get() != &node; });
  bool merges = &parent != root_.get() && !parent.user && parent.children.size() == 2;
  if (merges && (is_active(parent) || is_active(**other)))
    merges = quirks_.has(Quirk::kMergesActive);
  if (merges)
    if (Status can = can_merge(parent, **other); !can) return can;
  set_snapshots(node, std::nullopt);
  std::erase_if(parent.children, [&](const NodePtr& one) { return one.get() == &node; });
  return merges ? merge(parent) : Status();
}

Status Trie::evict() {
  while (paged_out_ > limit_) {
    Node* node = victim();
    if (node == nullptr) break;
    if (Status done = evict(*node); !done) return done;
    ++evictions_;
    KVO_MARK("snapshot.trie", "evicted");
  }
  return {};
}

Status Trie::evict(Node& node) {
  if (node.children.empty()) return remove(node);
  const bool active = is_active(*node.children.front());
  const bool keeps = (node.user && !quirks_.has(Quirk::kUserNodeMerged)) ||
                     (active && !quirks_.has(Quirk::kMergesActive));
  if (node.children.size() == 1 && !keeps) return merge(node);
  set_snapshots(node, std::nullopt);
  return {};
}

// ---- What is shown ----

void Trie::number(const Node& node, std::map<const Node*, std::int64_t>& numbers) const {
  numbers.emplace(&node, std::ssize(numbers));
  for (const NodePtr& child : node.children) number(*child, numbers);
}

TreeView Trie::tree() const {
  TreeView view{.shown = {.paged_out_bytes = paged_out_}};
  if (root_ == nullptr) return view;
  std::map<const Node*, std::int64_t> numbers;
  number(*root_, numbers);
  std::vector<const Node*> nodes(numbers.size());
  std::set<std::int64_t> times;
  for (const auto& [node, at] : numbers) {
    nodes[static_cast<std::size_t>(at)] = node;
    times.insert(node->last_used);
  }
  for (const Node* node : nodes) {
    view.shown.nodes.push_back(
        {.parent = node->parent ? std::optional(numbers.at(node->parent)) : std::nullopt,
         .tokens = node->tokens,
         .end = node->end,
         .user = node->user,
         .last_used = std::distance(times.begin(), times.find(node->last_used))});
    view.snapshots.push_back(node->snapshots);
  }
  for (const NodePtr& node : active_) {
    const auto known = numbers.find(node.get());
    view.shown.active.push_back(known != numbers.end() ? known->second : -1);
  }
  return view;
}

}  // namespace

std::unique_ptr<PrefixTrie> make_trie(Layers layers, std::int64_t limit, QuirkSet<Quirk> quirks) {
  return std::make_unique<Trie>(std::move(layers), limit, quirks);
}

}  // namespace kvo::snapshot
