#include "reference/prefix/radix_cache.hpp"

#include <algorithm>

namespace kvo::prefix {
namespace {

template <class T>
std::span<const T> from(const std::vector<T>& all, std::int64_t begin, std::int64_t end) {
  return std::span(all).subspan(static_cast<std::size_t>(begin),
                                static_cast<std::size_t>(std::max<std::int64_t>(end - begin, 0)));
}

Error bad_state(std::int64_t request, const char* what) {
  return fail(Code::kPrecondition, "request " + std::to_string(request) + " " + what);
}

}  // namespace

Result<std::unique_ptr<RadixCache>> RadixManager::make(const RadixConfig& config,
                                                       QuirkSet<Quirk> quirks) {
  return std::make_unique<RadixManager>(config, quirks);
}

RadixManager::RadixManager(const RadixConfig& config, QuirkSet<Quirk> quirks)
    : config_(config), quirks_(quirks), tree_(config, quirks), slots_(config, quirks) {}

void RadixManager::commit() noexcept {
  tree_.commit();
  slots_.commit();
  texts_.commit();
  holdings_.commit();
}

void RadixManager::roll_back() noexcept {
  tree_.roll_back();
  slots_.roll_back();
  texts_.roll_back();
  holdings_.roll_back();
}

// ---- The tree ----

// PX-64, PX-76: nothing to look up reaches the root without a walk.
RadixTree::Reached RadixManager::look_up(TokensView tokens, const Namespace& space) {
  if (config_.disable || tree_.units_of(std::ssize(tokens)) == 0)
    return {.node = tree_.root(), .length = 0};
  return tree_.match(tokens, space);
}

Result<RadixHit> RadixManager::match(const MatchTokens& op) {
  Transaction undertaking(*this);
  const auto reached = look_up(looked_up(op), space_of(op));
  slots_out_ = tree_.slots_to(reached.node);
  undertaking.commit();
  return RadixHit{reached.length, reached.node, slots_out_};
}

Status RadixManager::touch(const TouchTokens& op) {
  Transaction undertaking(*this);
  (void)look_up(looked_up(op), space_of(op));
  undertaking.commit();
  return {};
}

Result<InsertReturns> RadixManager::insert(const Insert& op) {
  if (config_.disable) return InsertReturns{};
  if (op.slots && std::ssize(*op.slots) < tree_.units_of(std::ssize(op.tokens)))
    return fail(Code::kPrecondition, "slots: fewer than units");
  Transaction undertaking(*this);
  const auto reached =
      tree_.insert({.tokens = op.tokens,
                    .slots = op.slots ? std::optional<IdsView>(*op.slots) : std::nullopt,
                    .space = space_of(op),
                    .priority = op.priority,
                    .inserted = op.inserted});
  undertaking.commit();
  return InsertReturns{reached.length, reached.node};
}

// PX-70. Returns  units; adds the nodes to the answer.
Result<std::int64_t> RadixManager::evict_until(std::int64_t units) {
  nodes_out_.clear();
  if (config_.disable) return 0;
  std::int64_t gone = 0;
  Ids heap = tree_.leaves();
  if (config_.policy == Policy::kTlru && !heap.empty())  // also for no units
    return fail(Code::kPrecondition, "policy: tlru cannot tell what goes first");
  while (gone < units) {
    const auto leaf = tree_.pop_first(heap);
    if (!leaf) break;
    const auto slots = tree_.remove(*leaf, heap);
    if (!slots) return slots.error();
    if (const Status done = slots_.free_segment(*slots, 0); !done) return done.error();
    gone += std::ssize(*slots);
    nodes_out_.push_back(*leaf);
  }
  return gone;
}

Result<RadixEvicted> RadixManager::evict(std::int64_t units) {
  const auto gone = transact(*this, [&] { return evict_until(units); });
  if (!gone) return gone.error();
  return RadixEvicted{*gone, nodes_out_};
}

Result<std::int64_t> RadixManager::lock(std::int64_t node) {
  return transact(*this, [&] { return tree_.lock(node); });
}

Result<std::int64_t> RadixManager::unlock(std::int64_t node) {
  return transact(*this, [&] { return tree_.unlock(node); });
}

Status RadixManager::reset() {
  Transaction undertaking(*this);
  tree_.reset();
  undertaking.commit();
  return {};
}

Result<IdsView> RadixManager::all_slots() {
  slots_out_ = tree_.all_slots();
  if (slots_out_.empty() && quirks_.has(Quirk::kNoSlotsAborts))
    return fail(Code::kPrecondition, "the tree is empty");
  return IdsView(slots_out_);
}

// ---- The allocator ----

Result<IdsView> RadixManager::taken(const Status& done, Transaction<RadixManager>& undertaking) {
  if (!done && !failed_with(done, Code::kExhausted)) return done.error();
  undertaking.commit();
  if (!done) return done.error();
  return IdsView(slots_out_);
}

Result<IdsView> RadixManager::alloc(std::int64_t count) {
  slots_out_.clear();
  Transaction undertaking(*this);
  return taken(slots_.alloc(count, slots_out_), undertaking);
}

Result<IdsView> RadixManager::alloc_extend(IdsView prefixes, IdsView lengths, IdsView last) {
  slots_out_.clear();
  Transaction undertaking(*this);
  return taken(slots_.alloc_extend(prefixes, lengths, last, slots_out_), undertaking);
}

Result<IdsView> RadixManager::alloc_decode(IdsView lengths, IdsView last) {
  slots_out_.clear();
  Transaction undertaking(*this);
  return taken(slots_.alloc_decode(lengths, last, slots_out_), undertaking);
}

Status RadixManager::free(IdsView slots) {
  return transact(*this, [&] { return slots_.free(slots); });
}

Status RadixManager::free_segment(IdsView slots, std::int64_t start) {
  return transact(*this, [&] { return slots_.free_segment(slots, start); });
}

Status RadixManager::group_begin() {
  return transact(*this, [&] { return slots_.group_begin(); });
}

Status RadixManager::group_end() {
  Transaction undertaking(*this);
  slots_.group_end();
  undertaking.commit();
  return {};
}

Status RadixManager::clear() {
  Transaction undertaking(*this);
  slots_.clear();
  undertaking.commit();
  return {};
}

// PX-83
Status RadixManager::room_for(std::int64_t slots) {
  nodes_out_.clear();
  const std::int64_t missing = slots - slots_.available();
  if (missing <= 0) return {};
  const auto gone = evict_until(missing);
  return gone ? Status() : Status(gone.error());
}

Result<IdsView> RadixManager::make_room(std::int64_t slots) {
  const Status done = transact(*this, [&] { return room_for(slots); });
  if (!done) return done.error();
  return IdsView(nodes_out_);
}

// ---- Requests ----

Result<std::int64_t> RadixManager::find(std::int64_t request) const {
  const auto found = rows_.find(request);
  if (found == rows_.end()) return bad_state(request, "was never made");
  return found->second;
}

const RadixManager::Text& RadixManager::text(std::int64_t request) const {
  static const Text kNone;
  const auto found = find(request);
  return found ? texts_[*found] : kNone;
}

const RadixManager::Holding& RadixManager::holding(std::int64_t request) const {
  static const Holding kNone;
  const auto found = find(request);
  return found ? holdings_[*found] : kNone;
}

Result<std::int64_t> RadixManager::find_row(std::int64_t request) const {
  auto found = find(request);
  if (found && !holdings_[*found].has_row) return bad_state(request, "has no row");
  return found;
}

Status RadixManager::request(const FileRequest& op) {
  Transaction undertaking(*this);
  Text text{.tokens = op.tokens,
            .prompt = std::ssize(op.tokens),
            .extra = op.extra,
            .salt = op.salt.value_or(""),
            .priority = op.priority};
  if (const auto known = find(op.request)) {
    if (holdings_[*known].node) return bad_state(op.request, "is admitted");
    texts_.change(*known) = std::move(text);
  } else {
    holdings_.add({});
    rows_.emplace(op.request, texts_.add(std::move(text)));
  }
  undertaking.commit();
  return {};
}

Result<RadixHit> RadixManager::admit(std::int64_t request) {
  const auto found = find(request);
  if (!found) return found.error();
  if (holdings_[*found].node) return bad_state(request, "is admitted");
  Transaction undertaking(*this);
  const Text& text = texts_[*found];
  const auto reached = look_up(from(text.tokens, 0, std::ssize(text.tokens) - 1), text.space());
  if (const auto locked = tree_.lock(reached.node); !locked) return locked.error();
  Holding& held = holdings_.change(*found);
  held = {.node = reached.node, .slots = tree_.slots_to(reached.node)};
  slots_out_ = held.slots;
  undertaking.commit();
  return RadixHit{reached.length, reached.node, slots_out_};
}

Result<Extended> RadixManager::extend(std::int64_t request, std::int64_t tokens,
                                      TokensView append) {
  const auto found = find(request);
  if (!found) return found.error();
  const Holding& held_before = holdings_[*found];
  if (!held_before.node) return bad_state(request, "is not admitted");
  if (!held_before.has_row)
    if (const Status there = tree_.known(*held_before.node); !there) return there.error();
  Transaction undertaking(*this);
  if (!append.empty()) {
    Tokens& all = texts_.change(*found).tokens;
    all.insert(all.end(), append.begin(), append.end());
  }
  const bool paged = config_.page_size > 1;
  if (const Status done = room_for(tokens + (paged ? config_.page_size : 0)); !done)
    return done.error();
  const Ids& before = holdings_[*found].slots;
  const Ids begin{std::ssize(before)};
  const Ids end{std::ssize(before) + tokens};
  const Ids last{before.empty() ? -1 : before.back()};
  slots_out_.clear();
  const Status done =
      paged ? slots_.alloc_extend(begin, end, last, slots_out_) : slots_.alloc(tokens, slots_out_);
  if (done) {
    Holding& held = holdings_.change(*found);
    if (!held.has_row) held.protected_ = std::ssize(held.slots);
    held.has_row = true;
    held.slots.insert(held.slots.end(), slots_out_.begin(), slots_out_.end());
  }
  undertaking.commit();
  return Extended{!done, slots_out_, nodes_out_};
}

// PX-87
Status RadixManager::file(const Text& text, Holding& held) {
  if (config_.disable) return {};
  const TokensView key = from(text.tokens, 0, std::ssize(held.slots));
  const std::int64_t units = tree_.units_of(std::ssize(key));
  RadixTree::Filing filed{.tokens = key,
                          .slots = held.slots,
                          .space = text.space(),
                          .priority = text.priority,
                          .inserted = held.inserted};
  const std::int64_t length = tree_.insert(filed).length;
  held.inserted = std::max(held.inserted, units);
  const TokensView prompt = from(text.tokens, 0, std::min(text.prompt, std::ssize(key)));
  const std::int64_t parted = tree_.units_of(std::ssize(prompt));
  const std::int64_t lifted = quirks_.has(Quirk::kPromptIsLifted) ? 1 : 0;
  if (0 < parted && parted < units) {
    filed.tokens = prompt;
    filed.priority += lifted;
    filed.inserted = parted;
    (void)tree_.insert(filed);
  }
  if (Status done = slots_.free_segment(from(held.slots, held.protected_, length), held.protected_);
      !done)
    return done;
  const auto reached = look_up(key, text.space());
  const Ids kept = tree_.slots_to(reached.node);
  for (std::int64_t i = held.protected_; i < std::min(units, std::ssize(kept)); ++i)
    held.slots[static_cast<std::size_t>(i)] = kept[static_cast<std::size_t>(i)];
  held.protected_ = units;
  if (const auto unlocked = tree_.unlock(*held.node); !unlocked) return unlocked.error();
  if (const auto locked = tree_.lock(reached.node); !locked) return locked.error();
  held.node = reached.node;
  return {};
}

Result<CheckpointReturns> RadixManager::checkpoint(std::int64_t request) {
  const auto found = find_row(request);
  if (!found) return found.error();
  const Text& text = texts_[*found];
  if (std::ssize(holdings_[*found].slots) > std::ssize(text.tokens))
    return bad_state(request, "has more slots than tokens");
  Holding& held = holdings_.change(*found);
  const Status done = transact(*this, [&] { return file(text, held); });
  if (!done) return done.error();
  return CheckpointReturns{*held.node, held.protected_};
}

Status RadixManager::withdraw(std::int64_t request) {
  const auto found = find(request);
  if (!found) return found.error();
  const Holding& held = holdings_[*found];
  if (!held.node || held.has_row) return bad_state(request, "is not admitted, or has a row");
  Transaction undertaking(*this);
  if (const auto unlocked = tree_.unlock(*held.node); !unlocked) return unlocked.error();
  holdings_.change(*found) = {};
  undertaking.commit();
  return {};
}

// PX-88
Status RadixManager::finish(std::int64_t request, bool keep) {
  const auto found = find_row(request);
  if (!found) return found.error();
  const Text& text = texts_[*found];
  if (keep && std::ssize(holdings_[*found].slots) > std::ssize(text.tokens))
    return bad_state(request, "has more slots than tokens");
  Transaction undertaking(*this);
  Holding& held = holdings_.change(*found);
  if (keep)
    if (Status done = file(text, held); !done) return done;
  const IdsView own = from(held.slots, held.protected_, std::ssize(held.slots));
  if (Status done = config_.disable ? slots_.free(own) : slots_.free_segment(own, held.protected_);
      !done)
    return done;
  if (const auto unlocked = tree_.unlock(*held.node); !unlocked) return unlocked.error();
  held = {};
  undertaking.commit();
  return {};
}

Result<ShowRowReturns> RadixManager::row(std::int64_t request) const {
  const auto found = find_row(request);
  if (!found) return found.error();
  const Holding& held = holdings_[*found];
  return ShowRowReturns{held.slots, held.protected_, held.inserted, *held.node};
}

ShowTreeReturns RadixManager::state() const {
  ShowTreeReturns state = tree_.state();
  state.available = slots_.available();
  state.free.assign(slots_.free_pages().begin(), slots_.free_pages().end());
  state.staged = slots_.staged_pages();
  return state;
}

}  // namespace kvo::prefix
