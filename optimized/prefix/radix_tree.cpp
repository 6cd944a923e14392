#include "optimized/prefix/radix_tree.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "optimized/snapshot/token_match.hpp"

namespace kvo::optimized {

using prefix::EventKind;
using prefix::Key;
using prefix::Policy;
using prefix::Quirk;
using prefix::ShownNode;
using prefix::Token;
using prefix::TokensView;

namespace {

std::uint32_t tag_of_number(std::int64_t number) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15U >>
                                    32U);
}

Key key_of(ChainHash hash) {
  return {hash.high, hash.low};
}

// Puts units [begin, begin + to.units) of a run into another one.
void copy_units(const Run& from, std::size_t begin, Run& to, std::size_t wide) {
  std::memcpy(to.slots(), from.slots() + begin, to.units * sizeof(std::int64_t));
  std::memcpy(to.tokens(), from.tokens() + begin, (to.units + wide) * sizeof(Token));
}

}  // namespace

RadixTree::RadixTree(const prefix::RadixConfig& config, QuirkSet<Quirk> quirks)
    : config_(config), quirks_(quirks) {
  nodes_.emplace_back();
  reset();
}

RadixTree::~RadixTree() {
  for (Node& node : nodes_) runs_.give(node.run);
}

void RadixTree::reset() {
  if (config_.events) events_.reserve(1, 0, 0);
  for (Node& node : nodes_) {
    runs_.give(node.run);
    if (node.space != Namespaces::kNone) spaces_.leave(node.space);
  }
  nodes_.resize(1);  // never more than there were
  nodes_[kRoot] = {};
  nodes_[kRoot].number = next_number_++;
  unused_ = kNone;
  unused_count_ = 0;
  edges_.clear();
  numbers_.clear();
  leaves_.clear();
  evictable_ = protected_ = total_ = 0;
  if (config_.events && !config_.disable) events_.begin(EventKind::kCleared);
}

// ---- Walks ----

std::int64_t RadixTree::units_of(std::int64_t tokens) const {
  const std::int64_t units = std::max<std::int64_t>(tokens - (config_.eagle ? 1 : 0), 0);
  return units - units % config_.page_size;
}

std::uint32_t RadixTree::tag_of(Id parent, Namespaces::Id space, const Token* page) const {
  const ChainHash hash =
      hash_behind({.high = parent, .low = space}, TokensView(page, page_tokens()));
  return static_cast<std::uint32_t>(hash.low);
}

RadixTree::Id RadixTree::child_of(Id parent, Namespaces::Id space, const Token* page) const {
  const std::size_t bytes = page_tokens() * sizeof(Token);
  return edges_.find(tag_of(parent, space, page), [&](Id id) {
    const Node& node = nodes_[id];
    return node.parent == parent && node.space == space &&
           std::memcmp(node.run.tokens(), page, bytes) == 0;
  });
}

RadixTree::Walk RadixTree::find(TokensView tokens, Namespaces::Id space) const {
  Walk walk;
  walk.units = units_of(std::ssize(tokens));
  if (walk.units == 0) return walk;
  const std::int64_t wide = config_.eagle ? 1 : 0;
  walk.tokens = tokens.first(static_cast<std::size_t>(walk.units + wide));
  while (walk.length < walk.units) {
    const TokensView rest = walk.tokens.subspan(static_cast<std::size_t>(walk.length));
    const Id child = child_of(walk.node, space, rest.data());
    if (child == kNone) break;
    const Run& run = nodes_[child].run;
    const std::int64_t common =
        units_of(matched_tokens({run.tokens(), run.units + static_cast<std::size_t>(wide)}, rest));
    walk.length += common;
    if (common < nodes_[child].units) {
      walk.child = child;
      walk.common = common;
      break;
    }
    walk.node = child;
  }
  return walk;
}

void RadixTree::reserve(std::size_t nodes, std::int64_t told) {
  const std::size_t made = nodes - std::min(nodes, unused_count_);
  if (made >= kNone - nodes_.size()) throw std::bad_alloc();
  make_room(nodes_, made);
  leaves_.reserve(nodes_.size() + made - leaves_.leaves().size());
  edges_.reserve(nodes);
  numbers_.reserve(nodes);
  if (config_.events)
    events_.reserve(2, static_cast<std::size_t>(told), static_cast<std::size_t>(told));
}

