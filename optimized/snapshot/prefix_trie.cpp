#include "optimized/snapshot/prefix_trie.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace kvo::optimized {
namespace {

using snapshot::Begin;
using snapshot::Cache;
using snapshot::Quirk;
using snapshot::SnapshotPtr;
using snapshot::Tokens;

// An error leaves everything as it was, as a refusal does.
bool restored(Cache& layer, const SnapshotPtr& snapshot, std::int64_t target) {
  const auto done = layer.restore(snapshot, target);
  return done && *done;
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
  const snapshot::Content content = snapshot->content();
  return content.to ? *content.to : content.offset.value_or(0);
}

bool has_null(const snapshot::Layers& layers) {
  return std::ranges::any_of(layers, [](const auto& layer) { return !layer; });
}

// The same path without the last token, which was matched.
void take_one_back(PrefixWalk& found) {
  --found.matched;
  if (--found.into_last == 0) found.path.pop_back();
}

}  // namespace

// Of nodes that agree in all else the lower number in pre-order goes first; it is not looked up,
// because each change of the structure would renumber.
bool EvictedBefore::operator()(const PrefixNode& a, const PrefixNode& b) const {
  const auto order = [](const PrefixNode& node) {
    return std::tuple(node.last_used, -node.end, -node.bytes());
  };
  const auto [first, second] = std::pair(order(a), order(b));
  return first != second ? first < second : stands_before(a, b);
}

RadixPrefixTrie::RadixPrefixTrie(snapshot::Layers layers, std::int64_t limit,
                                 QuirkSet<Quirk> quirks)
    : layers_(std::move(layers)),
      limit_(limit),
      quirks_(quirks),
      // A begin() that a null layer aborts leaves the former sequence on another path.
      keeps_all_inputs_(quirks.has(Quirk::kNullLayerAborts) && has_null(layers_)) {}

RadixPrefixTrie::~RadixPrefixTrie() {
  evictable_.clear();
  for (PrefixNode* node : active_)
    if (node->lost) const std::unique_ptr<PrefixNode> gone(node);
}

// MR-64
std::int64_t RadixPrefixTrie::offset() const {
  std::optional<std::int64_t> least;
  for (const auto& layer : layers_)
    if (layer) least = std::min(least.value_or(layer->offset()), layer->offset());
  return least.value_or(0);
}

// ---- Search ----

std::int64_t RadixPrefixTrie::matched(std::span<const std::int32_t> tokens) const {
  return tree_.root() != nullptr ? PrefixTree::matched(*tree_.root(), tokens) : 0;
}

snapshot::Find::Returns RadixPrefixTrie::find(const Tokens& tokens) const {
  if (tree_.root() == nullptr) return {};
  const PrefixWalk found = PrefixTree::walk(*tree_.root(), tokens);
  (void)tree_.numbered();
  snapshot::Find::Returns shown{.path = {}, .matched = found.matched};
  for (const PrefixNode* node : found.path) shown.path.push_back(node->number);
  return shown;
}

// ---- The index of what can be evicted ----

void RadixPrefixTrie::out_of_index(PrefixNode& node) {
  if (node.evictable.is_linked()) evictable_.erase(evictable_.iterator_to(node));
}

// Puts the node where it belongs now, which may be nowhere.
void RadixPrefixTrie::into_index(PrefixNode& node) {
  if (node.has_snapshot() && !node.active && &node != tree_.root()) evictable_.insert(node);
}

void RadixPrefixTrie::enter(PrefixNode& node) {
  out_of_index(node);
  node.active = true;
}

// A lost node is on the path alone; its snapshots stay in the counter (MR-74).
void RadixPrefixTrie::leave(PrefixNode& node) {
  node.active = false;
  if (node.lost) {
    const std::unique_ptr<PrefixNode> gone(&node);
    return;
  }
  into_index(node);
}

// MR-62: snapshots of the old list are taken over by somebody, or closed before.
void RadixPrefixTrie::set_list(PrefixNode& node, std::unique_ptr<KeptSnapshots> list) {
  paged_out_ -= node.bytes();
  node.snapshots = std::move(list);
  paged_out_ += node.bytes();
}

