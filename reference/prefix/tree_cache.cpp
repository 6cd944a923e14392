#include "reference/prefix/tree_cache.hpp"

#include <algorithm>
#include <iterator>

#include "reference/contract/values/check.hpp"
#include "reference/contract/values/mark.hpp"

namespace kvo::prefix {
namespace {

template <class T>
std::span<const T> part(const std::vector<T>& all, std::int64_t begin, std::int64_t count) {
  return std::span(all).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}
template <class T>
std::vector<T> cut(const std::vector<T>& all, std::int64_t begin, std::int64_t end) {
  return {all.begin() + begin, all.begin() + end};
}

}  // namespace

RadixTree::RadixTree(const RadixConfig& config, QuirkSet<Quirk> quirks)
    : config_(config), quirks_(quirks) {
  reset();
  commit();
}

void RadixTree::commit() noexcept {
  runs_.commit();
  marks_.commit();
  children_.commit();
  events_.commit();
  totals_before_ = totals_;
}

void RadixTree::roll_back() noexcept {
  runs_.roll_back();
  marks_.roll_back();
  children_.roll_back();
  events_.roll_back();
  totals_ = totals_before_;
}

void RadixTree::reset() {
  const std::int64_t root = add_node({}, {});
  totals_ = {.root = root, .clock = totals_.clock};
  if (config_.events && !config_.disable) events_.add({.kind = EventKind::kCleared});
}

// ---- Walks ----

std::int64_t RadixTree::units_of(std::int64_t tokens) const {
  const std::int64_t units = std::max<std::int64_t>(tokens - (config_.eagle ? 1 : 0), 0);
  return units / config_.page_size * config_.page_size;
}

TokensView RadixTree::first_page(TokensView tokens) const {
  return tokens.first(static_cast<std::size_t>(config_.page_size + (config_.eagle ? 1 : 0)));
}

std::optional<std::int64_t> RadixTree::child_of(std::int64_t parent, const Namespace& space,
                                                TokensView page) const {
  const auto found =
      places_.find(Place(parent, space.extra, space.salt, Tokens(page.begin(), page.end())));
  if (found == places_.end() || found->second >= children_.size()) return std::nullopt;
  return children_[found->second];
}

void RadixTree::set_child(std::int64_t parent, const Namespace& space, TokensView page,
                          std::optional<std::int64_t> child) {
  Place there(parent, space.extra, space.salt, Tokens(page.begin(), page.end()));
  const auto row = places_.try_emplace(std::move(there), std::ssize(places_)).first->second;
  while (children_.size() <= row) children_.add(std::nullopt);
  children_.change(row) = child;
}

// Whole pages that a node's run and what is looked up have in common.
std::int64_t RadixTree::common_units(const Run& run, TokensView rest) const {
  const auto differ = std::ranges::mismatch(run.tokens, rest);
  return units_of(differ.in1 - run.tokens.begin());
}

RadixTree::Reached RadixTree::walk(TokensView tokens, const Namespace& space,
                                   const Filing* insertion) {
  const std::int64_t now = totals_.clock++;
  const std::int64_t units = units_of(std::ssize(tokens));
  const auto whole =
      tokens.first(static_cast<std::size_t>(units > 0 && config_.eagle ? units + 1 : units));
  Reached at{.node = root(), .length = 0};
  while (at.length < units) {
    const TokensView rest = whole.subspan(static_cast<std::size_t>(at.length));
    const auto found = child_of(at.node, space, first_page(rest));
    if (!found) break;
    std::int64_t child = *found;
    const std::int64_t common = common_units(runs_[child], rest);
    const bool splits = common < runs_[child].units;
    if (!splits || quirks_.has(Quirk::kRestIsRenewed)) marks_.change(child).used = now;
    if (splits) child = split(child, common);
    at = {.node = child, .length = at.length + common};
    if (insertion != nullptr) {
      count_hit(at.node, at.length, *insertion);
      std::int64_t& priority = marks_.change(at.node).priority;  // PX-69
      priority = std::max(priority, insertion->priority);
    }
    if (splits) break;
  }
  return at;
}

RadixTree::Reached RadixTree::match(TokensView tokens, const Namespace& space) {
  return walk(tokens, space, nullptr);
}

Ids RadixTree::slots_to(std::int64_t node) const {
  std::vector<std::int64_t> path;
  for (; node != root(); node = runs_[node].parent) path.push_back(node);
  Ids slots;
  for (auto step = path.rbegin(); step != path.rend(); ++step)
    slots.insert(slots.end(), runs_[*step].slots.begin(), runs_[*step].slots.end());
  return slots;
}

std::int64_t RadixTree::add_node(Run run, Mark mark) {
  marks_.add(mark);
  return runs_.add(std::move(run));
}

// PX-65: a new node takes the first units; the node stays below it with the rest.
std::int64_t RadixTree::split(std::int64_t node, std::int64_t units) {
  KVO_MARK("prefix.radix", "split");
  const std::int64_t wide = config_.eagle ? 1 : 0;
  const std::int64_t pages = units / config_.page_size;
  Run& rest = runs_.change(node);
  Run front{.parent = rest.parent,
            .units = units,
            .tokens = cut(rest.tokens, 0, units + wide),
            .slots = cut(rest.slots, 0, units),
            .keys = {},
            .children = {node},
            .extra = rest.extra,
            .salt = rest.salt};
  rest.units -= units;
  rest.tokens = cut(rest.tokens, units, std::ssize(rest.tokens));
  rest.slots = cut(rest.slots, units, std::ssize(rest.slots));
  if (config_.events) {
    front.keys = cut(rest.keys, 0, pages);
    rest.keys = cut(rest.keys, pages, std::ssize(rest.keys));
  }
  const Mark& old = marks_[node];
  Mark mark{.lock = old.lock, .hits = old.hits, .priority = old.priority};
  mark.used = totals_.clock++;
  mark.created = totals_.clock++;
  if (!quirks_.has(Quirk::kSplitIsNew)) mark.created = old.created;
  const std::int64_t parent = rest.parent;
  const Namespace space{.extra = rest.extra, .salt = rest.salt};
  const std::int64_t made = add_node(std::move(front), mark);
  rest.parent = made;
  std::ranges::replace(runs_.change(parent).children, node, made);
  set_child(parent, space, first_page(runs_[made].tokens), made);
  set_child(made, space, first_page(rest.tokens), node);
  return made;
}

// ---- Inserts ----

// PX-68
void RadixTree::count_hit(std::int64_t node, std::int64_t end, const Filing& op) {
  if (end > op.inserted) ++marks_.change(node).hits;
}

RadixTree::Reached RadixTree::insert(const Filing& op) {
  Reached at = walk(op.tokens, op.space, &op);
  if (at.length < units_of(std::ssize(op.tokens))) at.node = add_leaf(at, op);
  return at;
}

// What is left of an insert becomes one node below where its walk ended (PX-66).
std::int64_t RadixTree::add_leaf(const Reached& at, const Filing& op) {
  const std::int64_t end = units_of(std::ssize(op.tokens));
  const auto begin = op.tokens.begin() + at.length;
  const auto& [extra, salt] = op.space;
  Run run{.parent = at.node,
          .units = end - at.length,
          .tokens = Tokens(begin, op.tokens.begin() + end + (config_.eagle ? 1 : 0)),
          .slots = {},
          .keys = {},
          .children = {},
          .extra = std::optional<std::string>(extra),
          .salt = std::string(salt)};
  if (op.slots)
    run.slots.assign(op.slots->begin() + at.length, op.slots->begin() + end);
  else
    run.slots.assign(begin, begin + run.units);
  if (config_.events) {
    run.keys = page_keys(run);
    tell_stored(run);
  }
  const std::int64_t units = run.units;
  const std::int64_t used = totals_.clock++;
  const std::int64_t created = totals_.clock++;
  const std::int64_t node =
      add_node(std::move(run), {.priority = op.priority, .used = used, .created = created});
  count_hit(node, end, op);
  runs_.change(at.node).children.push_back(node);
  set_child(at.node, op.space, first_page(runs_[node].tokens), node);
  totals_.evictable += units;
  list(node);
  list(at.node);
  return node;
}

// ---- Eviction ----

void RadixTree::list(std::int64_t node) {
  if (node != root())
    marks_.change(node).listed = runs_[node].children.empty() && marks_[node].lock <= 0;
}

// PX-71: what is smaller goes first; nodes that stand alike go by number.
std::tuple<std::int64_t, std::int64_t, std::int64_t> RadixTree::standing(std::int64_t node) const {
  const Mark& mark = marks_[node];
  switch (config_.policy) {
    case Policy::kLru:
      return {mark.used, 0, node};
    case Policy::kMru:
      return {-mark.used, 0, node};
    case Policy::kFifo:
      return {mark.created, 0, node};
    case Policy::kFilo:
      return {-mark.created, 0, node};
    case Policy::kLfu:
      return {mark.hits, mark.used, node};
    case Policy::kPriority:
      return {mark.priority, mark.used, node};
    case Policy::kSlru:
      return {mark.hits < config_.slru_threshold.value_or(2) ? 0 : 1, mark.used, node};
    case Policy::kTlru:
      break;
  }
  return {0, 0, node};
}

bool RadixTree::goes_later(std::int64_t a, std::int64_t b) const {
  return standing(a) > standing(b);
}

Ids RadixTree::leaves() const {
  Ids heap;
  for (std::int64_t i = root() + 1; i < marks_.size(); ++i)
    if (marks_[i].listed) heap.push_back(i);
  std::ranges::make_heap(heap, [this](auto a, auto b) { return goes_later(a, b); });
  return heap;
}

std::optional<std::int64_t> RadixTree::pop_first(Ids& heap) const {
  if (heap.empty()) return std::nullopt;
  std::ranges::pop_heap(heap, [this](auto a, auto b) { return goes_later(a, b); });
  const std::int64_t first = heap.back();
  heap.pop_back();
  return first;
}

Result<Ids> RadixTree::remove(std::int64_t leaf, Ids& heap) {
  if (marks_[leaf].gone)
    return fail(Code::kPrecondition, "node " + std::to_string(leaf) + " has gone already");
  Run run = runs_[leaf];
  const std::int64_t parent = run.parent;
  if (config_.events) tell_removed(run);
  set_child(parent, {.extra = run.extra, .salt = run.salt}, first_page(run.tokens), std::nullopt);
  std::erase(runs_.change(parent).children, leaf);
  Run& shell = runs_.change(leaf);
  shell = Run();
  shell.parent = parent;
  shell.units = run.units;
  marks_.change(leaf).gone = true;
  marks_.change(leaf).listed = false;
  totals_.evictable -= run.units;
  list(parent);
  if (parent != root() && runs_[parent].children.empty() && marks_[parent].lock == 0) {
    heap.push_back(parent);
    std::ranges::push_heap(heap, [this](auto a, auto b) { return goes_later(a, b); });
  }
  return std::move(run.slots);
}

// ---- Locks ----

Status RadixTree::known(std::int64_t node) const {
  if (node >= root() && node < runs_.size() &&
      (!marks_[node].gone || quirks_.has(Quirk::kGoneNodesLocked)))
    return {};
  return fail(Code::kPrecondition, "node " + std::to_string(node) + " is not in the tree");
}

Result<std::int64_t> RadixTree::lock(std::int64_t node) {
  if (const Status found = known(node); !found) return found.error();
  std::int64_t delta = 0;
  if (node != root()) ++marks_.change(node).own_locks;
  for (; node != root(); node = runs_[node].parent) {
    if (marks_.change(node).lock++ == 0) delta -= runs_[node].units;
    list(node);
  }
  totals_.evictable += delta;
  totals_.protected_ -= delta;
  return delta;
}

Result<std::int64_t> RadixTree::unlock(std::int64_t node) {
  if (const Status found = known(node); !found) return found.error();
  std::int64_t delta = 0;
  if (node != root() && --marks_.change(node).own_locks < 0 &&
      !quirks_.has(Quirk::kUnlockUnguarded))
    return fail(Code::kPrecondition, "node " + std::to_string(node) + " is not locked");
  for (; node != root(); node = runs_[node].parent) {
    if (marks_.change(node).lock-- == 1) delta += runs_[node].units;
    list(node);
  }
  totals_.evictable += delta;
  totals_.protected_ -= delta;
  return delta;
}

// ---- Figures ----

Ids RadixTree::all_slots() const {
  Ids slots;
  std::vector<std::int64_t> open{root()};
  while (!open.empty()) {
    const Run& run = runs_[open.back()];
    open.pop_back();
    slots.insert(slots.end(), run.slots.begin(), run.slots.end());
    open.insert(open.end(), run.children.rbegin(), run.children.rend());
  }
  return slots;
}

ShowTreeReturns RadixTree::state() const {
  ShowTreeReturns state;
  state.evictable = totals_.evictable;
  state.protected_ = totals_.protected_;
  for (std::int64_t i = root() + 1; i < runs_.size(); ++i) {
    if (marks_[i].gone) continue;
    const Run& run = runs_[i];
    const Mark& mark = marks_[i];
    state.nodes.push_back({.node = i,
                           .parent = run.parent,
                           .tokens = run.tokens,
                           .slots = run.slots,
                           .lock = mark.lock,
                           .hits = mark.hits,
                           .priority = mark.priority,
                           .extra = run.extra,
                           .salt = run.salt.empty() ? std::nullopt : std::optional(run.salt)});
    state.total += run.units;
  }
  Ids heap = leaves();
  while (const auto first = pop_first(heap)) state.leaves.push_back(*first);
  return state;
}

std::optional<std::string> RadixTree::broken_invariant() const {
  std::int64_t units = 0;
  for (std::int64_t i = root() + 1; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    if (marks_[i].gone) continue;
    units += run.units;
    if (run.units != std::ssize(run.slots)) return "a node has not a slot for each unit";
    if (run.units != units_of(std::ssize(run.tokens))) return "a node is no whole pages";
    if (std::ranges::count(runs_[run.parent].children, i) != 1) return "a node hangs nowhere";
    if (marks_[i].listed != (run.children.empty() && marks_[i].lock <= 0))
      return "a leaf is not listed";
  }
  if (!quirks_.has(Quirk::kGoneNodesLocked) && units != totals_.evictable + totals_.protected_)
    return "sizes are not those of the nodes";
  return std::nullopt;
}

// ---- Events ----

// PX-77: the keys of a node's pages, chained to that of the page before it.
std::vector<Key> RadixTree::page_keys(const Run& run) {
  const std::int64_t size = config_.page_size;
  const std::vector<Key>& above = runs_[run.parent].keys;
  std::int64_t key = above.empty() ? -1 : static_cast<std::int64_t>(above.back().low);
  std::vector<Key> keys;
  for (std::int64_t i = 0; i < run.units; i += size) {
    const TokensView page = part(run.tokens, i, size);
    Content content(key, Tokens(page.begin(), page.end()), key < 0 ? run.salt : "",
                    key < 0 && !quirks_.has(Quirk::kEventKeysLackExtra) ? run.extra : std::nullopt);
    key = contents_.try_emplace(std::move(content), std::ssize(contents_)).first->second;
    keys.push_back({.high = 0, .low = static_cast<std::uint64_t>(key)});
  }
  return keys;
}

void RadixTree::tell_stored(const Run& run) {
  const std::vector<Key>& above = runs_[run.parent].keys;
  Event event{.kind = EventKind::kStored,
              .keys = run.keys,
              .parent = above.empty() ? std::nullopt : std::optional(above.back()),
              .tokens = run.tokens};
  const std::int64_t last = events_.size() - 1;
  if (last < 0 || events_[last].kind != EventKind::kStored || !event.parent ||
      events_[last].keys.back() != *event.parent) {
    events_.add(std::move(event));
    return;
  }
  Event& joined = events_.change(last);
  joined.keys.insert(joined.keys.end(), event.keys.begin(), event.keys.end());
  joined.tokens.insert(joined.tokens.end(), event.tokens.begin(), event.tokens.end());
}

void RadixTree::tell_removed(const Run& run) {
  const std::int64_t last = events_.size() - 1;
  if (last < 0 || events_[last].kind != EventKind::kRemoved)
    events_.add({.kind = EventKind::kRemoved, .keys = run.keys});
  else
    std::ranges::copy(run.keys, std::back_inserter(events_.change(last).keys));
}

std::span<const Event> RadixTree::take_events() {
  taken_.assign(events_.rows().begin(), events_.rows().end());
  events_.clear();
  return taken_;
}

}  // namespace kvo::prefix
