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
  Lookup& lookup = lookups_[engine];  // it is heard of, even if the event fails
  NodePtr node = root_;
  if (parent) {
    const auto known = lookup.find(*parent);
    if (known == lookup.end()) return unknown_parent();
    node = known->second;
    const auto place = node->place(*parent);
    if (!place) return unknown_parent();
    const std::size_t behind = *place + 1;
    if (node->covered(engine) < behind) {
      lookup.erase(known);
      return unknown_parent();
    }
    if (run.empty()) return {};
    const auto [in_edge, in_run] =
        std::mismatch(node->edge.begin() + static_cast<std::ptrdiff_t>(behind), node->edge.end(),
                      run.begin(), run.end());
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
    if (behind < node->edge.size())
      if (const Status done = split(node, behind); !done) return done;
  }
  return store_below(engine, node, run, parent);
}

// `last`: the key that the run goes on behind.
Status TreeFollower::store_below(const Engine& engine, NodePtr node, const Run& run,
                                 std::optional<Key> last) {
  for (std::size_t from = 0; from < run.size();) {
    if (form_ == Form::kCrtc && node != root_ && node->edge.back().key != last)
      return fail_other("rejected");  // another engine named that block
    const auto child = node->children.find(run[from].content);
    if (child == node->children.end()) {
      if (node != root_ && !node->inner && node->is_full(engine))
        extend(engine, node, run, from);
      else
        add_child(engine, node, run, from);
      return {};
    }
    const NodePtr next = child->second;
    std::size_t same = 0;
    while (same < next->edge.size() && from + same < run.size() &&
           next->edge[same].content == run[from + same].content)
      ++same;
    const bool parts = from + same < run.size() && same < next->edge.size();
    if (parts) {
      KVO_MARK_IN(Profile::kOriginal, "events.radix events.crtc events.dynamo",
                  "an edge parts where a run leaves it");
      if (const Status done = split(next, same); !done) return done;
    }
    raise(engine, *next, same);
    note(engine, run, from, from + same, next);
    last = run[from + same - 1].key;
    from += same;
    if (parts) {
      add_child(engine, next, run, from);
      return {};
    }
    node = next;
  }
  return {};
}

void TreeFollower::add_child(const Engine& engine, const NodePtr& node, const Run& run,
                             std::size_t from) {
  auto made = std::make_shared<Node>();
  made->parent = node;
  node->children[run[from].content] = made;
  node->inner = true;
  extend(engine, made, run, from);
}