void RadixPrefixTrie::close_list(PrefixNode& node) {
  if (!node.snapshots) return;
  for (const SnapshotPtr& one : node.snapshots->list)
    if (one) (void)one->close();
  set_list(node, nullptr);
}

// ---- Session ----

// MR-66
Result<Begin::Returns> RadixPrefixTrie::begin(const Tokens& inputs) {
  if (open_ && !quirks_.has(Quirk::kBeginForgets) && offset() > frontier().end)
    if (const Status closed = close(); !closed) return closed.error();
  if (tree_.root() == nullptr) {
    tree_.plant(++clock_);
    active_ = {tree_.root()};
    enter(*tree_.root());
  }
  PrefixWalk found = PrefixTree::walk(*tree_.root(), inputs);
  if (found.matched == std::ssize(inputs) && found.matched > 0) take_one_back(found);
  if (const Status done = switch_to(found); !done) return done.error();
  first_ = keeps_all_inputs_ ? 0 : std::min<std::int64_t>(frontier().end, std::ssize(inputs));
  sequence_.assign(inputs.begin() + first_, inputs.end());
  open_ = true;
  const std::int64_t prefix = offset();
  snapshot_offset_ = prefix < found.matched ? found.matched : 0;
  const auto rest = std::min<std::int64_t>(prefix, std::ssize(inputs));
  return Begin::Returns{Tokens(inputs.begin() + rest, inputs.end()), snapshot_offset_};
}

void RadixPrefixTrie::output(const Tokens& tokens) {
  sequence_.insert(sequence_.end(), tokens.begin(), tokens.end());
}

// MR-67.2
bool RadixPrefixTrie::complete(const PrefixNode& node) const {
  if (!node.snapshots) return false;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool counts = layers_[i] != nullptr || quirks_.has(Quirk::kNullLayerIncomplete);
    if (counts && node.snapshots->list[i] == nullptr) return false;
  }
  return true;
}

RadixPrefixTrie::List RadixPrefixTrie::snapshots_from(std::int64_t start) const {
  List list(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (layers_[i])
      if (const auto taken = layers_[i]->snapshot(start)) list[i] = *taken;
  return list;
}

// MR-67
Status RadixPrefixTrie::switch_to(const PrefixWalk& found) {
  const auto& path = found.path;
  const std::int64_t m = found.matched;
  const auto shared =
      static_cast<std::size_t>(std::ranges::mismatch(active_, path).in1 - active_.begin());
  const std::int64_t ancestor = active_[shared - 1]->end;
  if (PrefixNode& leaf = frontier(); (shared < active_.size() || m < leaf.end) && !complete(leaf)) {
    auto list = std::make_unique<KeptSnapshots>(snapshots_from(leaf.start()));
    close_list(leaf);
    set_list(leaf, std::move(list));
  }
  for (const auto& layer : layers_)
    if (layer && !restored(*layer, nullptr, std::min(ancestor, m))) layer->free();
  page_in(path, m);
  change_path(path, shared);
  const std::int64_t reached = offset();
  const bool together = std::ranges::all_of(layers_, [&](const auto& layer) {
    return !layer || layer->offset() == reached || restored(*layer, nullptr, reached);
  });
  if (!together)
    for (const auto& layer : layers_)
      if (layer) layer->free();
  while (frontier().end > reached) {
    leave(frontier());
    active_.pop_back();
  }
  return evict();
}

// MR-67.4
void RadixPrefixTrie::page_in(const Path& path, std::int64_t matched) {
  for (const PrefixNode* node : path) {
    if (!node->has_snapshot()) continue;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const SnapshotPtr& snapshot = node->snapshots->list[i];
      if (!layers_[i] || snapshot == nullptr) continue;
      std::int64_t goal = std::min(node->end, matched);
      if (!quirks_.has(Quirk::kPageInStops)) goal = std::min(goal, end_of(snapshot));
      if (layers_[i]->offset() >= goal) continue;
      if (!restored(*layers_[i], snapshot, goal)) return;
      ++page_ins_;
    }
  }
}