// A split copies its smaller part, so that a unit is copied at most once each time that what it is
// in is halved. The other part stays where it is, unless that would keep much memory for little.
void RadixTree::prepare(const Walk& walk, Room& room, bool inserts) {
  if (walk.child != kNone) {
    const Run& run = nodes_[walk.child].run;
    const auto front = static_cast<std::size_t>(walk.common);
    const std::size_t small = std::min(front, run.units - front);
    room.part.emplace(runs_, small);
    if (4 * (run.units - small) < run.room()) room.rest.emplace(runs_, run.units - small);
  }
  if (inserts && walk.length < walk.units)
    room.leaf.emplace(runs_, static_cast<std::size_t>(walk.units - walk.length));
}

RadixTree::Id RadixTree::pass(const Walk& walk, Room& room, const Use* use) noexcept {
  const std::int64_t now = clock_++;
  std::int64_t end = walk.length - walk.common;
  for (Id id = walk.node; id != kRoot; id = nodes_[id].parent) {
    Node& node = nodes_[id];
    node.used = now;
    if (use != nullptr) {
      if (end > use->inserted) ++node.hits;
      node.priority = std::max(node.priority, use->priority);
    }
    end -= node.units;
    if (node.place != kNowhere) leaves_.renew(*this, id);
  }
  if (walk.child == kNone) return walk.node;
  if (quirks_.has(Quirk::kRestIsRenewed)) {
    nodes_[walk.child].used = now;
    if (nodes_[walk.child].place != kNowhere) leaves_.renew(*this, walk.child);
  }
  const Id front = split(walk.child, walk.common, room);
  if (use != nullptr) {
    if (walk.length > use->inserted) ++nodes_[front].hits;
    nodes_[front].priority = std::max(nodes_[front].priority, use->priority);
  }
  return front;
}

RadixTree::Id RadixTree::make() noexcept {
  Id made = unused_;
  if (made != kNone) {
    unused_ = nodes_[made].later;
    --unused_count_;
    nodes_[made] = {};
  } else {
    made = static_cast<Id>(nodes_.size());
    nodes_.emplace_back();  // there is room
  }
  nodes_[made].number = next_number_++;
  numbers_.add(tag_of_number(nodes_[made].number), made);
  return made;
}

// PX-65: a new node takes the first units, and the place of the other.
RadixTree::Id RadixTree::split(Id id, std::int64_t units, Room& room) noexcept {
  const Id made = make();
  Node& rest = nodes_[id];
  Node& front = nodes_[made];
  const std::size_t wide = config_.eagle ? 1 : 0;
  const Run whole = rest.run;
  const auto cut = static_cast<std::size_t>(units);
  Run part = room.part->release();
  Run other = whole;
  const bool front_is_part = cut <= whole.units - cut;
  copy_units(whole, front_is_part ? 0 : cut, part, wide);
  other.units -= part.units;
  if (front_is_part) other.from += cut;
  if (room.rest) {
    Run moved = room.rest->release();
    copy_units(other, 0, moved, wide);
    runs_.give(other);
    other = moved;
  }
  front.run = front_is_part ? part : other;
  rest.run = front_is_part ? other : part;

  front.parent = rest.parent;
  front.units = units;
  front.space = rest.space;
  front.lock = rest.lock;
  front.hits = rest.hits;
  front.priority = rest.priority;
  front.used = clock_++;
  front.created = clock_++;
  if (!quirks_.has(Quirk::kSplitIsNew)) front.created = rest.created;
  front.tag = rest.tag;
  spaces_.use_again(front.space);
  edges_.replace(rest.tag, id, made);
  front.earlier = rest.earlier;
  front.later = rest.later;
  (front.earlier == kNone ? nodes_[front.parent].first : nodes_[front.earlier].later) = made;
  (front.later == kNone ? nodes_[front.parent].last : nodes_[front.later].earlier) = made;

  rest.units -= units;
  hang_below(made, id);
  rest.tag = tag_of(made, rest.space, rest.run.tokens());
  edges_.add(rest.tag, id);
  if (config_.events) {
    front.hash = hash_before(made);
    for (std::int64_t at = 0; at < units; at += config_.page_size)
      front.hash = hash_behind(front.hash, {front.run.tokens() + at, page_tokens()});
  }
  return made;
}

void RadixTree::hang_below(Id parent, Id id) noexcept {
  Node& node = nodes_[id];
  node.parent = parent;
  node.earlier = nodes_[parent].last;
  node.later = kNone;
  (node.earlier == kNone ? nodes_[parent].first : nodes_[node.earlier].later) = id;
  nodes_[parent].last = id;
}