// Appends the rest of a run to an edge, which the engine covers then; others cover what they did.
void TreeFollower::extend(const Engine& engine, const NodePtr& node, const Run& run,
                          std::size_t from) {
  for (std::size_t at = from; at < run.size(); ++at) node->append(run[at]);
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
// Errors  kPrecondition: `radix` covers the back part for an engine that has left (EV-58).
Status TreeFollower::split(const NodePtr& node, std::size_t at) {
  auto back = std::make_shared<Node>();
  for (std::size_t i = at; i < node->edge.size(); ++i) back->append(node->edge[i]);
  node->edge.erase(node->edge.begin() + static_cast<std::ptrdiff_t>(at), node->edge.end());
  for (const Block& block : back->edge) node->places.erase(block.key);
  back->children = std::move(node->children);
  back->inner = form_ == Form::kCrtc ? !back->children.empty() : node->inner;
  back->parent = node;
  for (auto& [content, child] : back->children) child->parent = back;
  for (auto& [engine, cover] : node->cover) {
    if (cover <= at) continue;
    back->cover[engine] = cover - at;
    cover = at;
  }
  node->children = {{back->edge.front().content, back}};
  node->inner = true;
  for (const auto& [engine, cover] : back->cover) {
    const auto lookup = lookups_.find(engine);
    if (lookup == lookups_.end()) {
      if (form_ == Form::kCrtc) continue;
      return fail(Code::kPrecondition, "an engine that has left covers the edge");
    }
    for (std::size_t i = 0; i < cover; ++i) lookup->second[back->edge[i].key] = back;
  }
  if (form_ != Form::kCrtc) prune(back);
  return {};
}

// ---- removed, cleared, leave (EV-53, EV-54, EV-56) ----

Status TreeFollower::removed(const Engine& engine, const Keys& keys) {
  const bool is_crtc = form_ == Form::kCrtc;
  if (is_crtc && !lookups_.contains(engine)) return fail_other("rejected");
  Lookup& lookup = lookups_[engine];
  std::set<Key> ended;
  bool unknown = false;
  for (const Key key : keys) {
    if (const auto copies = copies_.find({engine, key}); copies != copies_.end()) {
      if (--copies->second > 0) continue;
      copies_.erase(copies);
    }
    const auto entry = lookup.find(key);
    if (entry == lookup.end()) {
      unknown = unknown || !ended.contains(key);
      continue;
    }
    const NodePtr node = entry->second;
    const auto place = node->place(key);
    if (!place) {
      unknown = true;
      if (is_crtc) lookup.erase(entry);
      continue;
    }
    lookup.erase(entry);
    ended.insert(key);
    const std::size_t at = *place;
    const std::size_t cover = node->covered(engine);
    if (at >= cover) continue;
    if (at + 1 < cover)
      KVO_MARK_IN(Profile::kOriginal, "events.radix events.crtc events.dynamo",
                  "a hole in an edge");
    for (std::size_t i = at + 1; i < cover; ++i) {
      lookup.erase(node->edge[i].key);
      ended.insert(node->edge[i].key);
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
  if (form_ == Form::kCrtc) {
    take_off(engine.worker, engine.rank, root_);
    lookups_.erase(engine);
    return;
  }
  const auto found = lookups_.find(engine);
  if (found == lookups_.end()) return;
  std::set<NodePtr> nodes;
  for (const auto& [key, node] : found->second) nodes.insert(node);
  for (const NodePtr& node : nodes) node->cover.erase(engine);
  for (const NodePtr& node : nodes) prune(node);
  lookups_.erase(found);
}

// Takes a worker, or one rank, off every node of the tree. A node that so lost the last engine that
// covered all of it loses its children.
void TreeFollower::take_off(std::int64_t worker, std::optional<std::int64_t> rank,
                            const NodePtr& node) {
  for (const auto& [content, child] : node->children) take_off(worker, rank, child);
  const std::size_t before = node->cover.size();
  erase_engines(node->cover, worker, rank);
  if (node->cover.size() < before && node->full() == 0) node->children.clear();
}

void TreeFollower::leave(std::int64_t worker, std::optional<std::int64_t> rank) {
  std::vector<Engine> leaving;
  for (const auto& [engine, lookup] : lookups_)
    if (engine.worker == worker && (!rank || engine.rank == *rank)) leaving.push_back(engine);
  for (const Engine& engine : leaving) clear(engine);
  if (form_ == Form::kCrtc) take_off(worker, rank, root_);
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
               node->is_partial() || node->full() != active.size()) {
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

// The only child of a node, if the same engines cover all of both: a dump has both as one.
TreeFollower::NodePtr TreeFollower::joined(const Node& node) {
  NodePtr only;
  for (const auto& [content, child] : node.children) {
    if (child->cover.empty() && child->children.empty()) continue;
    if (only != nullptr) return nullptr;
    only = child;
  }
  if (only == nullptr || only->cover.empty() || node.is_partial() || only->is_partial())
    return nullptr;
  const auto engine = [](const auto& entry) { return entry.first; };
  return std::ranges::equal(node.cover, only->cover, {}, engine, engine) ? only : nullptr;
}

Result<std::int64_t> TreeFollower::handover() {
  TreeFollower next(form_, config_, quirks_);
  next.contents_ = std::move(contents_);
  std::int64_t failed = 0;
  std::vector<std::pair<NodePtr, std::optional<Key>>> nodes;
  for (const auto& [content, child] : root_->children) nodes.emplace_back(child, std::nullopt);
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    auto [node, parent] = nodes[at];
    Run edge = node->edge;
    for (NodePtr only = joined(*node); only != nullptr; only = joined(*node)) {
      node = only;
      edge.insert(edge.end(), node->edge.begin(), node->edge.end());
    }
    const std::size_t before = edge.size() - node->edge.size();
    for (const auto& [engine, cover] : node->cover) {
      const auto end = edge.begin() + static_cast<std::ptrdiff_t>(before + cover);
      if (!next.stored(engine, parent, Run(edge.begin(), end))) ++failed;
    }
    for (const auto& [content, child] : node->children) nodes.emplace_back(child, edge.back().key);
  }
  *this = std::move(next);
  return failed;
}

}  // namespace kvo::events