// Only nodes behind the shared ones are touched. A node may be behind them on both paths, where a
// node between was lost.
void RadixPrefixTrie::change_path(const Path& path, std::size_t shared) {
  const Path before(active_.begin() + static_cast<std::ptrdiff_t>(shared), active_.end());
  for (PrefixNode* node : before) node->active = false;
  active_.resize(shared);
  active_.insert(active_.end(), path.begin() + static_cast<std::ptrdiff_t>(shared), path.end());
  for (std::size_t i = shared; i < active_.size(); ++i) enter(*active_[i]);
  for (PrefixNode* node : before)
    if (!node->active) leave(*node);
}

// MR-69, MR-71: whether the session has the tokens up to `end`.
Status RadixPrefixTrie::can_file(std::int64_t end) const {
  if (tree_.root() == nullptr) return fail(Code::kPrecondition, "no session");
  if (end <= frontier().end || end <= first_ + std::ssize(sequence_)) return {};
  return fail(quirks_.has(Quirk::kShortSequence) ? Code::kPrecondition : Code::kOutOfRange,
              "sequence");
}

// MR-69
Result<std::int64_t> RadixPrefixTrie::snapshot(bool user) {
  const std::int64_t now = offset();
  if (now <= 0) return snapshot_offset_;
  if (const Status can = can_file(now); !can) return can.error();
  const bool behind = frontier().end > now;
  if (behind && !quirks_.has(Quirk::kFrontierBehind)) return fail(Code::kPrecondition, "frontier");
  const bool attach = !behind && (frontier().end < now || !complete(frontier()));
  for (const auto& layer : layers_)
    if (attach && layer && layer->offset() != now) return fail(Code::kPrecondition, "layers");
  if (now >= snapshot_offset_) snapshot_offset_ = 0;
  if (behind) return snapshot_offset_;
  if (frontier().end < now) advance_to(now);
  if (user) frontier().user = true;
  if (attach) {
    auto list = std::make_unique<KeptSnapshots>(snapshots_from(frontier().start()));
    close_list(frontier());
    set_list(frontier(), std::move(list));
    if (const Status done = evict(); !done) return done.error();
  }
  return snapshot_offset_;
}

// MR-71
Status RadixPrefixTrie::close() {
  const std::int64_t now = offset();
  if (now <= 0) return {};
  if (const Status can = can_file(now); !can) return can.error();
  if (now > frontier().end) advance_to(now);
  ++clock_;
  for (PrefixNode* node : active_) node->last_used = clock_;
  open_ = false;
  return {};
}

// MR-70
void RadixPrefixTrie::advance_to(std::int64_t end) {
  const auto from = static_cast<std::size_t>(frontier().end - first_);
  const auto tokens = std::span<const std::int32_t>(sequence_).subspan(
      from, static_cast<std::size_t>(end - frontier().end));
  PrefixWalk found = PrefixTree::walk(frontier(), tokens);
  if (found.path.size() > 1 && found.into_last < found.path.back()->tokens.size())
    found.path.back() = &split(*found.path.back(), found.into_last);
  active_.insert(active_.end(), found.path.begin() + 1, found.path.end());
  for (std::size_t i = 1; i < found.path.size(); ++i) enter(*found.path[i]);
  const auto rest = tokens.subspan(static_cast<std::size_t>(found.matched));
  if (rest.empty()) return;
  PrefixNode& last = frontier();
  const bool marked = last.user && !quirks_.has(Quirk::kUserLeafGrows);
  if (!last.children && !last.user) close_list(last);
  if (&last == tree_.root() || last.children || last.has_snapshot() || marked) {
    active_.push_back(&tree_.append_child(last, rest));
    enter(frontier());
  } else {
    last.tokens.append(rest);
    last.end = end;
  }
}

// ---- Nodes ----