RadixTree::Id RadixTree::insert(const Walk& walk, Room& room, const Use& use, Namespaces::Id space,
                                const std::int64_t* slots) noexcept {
  const Id at = pass(walk, room, &use);
  if (walk.length == walk.units) return at;
  const Id made = make();
  Node& node = nodes_[made];
  node.units = walk.units - walk.length;
  node.space = space;
  spaces_.use_again(space);
  node.priority = use.priority;
  node.used = clock_++;
  node.created = clock_++;
  if (walk.units > use.inserted) ++node.hits;
  node.run = room.leaf->release();
  const TokensView tokens = walk.tokens.subspan(static_cast<std::size_t>(walk.length));
  std::memcpy(node.run.tokens(), tokens.data(), tokens.size_bytes());
  if (slots != nullptr)
    std::memcpy(node.run.slots(), slots + walk.length, node.run.units * sizeof(std::int64_t));
  else
    std::copy_n(tokens.data(), node.units, node.run.slots());
  hang_below(at, made);
  node.tag = tag_of(at, space, node.run.tokens());
  edges_.add(node.tag, made);
  if (config_.events) tell_stored(made);
  evictable_ += node.units;
  total_ += node.units;
  list(made);
  list(at);
  return made;
}

void RadixTree::write_slots(Id node, std::int64_t length, std::int64_t from,
                            std::int64_t* to) const {
  for (std::int64_t end = length; node != kRoot && end > from; node = nodes_[node].parent) {
    const std::int64_t begin = end - nodes_[node].units;
    const std::int64_t first = std::max(begin, from);
    std::memcpy(to + first, nodes_[node].run.slots() + (first - begin),
                static_cast<std::size_t>(end - first) * sizeof(std::int64_t));
    end = begin;
  }
}

// ---- Eviction ----

// PX-71: those that stand alike go by number.
bool RadixTree::before(Id a, Id b) const {
  const auto standing = [&](const Node& node) -> std::pair<std::int64_t, std::int64_t> {
    switch (config_.policy) {
      case Policy::kLru:
        return {node.used, 0};
      case Policy::kMru:
        return {-node.used, 0};
      case Policy::kFifo:
        return {node.created, 0};
      case Policy::kFilo:
        return {-node.created, 0};
      case Policy::kLfu:
        return {node.hits, node.used};
      case Policy::kPriority:
        return {node.priority, node.used};
      case Policy::kSlru:
        return {node.hits < config_.slru_threshold.value_or(2) ? 0 : 1, node.used};
      case Policy::kTlru:
        break;
    }
    return {0, 0};
  };
  const auto of_a = standing(nodes_[a]);
  const auto of_b = standing(nodes_[b]);
  return of_a != of_b ? of_a < of_b : nodes_[a].number < nodes_[b].number;
}

// PX-70
void RadixTree::list(Id id) noexcept {
  if (id == kRoot) return;
  const Node& node = nodes_[id];
  const bool listed = node.place != kNowhere;
  if (listed == (node.first == kNone && node.lock <= 0)) return;
  if (listed)
    leaves_.remove(*this, id);
  else
    leaves_.add(*this, id);
}

void RadixTree::unhang(Id id) noexcept {
  const Node& node = nodes_[id];
  (node.earlier == kNone ? nodes_[node.parent].first : nodes_[node.earlier].later) = node.later;
  (node.later == kNone ? nodes_[node.parent].last : nodes_[node.later].earlier) = node.earlier;
}

void RadixTree::take_off(Id leaf) noexcept {
  Node& node = nodes_[leaf];
  leaves_.remove(*this, leaf);
  edges_.remove(node.tag, leaf);
  unhang(leaf);
  node.gone = true;
  evictable_ -= node.units;
  total_ -= node.units;
  if (node.parent != kRoot && nodes_[node.parent].lock == 0) list(node.parent);  // PX-72
}

// What was taken off still knows its neighbours.
void RadixTree::put_back(Id leaf) noexcept {
  Node& node = nodes_[leaf];
  (node.earlier == kNone ? nodes_[node.parent].first : nodes_[node.earlier].later) = leaf;
  (node.later == kNone ? nodes_[node.parent].last : nodes_[node.later].earlier) = leaf;
  node.gone = false;
  evictable_ += node.units;
  total_ += node.units;
  edges_.add(node.tag, leaf);
  list(leaf);
  list(node.parent);
}

void RadixTree::list_parent(Id leaf) noexcept {
  const Id parent = nodes_[leaf].parent;
  if (!nodes_[parent].gone) list(parent);
}

