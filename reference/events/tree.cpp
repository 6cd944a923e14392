#include "reference/events/tree.hpp"

#include <algorithm>

#include "reference/contract/values/mark.hpp"

namespace kvo::events {

TreeFollower::TreeFollower(Form form, const Config& config, QuirkSet<Quirk> quirks)
    : form_(form), config_(config), quirks_(quirks) {}

Status TreeFollower::unknown_parent() const {
  return fail_other(form_ == Form::kCrtc ? "rejected" : "unknown_parent");
}

Status TreeFollower::apply(const Engine& engine, const Event& event) {
  if (event.kind == EventKind::kCleared) {
    clear(engine);
    return {};
  }
  if (event.kind == EventKind::kRemoved) return removed(engine, event.keys);
  const bool names_parent =
      event.parent && std::ranges::find(event.keys, *event.parent) != event.keys.end();
  if (names_parent && form_ == Form::kCrtc)
    return fail(Code::kPrecondition, "parent: one of the keys");
  if (names_parent) return fail_other("bad_sequence");
  const auto contents =
      contents_.blocks(event.tokens, config_.block_size,
                       {event.lora.value_or(""), event.salt.value_or("")}, event.keys.size());
  Run run;
  for (std::size_t at = 0; at < contents.size(); ++at)
    run.push_back({contents[at], event.keys[at]});
  return stored(engine, event.parent, run);
}

// ---- stored (EV-51) ----

Status TreeFollower::stored(const Engine& engine, std::optional<Key> parent, const Run& run) {
  NodePtr node = root_;
  if (parent) {
    const auto lookup = lookups_.find(engine);
    if (lookup == lookups_.end()) return unknown_parent();
    const auto known = lookup->second.find(*parent);
    if (known == lookup->second.end()) return unknown_parent();
    node = known->second;
    const auto place = std::ranges::find(node->edge, *parent, &Block::key);
    if (place == node->edge.end()) return unknown_parent();
    const auto behind = static_cast<std::size_t>(place - node->edge.begin()) + 1;
    if (node->covered(engine) < behind) {
      lookup->second.erase(known);
      return unknown_parent();
    }
    if (run.empty()) return {};
    const auto [in_edge, in_run] =
        std::mismatch(place + 1, node->edge.end(), run.begin(), run.end());
    if (in_run == run.end()) {
      KVO_MARK_IN(Profile::kOriginal, "events.radix events.crtc events.dynamo",
                  "stored inside of an edge");
      raise(engine, *node, behind + run.size());
      note(engine, run, 0, run.size(), node);
      return {};
    }
    const auto same = static_cast<std::size_t>(in_run - run.begin());
    if (!node->inner && in_edge == node->edge.end()) {
      note(engine, run, 0, same, node);
      extend(engine, node, run, same);
      return {};
    }
    if (behind < node->edge.size()) split(node, behind);
  }
  lookups_[engine];  // it is heard of, even of a run without blocks
  store_below(engine, node, run, 0);
  return {};
}

void TreeFollower::store_below(const Engine& engine, NodePtr node, const Run& run,
                               std::size_t from) {
  while (from < run.size()) {
    const auto child = node->children.find(run[from].content);
    if (child == node->children.end()) {
      if (node != root_ && !node->inner && node->is_full(engine))
        return extend(engine, node, run, from);
      auto made = std::make_shared<Node>();
      made->parent = node;
      node->children[run[from].content] = made;
      node->inner = true;
      return extend(engine, made, run, from);
    }
    const NodePtr next = child->second;
    std::size_t same = 0;
    while (same < next->edge.size() && from + same < run.size() &&
           next->edge[same].content == run[from + same].content)
      ++same;
    note(engine, run, from, from + same, next);
    raise(engine, *next, same);
    from += same;
    if (from < run.size() && same < next->edge.size()) {
      KVO_MARK_IN(Profile::kOriginal, "events.radix events.crtc events.dynamo",
                  "an edge parts where a run leaves it");
      split(next, same);
    }
    node = next;
  }
}

// Appends the rest of a run to an edge, which the engine covers then; others cover what they did.
void TreeFollower::extend(const Engine& engine, const NodePtr& node, const Run& run,
                          std::size_t from) {
  node->edge.insert(node->edge.end(), run.begin() + static_cast<std::ptrdiff_t>(from), run.end());
  raise(engine, *node, node->edge.size());
  note(engine, run, from, run.size(), node);
}

void TreeFollower::raise(const Engine& engine, Node& node, std::size_t blocks) {
  std::size_t& cover = node.cover[engine];
  cover = std::max(cover, blocks);
}

void TreeFollower::note(const Engine& engine, const Run& run, std::size_t from, std::size_t to,
                        const NodePtr& node) {
  for (; from < to; ++from) {
    lookups_[engine][run[from].key] = node;
    if (!quirks_.has(Quirk::kOneRemovalEnds)) ++copies_[{engine, run[from].key}];
  }
}

// The back part from `at` on becomes a child (EV-52).
void TreeFollower::split(const NodePtr& node, std::size_t at) {
  auto back = std::make_shared<Node>();
  const auto cut = node->edge.begin() + static_cast<std::ptrdiff_t>(at);
  back->edge.assign(cut, node->edge.end());
  node->edge.erase(cut, node->edge.end());
  back->children = std::move(node->children);
  back->inner = node->inner;
  back->parent = node;
  for (auto& [content, child] : back->children) child->parent = back;
  for (auto& [engine, cover] : node->cover) {
    if (cover <= at) continue;
    back->cover[engine] = cover - at;
    for (std::size_t i = 0; i < cover - at; ++i) lookups_[engine][back->edge[i].key] = back;
    cover = at;
  }
  node->children = {{back->edge.front().content, back}};
  node->inner = true;
}

// ---- removed, cleared, leave (EV-53, EV-54, EV-56) ----

Status TreeFollower::removed(const Engine& engine, const Keys& keys) {
  const bool is_crtc = form_ == Form::kCrtc;
  const auto found = lookups_.find(engine);
  if (found == lookups_.end()) return fail_other(is_crtc ? "rejected" : "unknown_block");
  Lookup& lookup = found->second;
  std::set<Key> cut_off;
  bool unknown = false;
  for (const Key key : keys) {
    if (const auto copies = copies_.find({engine, key}); copies != copies_.end()) {
      if (--copies->second > 0) continue;
      copies_.erase(copies);
    }
    const auto entry = lookup.find(key);
    if (entry == lookup.end()) {
      unknown = unknown || !cut_off.contains(key);
      continue;
    }
    const NodePtr node = entry->second;
    const auto place = std::ranges::find(node->edge, key, &Block::key);
    if (place == node->edge.end()) {
      unknown = true;
      if (is_crtc) lookup.erase(entry);
      continue;
    }
    lookup.erase(entry);
    const auto at = static_cast<std::size_t>(place - node->edge.begin());
    const std::size_t cover = node->covered(engine);
    if (at >= cover) continue;
    if (at + 1 < cover)
      KVO_MARK_IN(Profile::kOriginal, "events.radix events.crtc events.dynamo",
                  "a hole in an edge");
    for (std::size_t i = at + 1; i < cover; ++i) {
      lookup.erase(node->edge[i].key);
      cut_off.insert(node->edge[i].key);
    }
    if (at > 0)
      node->cover[engine] = at;
    else
      node->cover.erase(engine);
    prune(node);
  }
  if (unknown && !is_crtc) return fail_other("unknown_block");
  return {};
}

void TreeFollower::prune(const NodePtr& node) {
  if (node == root_) return;
  if (node->full() == 0) node->children.clear();
  if (form_ == Form::kCrtc || !node->cover.empty()) return;
  const NodePtr parent = node->parent.lock();
  if (parent == nullptr) return;
  const auto child = parent->children.find(node->edge.front().content);
  if (child != parent->children.end() && child->second == node) parent->children.erase(child);
}

void TreeFollower::clear(const Engine& engine) {
  std::erase_if(copies_, [&](const auto& entry) { return entry.first.first == engine; });
  const auto found = lookups_.find(engine);
  if (found == lookups_.end()) return;
  if (form_ == Form::kCrtc) {
    take_off(engine, root_);
  } else {
    std::set<NodePtr> nodes;
    for (const auto& [key, node] : found->second) nodes.insert(node);
    for (const NodePtr& node : nodes) node->cover.erase(engine);
    for (const NodePtr& node : nodes) prune(node);
  }
  found->second.clear();
}

// Takes the engine off every node of the tree. A node that so lost the last engine that covered all
// of it loses its children.
void TreeFollower::take_off(const Engine& engine, const NodePtr& node) {
  for (const auto& [content, child] : node->children) take_off(engine, child);
  const bool was_full = node != root_ && node->cover.contains(engine) && node->is_full(engine);
  node->cover.erase(engine);
  if (was_full && node->full() == 0) node->children.clear();
}

void TreeFollower::leave(std::int64_t worker, std::optional<std::int64_t> rank) {
  std::vector<Engine> leaving;
  for (const auto& [engine, lookup] : lookups_)
    if (engine.worker == worker && (!rank || engine.rank == *rank)) leaving.push_back(engine);
  for (const Engine& engine : leaving) {
    clear(engine);
    lookups_.erase(engine);
  }
}

// ---- query (EV-55, EV-56) ----

std::map<Engine, TreeFollower::Depth> TreeFollower::depths(const Prompt& asked) {
  const auto prompt = contents_.blocks(asked.tokens, config_.block_size, {asked.lora, asked.salt});
  std::map<Engine, Depth> found;
  std::set<Engine> active;
  const Node* node = root_.get();
  std::size_t depth = 0;
  Key last = 0;
  const auto drop = [&](const Engine& engine, std::size_t more) {
    if (depth + more == 0) return;
    const Key key = more > 0 ? node->edge[more - 1].key : last;
    found[engine] = {static_cast<std::int64_t>(depth + more), key};
  };
  while (depth < prompt.size()) {
    const auto child = node->children.find(prompt[depth]);
    if (child == node->children.end()) break;
    const bool is_first = node == root_.get();
    node = child->second.get();
    std::size_t same = 0;
    while (same < node->edge.size() && depth + same < prompt.size() &&
           node->edge[same].content == prompt[depth + same])
      ++same;
    if (is_first) {
      for (const auto& [engine, cover] : node->cover)
        if (cover == node->edge.size())
          active.insert(engine);
        else
          drop(engine, std::min(cover, same));
    } else if (!quirks_.has(Quirk::kCountIsIdentity) || form_ != Form::kCrtc ||
               node->full() != active.size()) {
      std::erase_if(active, [&](const Engine& engine) {
        if (node->is_full(engine)) return false;
        drop(engine, std::min(node->covered(engine), same));
        return true;
      });
    } else if (!std::ranges::all_of(active, [&](const Engine& e) { return node->is_full(e); })) {
      KVO_MARK_IN(Profile::kOriginal, "events.crtc", "as many engines, but not the same");
    }
    depth += same;
    if (same > 0) last = node->edge[same - 1].key;
    if (active.empty() || same < node->edge.size()) break;
  }
  for (const Engine& engine : active) found[engine] = {static_cast<std::int64_t>(depth), last};
  return found;
}

Matches TreeFollower::query(const Prompt& prompt) {
  Matches matches;
  for (const auto& [engine, depth] : depths(prompt))
    matches.push_back({.worker = engine.worker, .rank = engine.rank, .blocks = depth.blocks});
  return matches;
}

Result<std::int64_t> TreeFollower::size() const {
  if (form_ == Form::kCrtc) return fail(Code::kNotSupported);
  std::int64_t size = 0;
  for (const auto& [engine, lookup] : lookups_) size += std::ssize(lookup);
  return size;
}

// ---- handover (EV-57) ----

Result<std::int64_t> TreeFollower::handover() {
  TreeFollower next(form_, config_, quirks_);
  next.contents_ = std::move(contents_);
  std::int64_t failed = 0;
  std::vector<std::pair<NodePtr, std::optional<Key>>> nodes{{root_, std::nullopt}};
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const auto [node, parent] = nodes[at];
    for (const auto& [engine, cover] : node->cover) {
      const auto end = node->edge.begin() + static_cast<std::ptrdiff_t>(cover);
      if (!next.stored(engine, parent, Run(node->edge.begin(), end))) ++failed;
    }
    std::optional<Key> last;
    if (!node->edge.empty()) last = node->edge.back().key;
    for (const auto& [content, child] : node->children) nodes.emplace_back(child, last);
  }
  *this = std::move(next);
  return failed;
}

}  // namespace kvo::events