// MR-72
PrefixNode& RadixPrefixTrie::split(PrefixNode& node, std::int64_t at) {
  out_of_index(node);
  PrefixNode& upper = tree_.split(node, at);
  if (node.has_snapshot()) {
    List before(layers_.size());
    List behind(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i] && node.snapshots->list[i])
        std::tie(before[i], behind[i]) =
            layers_[i]->split(node.snapshots->list[i], upper.end).value();
    set_list(node, std::make_unique<KeptSnapshots>(std::move(behind)));
    set_list(upper, std::make_unique<KeptSnapshots>(std::move(before)));
  }
  into_index(node);
  return upper;
}

Status RadixPrefixTrie::can_merge(const PrefixNode& node, const PrefixNode& child) const {
  if (has_null(layers_) && (node.snapshots || child.snapshots) &&
      quirks_.has(Quirk::kNullLayerAborts))
    return fail(Code::kPrecondition, "a layer that is null");
  return {};
}

void RadixPrefixTrie::merge_lists(PrefixNode& node, PrefixNode& child) {
  const auto of = [](const PrefixNode& one, std::size_t i) {
    return one.snapshots ? one.snapshots->list[i] : nullptr;
  };
  List merged(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (layers_[i]) merged[i] = merged_on(*layers_[i], of(node, i), of(child, i));
  set_list(node, std::make_unique<KeptSnapshots>(std::move(merged)));
  set_list(child, nullptr);
}

// MR-73: takes the only child in.
Status RadixPrefixTrie::merge(PrefixNode& node) {
  PrefixNode& child = *node.first_child();
  if (Status can = can_merge(node, child); !can) return can;
  out_of_index(node);
  out_of_index(child);
  if (node.snapshots || child.snapshots) merge_lists(node, child);
  tree_.merge(node);
  into_index(node);
  return {};
}

Status RadixPrefixTrie::remove(PrefixNode& node) {
  PrefixNode& parent = *node.parent;
  const PrefixNode* other = nullptr;
  if (&parent != tree_.root() && !parent.user && parent.children->size() == 2)
    other = node.next != nullptr ? node.next : node.previous;
  if (other && (parent.active || other->active) && !quirks_.has(Quirk::kMergesActive))
    other = nullptr;
  if (other)
    if (Status can = can_merge(parent, *other); !can) return can;
  out_of_index(node);
  close_list(node);
  tree_.remove(node);
  return other ? merge(parent) : Status();
}

// MR-74
Status RadixPrefixTrie::evict() {
  while (paged_out_ > limit_ && !evictable_.empty()) {
    if (Status done = evict(*evictable_.begin()); !done) return done;
    ++evictions_;
  }
  return {};
}

Status RadixPrefixTrie::evict(PrefixNode& node) {
  if (!node.children) return remove(node);
  const bool keeps = (node.user && !quirks_.has(Quirk::kUserNodeMerged)) ||
                     (node.first_child()->active && !quirks_.has(Quirk::kMergesActive));
  if (node.children->is_one() && !keeps) return merge(node);
  out_of_index(node);
  close_list(node);
  return {};
}

// ---- What is shown ----

snapshot::TreeView RadixPrefixTrie::tree() const {
  snapshot::TreeView view{.shown = {.paged_out_bytes = paged_out_}};
  std::vector<std::int64_t> times;
  for (const PrefixNode* node : tree_.numbered()) times.push_back(node->last_used);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  for (const PrefixNode* node : tree_.numbered()) {
    const auto tokens = node->tokens.tokens();
    view.shown.nodes.push_back(
        {.parent = node->parent ? std::optional(node->parent->number) : std::nullopt,
         .tokens = Tokens(tokens.begin(), tokens.end()),
         .end = node->end,
         .user = node->user,
         .last_used = std::ranges::lower_bound(times, node->last_used) - times.begin()});
    view.snapshots.emplace_back();
    if (node->snapshots) view.snapshots.back() = node->snapshots->list;
  }
  for (const PrefixNode* node : active_)
    view.shown.active.push_back(node->lost ? -1 : node->number);
  return view;
}

std::unique_ptr<snapshot::PrefixTrie> make_prefix_trie(snapshot::Layers layers, std::int64_t limit,
                                                       QuirkSet<Quirk> quirks) {
  return std::make_unique<RadixPrefixTrie>(std::move(layers), limit, quirks);
}

}  // namespace kvo::optimized