void RadixTree::drop(Id leaf) noexcept {
  Node& node = nodes_[leaf];
  if (config_.events) tell_removed(leaf);
  runs_.give(node.run);
  spaces_.leave(node.space);
  node.space = Namespaces::kNone;
  if (keeps_shells()) return;
  numbers_.remove(tag_of_number(node.number), leaf);
  node.number = -1;
  node.later = unused_;
  unused_ = leaf;
  ++unused_count_;
}

// ---- Locks ----

RadixTree::Id RadixTree::find(std::int64_t number) const {
  if (number == nodes_[kRoot].number) return kRoot;
  return numbers_.find(tag_of_number(number), [&](Id id) { return nodes_[id].number == number; });
}

bool RadixTree::may_unlock(Id node) const {
  return node == kRoot || nodes_[node].own_locks > 0 || quirks_.has(Quirk::kUnlockUnguarded);
}

std::int64_t RadixTree::lock(Id id) noexcept {
  std::int64_t delta = 0;
  if (id != kRoot) ++nodes_[id].own_locks;
  for (; id != kRoot; id = nodes_[id].parent) {
    if (nodes_[id].lock++ == 0) delta -= nodes_[id].units;
    list(id);
  }
  evictable_ += delta;
  protected_ -= delta;
  return delta;
}

std::int64_t RadixTree::unlock(Id id) noexcept {
  std::int64_t delta = 0;
  if (id != kRoot) --nodes_[id].own_locks;
  for (; id != kRoot; id = nodes_[id].parent) {
    if (nodes_[id].lock-- == 1) delta += nodes_[id].units;
    list(id);
  }
  evictable_ += delta;
  protected_ -= delta;
  return delta;
}

// ---- Events ----

ChainHash RadixTree::hash_before(Id id) const {
  const Node& node = nodes_[id];
  if (node.parent != kRoot) return nodes_[node.parent].hash;
  const Namespaces::Words& words = spaces_.words(node.space);
  ChainHash hash = hash_behind({}, std::string_view(words.salt));
  if (words.extra && !quirks_.has(Quirk::kEventKeysLackExtra))
    hash = hash_behind(hash, std::string_view(*words.extra));
  return hash;
}

// PX-77. Requires  room.
void RadixTree::tell_stored(Id id) noexcept {
  Node& node = nodes_[id];
  node.hash = hash_before(id);
  const bool first = node.parent == kRoot;
  if (first || !events_.last_is(EventKind::kStored) || events_.last_key() != key_of(node.hash))
    events_.begin(EventKind::kStored, first ? std::nullopt : std::optional<Key>(key_of(node.hash)));
  for (std::int64_t at = 0; at < node.units; at += config_.page_size) {
    node.hash = hash_behind(node.hash, {node.run.tokens() + at, page_tokens()});
    events_.add_key(key_of(node.hash));
  }
  events_.add_tokens({node.run.tokens(), node.run.units});
}

void RadixTree::tell_removed(Id id) noexcept {
  if (!events_.last_is(EventKind::kRemoved)) events_.begin(EventKind::kRemoved);
  const Node& node = nodes_[id];
  ChainHash hash = hash_before(id);
  for (std::int64_t at = 0; at < node.units; at += config_.page_size) {
    hash = hash_behind(hash, {node.run.tokens() + at, page_tokens()});
    events_.add_key(key_of(hash));
  }
}

// ---- what a tree shows of itself ----

// Depth first, along the links.
void RadixTree::all_slots(prefix::Ids& to) const {
  make_room(to, static_cast<std::size_t>(total_));
  for (Id id = nodes_[kRoot].first; id != kNone;) {
    const prefix::IdsView own = slots(id);
    to.insert(to.end(), own.begin(), own.end());
    if (nodes_[id].first != kNone) {
      id = nodes_[id].first;
      continue;
    }
    while (id != kRoot && nodes_[id].later == kNone) id = nodes_[id].parent;
    id = id == kRoot ? kNone : nodes_[id].later;
  }
}

void RadixTree::fill(prefix::ShowTreeReturns& state) const {
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
         .tokens = {tokens, tokens + node.units + (config_.eagle ? 1 : 0)},
         .slots = {own, own + node.units},
         .lock = node.lock,
         .hits = node.hits,
         .priority = node.priority,
         .extra = words.extra,
         .salt = words.salt.empty() ? std::nullopt : std::optional<std::string>(words.salt)});
  }
  std::ranges::sort(state.nodes, {}, &ShownNode::node);
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
