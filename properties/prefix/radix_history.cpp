#include "properties/prefix/radix_history.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "properties/prefix/radix_script.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::prefix {

using Words = Oracle::Words;

Words RadixHistory::check(const Op& op, const Observation& seen) {
  Words words;
  if (seen.unsupported) return words;
  if (lost_) return skip();
  visit_op(RadixOps(), op, [&](const auto& operation) { words = saw(operation, seen); });
  return words;
}

// ---- Contents and rows ----

std::int64_t RadixHistory::pages(std::int64_t tokens) const {
  return std::max<std::int64_t>(tokens - (config_.eagle ? 1 : 0), 0) / config_.page_size;
}

Content RadixHistory::start(const std::optional<std::string>& extra,
                            const std::optional<std::string>& salt) {
  const bool salted = salt && !salt->empty();
  return contents_.start({extra, salted ? salt : std::nullopt});
}

Path RadixHistory::path(const std::vector<Content>& prefixes, std::int64_t tokens) const {
  Path all;
  for (std::int64_t i = 1; i <= pages(tokens); ++i)
    all.push_back(
        prefixes[static_cast<std::size_t>(i * config_.page_size + (config_.eagle ? 1 : 0))]);
  return all;
}

template <class T>
std::vector<Content> RadixHistory::prefixes_of(const T& op) {
  std::vector<Content> prefixes{start(op.extra, op.salt)};
  contents_.extend(prefixes, op.tokens);
  return prefixes;
}

Words RadixHistory::wrong_rows(const std::vector<Content>& prefixes, const Numbers& slots) const {
  if (rows_lost_ || slots_lost_) return std::nullopt;
  const std::int64_t end = std::min(std::ssize(slots), std::ssize(prefixes) - 1);
  for (std::int64_t i = 0; i < end; ++i) {
    const std::int64_t slot = slots[static_cast<std::size_t>(i)];
    const auto row = rows_.find(slot);
    if (shared_.contains(slot / config_.page_size)) continue;
    if (row != rows_.end() && row->second != prefixes[static_cast<std::size_t>(i + 1)])
      return "slot " + std::to_string(row->first) + " has the row of another token than " +
             std::to_string(i);
  }
  return std::nullopt;
}

bool RadixHistory::in_a_row(std::int64_t pool_page) const {
  return std::ranges::any_of(requests_, [&](const auto& request) {
    return std::ranges::any_of(request.second.row, [&](std::int64_t slot) {
      return slot / config_.page_size == pool_page;
    });
  });
}

// Rows of the tokens from `begin` on, in the slots of a row.
void RadixHistory::write(const std::vector<Content>& prefixes, const Numbers& slots,
                         std::int64_t begin) {
  const std::int64_t end = std::min(std::ssize(slots), std::ssize(prefixes) - 1);
  for (std::int64_t i = begin; i < end; ++i)
    rows_[slots[static_cast<std::size_t>(i)]] = prefixes[static_cast<std::size_t>(i + 1)];
}

// ---- The tree ----

Words RadixHistory::wrong_hit(const std::vector<Content>& prefixes, std::int64_t tokens,
                              const FoundPrefix& hit) {
  const Path whole = config_.disable ? Path() : path(prefixes, tokens);
  const TreeAccounts::Reached reached = tree_.walk(whole);
  if (hit.length != reached.pages * config_.page_size)
    return std::to_string(hit.length) + " units are hit, " +
           std::to_string(reached.pages * config_.page_size) + " are held";
  if (hit.node != reached.node)
    return "node " + std::to_string(hit.node) + " is hit, the prefix ends with node " +
           std::to_string(reached.node);
  if (hit.slots != tree_.slots(whole, reached.pages))
    return "the slots are not those that were put";
  return wrong_rows(prefixes, hit.slots);
}

Words RadixHistory::saw(const MatchTokens& op, const Observation& seen) {
  if (seen.error) return skip();
  const std::vector<Content> prefixes = prefixes_of(op);
  const std::int64_t tokens = std::ssize(op.tokens);
  return judged(
      wrong_hit(prefixes, std::min(op.limit.value_or(tokens), tokens), seen.as<FoundPrefix>()));
}

Words RadixHistory::saw(const TouchTokens& op, const Observation& seen) {
  if (seen.error) return skip();
  const std::int64_t tokens = std::ssize(op.tokens);
  if (!config_.disable)
    (void)tree_.walk(path(prefixes_of(op), std::min(op.limit.value_or(tokens), tokens)));
  return judged();
}

Words RadixHistory::saw(const Insert& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto& put = seen.as<Insert::Returns>();
  if (config_.disable)
    return judged(put.length == 0 && !put.node.has_value() ? Words()
                                                           : Words("what is disabled keeps"));
  const std::vector<Content> prefixes = prefixes_of(op);
  Numbers slots = op.slots.value_or(Numbers(op.tokens.begin(), op.tokens.end()));
  const Path whole = path(prefixes, std::ssize(op.tokens));
  slots.resize(whole.size() * static_cast<std::size_t>(config_.page_size));
  const Numbers held = tree_.slots(whole, tree_.walk(whole).pages);
  // Slots of the pool that somebody has filled; others are only numbers, and may be anybody's.
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool own = op.slots && slots_.is_out(slots[i]);
    const bool others =
        tree_.uses(slots[i] / config_.page_size) && (i >= held.size() || held[i] != slots[i]);
    const auto row = rows_.find(slots[i]);
    const bool same = row != rows_.end() && row->second == prefixes[i + 1];
    const std::int64_t page = slots[i] / config_.page_size;
    if (!own || (!same && in_a_row(page))) shared_.insert(page);
    if (!own || others) rows_.erase(slots[i]);
    if (others) rows_lost_ = true;
    if (own && !others) rows_[slots[i]] = prefixes[i + 1];
  }
  const TreeAccounts::Reached reached = tree_.insert(whole, slots);
  if (put.length != reached.pages * config_.page_size)
    return judged(std::to_string(put.length) + " units were there before, not " +
                  std::to_string(reached.pages * config_.page_size));
  if (put.node != Nullable<std::int64_t>(reached.node))
    return judged("the last node is not " + std::to_string(reached.node));
  return judged();
}

Words RadixHistory::give_back(const Numbers& pages) {
  if (slots_.give_back(pages) || slots_lost_) return std::nullopt;
  if (!has(Quirk::kFreesAnything)) return "slots are freed that were not handed out";
  slots_lost_ = true;
  return std::nullopt;
}

Words RadixHistory::evict(const Numbers& nodes, std::optional<std::int64_t> units,
                          std::int64_t& gone) {
  for (const std::int64_t node : nodes) {
    if (units && gone >= *units) return "more is evicted than was asked for";
    Numbers slots;
    if (auto words = tree_.remove(node, slots)) return words;
    if (auto words = give_back(slots_.pages_of_segment(slots))) return words;
    gone += std::ssize(slots);
  }
  if (units && gone < *units && !config_.disable && tree_.has_evictable())
    return "less is evicted than was asked for, and more may go";
  return std::nullopt;
}

Words RadixHistory::saw(const EvictUnits& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto& went = seen.as<EvictUnits::Returns>();
  std::int64_t gone = 0;
  if (auto words = evict(went.nodes, op.tokens, gone)) return judged(words);
  return judged(gone == went.tokens
                    ? Words()
                    : std::to_string(went.tokens) + " units went, not " + std::to_string(gone));
}

std::optional<std::int64_t> RadixHistory::missing(std::int64_t slots) const {
  return slots_lost_ ? std::nullopt : std::optional(slots - slots_.available());
}

Words RadixHistory::saw(const MakeRoom& op, const Observation& seen) {
  if (seen.error) return skip();
  std::int64_t gone = 0;
  return judged(evict(seen.as<NodesOnly>().nodes, missing(op.tokens), gone));
}

Words RadixHistory::saw(const Lock& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto delta = config_.disable ? std::optional<std::int64_t>(0) : tree_.lock(op.node);
  if (!delta && has(Quirk::kGoneNodesLocked)) return lose_track();
  return judged(delta == seen.as<Delta>().delta ? Words()
                                                : Words("the units protected are not the path's"));
}

Words RadixHistory::saw(const Unlock& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto delta = config_.disable ? std::optional<std::int64_t>(0) : tree_.unlock(op.node);
  if (!delta && has(Quirk::kUnlockUnguarded)) return lose_track();
  return judged(delta == seen.as<Delta>().delta
                    ? Words()
                    : Words("the units that are no longer protected are not the path's"));
}

Words RadixHistory::saw(const ResetTree& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  tree_.reset();
  return judged();
}

Words RadixHistory::saw(const AllSlots& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  Numbers shown = seen.as<SlotsOnly>().slots;
  Numbers all = tree_.all_slots();
  std::ranges::sort(shown);
  std::ranges::sort(all);
  return judged(shown == all ? Words() : Words("the slots are not those that were put"));
}

// ---- Requests ----

RadixHistory::Known* RadixHistory::find(std::int64_t request) {
  const auto found = requests_.find(request);
  return found != requests_.end() ? &found->second : nullptr;
}

Words RadixHistory::saw(const FileRequest& op, const Observation& seen) {
  if (seen.error) return skip();
  requests_[op.request] = {.prefixes = prefixes_of(op), .prompt = std::ssize(op.tokens)};
  return judged();
}

// PX-86
Words RadixHistory::saw(const Admit& op, const Observation& seen) {
  Known* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  if (config_.disable) return lose_track();
  const auto& hit = seen.as<FoundPrefix>();
  if (auto words = wrong_hit(known->prefixes, known->tokens() - 1, hit)) return judged(words);
  (void)tree_.lock(hit.node);
  known->node = hit.node;
  known->row = hit.slots;
  known->has_row = false;
  return judged();
}

Words RadixHistory::saw(const Extend& op, const Observation& seen) {
  Known* known = find(op.request);
  if (known == nullptr || !known->node) return skip();
  if (seen.error && !seen.failed_with(Code::kExhausted)) return skip();
  contents_.extend(known->prefixes, op.append);
  const auto& went = seen.as<Extend::Returns>();
  const std::int64_t page = config_.page_size;
  const std::int64_t before = std::ssize(known->row);
  std::int64_t gone = 0;
  if (auto words = evict(went.nodes, missing(op.tokens + (page > 1 ? page : 0)), gone))
    return judged(words);
  if (seen.error)
    return judged(refused((before + op.tokens + page - 1) / page - (before + page - 1) / page));
  const Numbers slots = went.slots.value_or(Numbers());
  const std::int64_t last = known->row.empty() ? -1 : known->row.back();
  if (auto words = taken(slots, op.tokens, before, last)) return judged(words);
  if (auto words = wrong_rows(known->prefixes, known->row)) return judged(words);
  if (!known->has_row) known->protected_ = before;
  known->has_row = true;
  known->row.insert(known->row.end(), slots.begin(), slots.end());
  write(known->prefixes, known->row, before);
  return judged();
}

// PX-79: who unlocked a request's node by hand took its lock.
Words RadixHistory::unlock(const Known& known) {
  if (tree_.unlock(*known.node)) return std::nullopt;
  lost_ = has(Quirk::kUnlockUnguarded);
  return lost_ ? Words() : Words("a request unlocks a node that it has not locked");
}

Words RadixHistory::move_lock(Known& known, std::int64_t node) {
  if (auto words = unlock(known)) return words;
  (void)tree_.lock(node);
  known.node = node;
  return std::nullopt;
}

// PX-87
Words RadixHistory::file(Known& known) {
  const std::int64_t size = config_.page_size;
  const std::int64_t length = std::ssize(known.row);
  if (length > known.tokens()) return "a row is filed that is longer than its tokens";
  write(known.prefixes, known.row, known.protected_);
  const Path whole = path(known.prefixes, length);
  const std::int64_t held = tree_.insert(whole, known.row).pages * size;
  const std::int64_t units = std::ssize(whole) * size;
  known.inserted = std::max(known.inserted, units);
  const Path prompt = path(known.prefixes, std::min(known.prompt, length));
  if (!prompt.empty() && prompt.size() < whole.size()) (void)tree_.walk(prompt);
  if (held > known.protected_) {
    const auto twice =
        NumbersView(known.row).subspan(static_cast<std::size_t>(known.protected_),
                                       static_cast<std::size_t>(held - known.protected_));
    if (auto words = give_back(slots_.pages_of_segment(twice))) return words;
  }
  const TreeAccounts::Reached reached = tree_.walk(whole);
  const Numbers kept = tree_.slots(whole, reached.pages);
  std::ranges::copy(kept, known.row.begin());
  known.protected_ = units;
  return move_lock(known, reached.node);
}

Words RadixHistory::saw(const Checkpoint& op, const Observation& seen) {
  Known* known = find(op.request);
  if (seen.error || known == nullptr || !known->has_row) return skip();
  if (auto words = file(*known)) return judged(words);
  if (lost_) return skip();
  const auto& shown = seen.as<Checkpoint::Returns>();
  if (shown.node != *known->node) return judged("another node is locked than what was filed");
  return judged(shown.protected_ == known->protected_
                    ? Words()
                    : Words("the row is not the tree's in whole pages"));
}

Words RadixHistory::saw(const Withdraw& op, const Observation& seen) {
  Known* known = find(op.request);
  if (seen.error || known == nullptr || !known->node) return skip();
  if (auto words = unlock(*known)) return judged(words);
  known->node.reset();
  known->row.clear();
  return judged();
}

// PX-88
Words RadixHistory::saw(const Finish& op, const Observation& seen) {
  Known* known = find(op.request);
  if (seen.error || known == nullptr || !known->has_row) return skip();
  if (op.keep)
    if (auto words = file(*known)) return judged(words);
  const auto own = NumbersView(known->row).subspan(static_cast<std::size_t>(known->protected_));
  if (auto words = give_back(slots_.pages_of_segment(own))) return judged(words);
  if (auto words = unlock(*known)) return judged(words);
  *known = {.prefixes = std::move(known->prefixes), .prompt = known->prompt};
  return judged();
}

Words RadixHistory::saw(const ShowRow& op, const Observation& seen) {
  const Known* known = find(op.request);
  if (seen.error || known == nullptr || !known->has_row) return skip();
  const auto& row = seen.as<ShowRow::Returns>();
  if (row.slots != known->row || row.protected_ != known->protected_ ||
      row.inserted != known->inserted || row.node != *known->node)
    return judged("the row is not what was handed out and filed");
  return judged(wrong_rows(known->prefixes, row.slots));
}

// ---- observed results ----

namespace {

RadixSeen evicted_by(Policy policy) {
  switch (policy) {
    case Policy::kMru:
      return RadixSeen::kEvictedByMru;
    case Policy::kFifo:
      return RadixSeen::kEvictedByFifo;
    case Policy::kFilo:
      return RadixSeen::kEvictedByFilo;
    case Policy::kLfu:
      return RadixSeen::kEvictedByLfu;
    case Policy::kPriority:
      return RadixSeen::kEvictedByPriority;
    case Policy::kSlru:
      return RadixSeen::kEvictedBySlru;
    default:
      return RadixSeen::kEvictedByLru;
  }
}

}  // namespace

// Nodes.
void RadixScript::met(std::int64_t node) {
  nodes_.insert(node);
  newest_ = std::max(newest_, node);
  if (node > kTwoBytes) reach(Seen::kNodesBeyondTwoBytes);
}
void RadixScript::gone(const Numbers& nodes) {
  for (const std::int64_t node : nodes) nodes_.erase(node);
  if (nodes.size() > 1) reach(Seen::kParentEvictedAfterItsChild);
}
void RadixScript::evicted(std::int64_t asked, std::int64_t units, const Numbers& nodes) {
  if (asked > 0 && nodes.empty() && !nodes_.empty()) reach(Seen::kNothingToEvict);
  if (nodes.empty()) return;
  reach(evicted_by(config_.policy));
  if (units > asked) reach(Seen::kEvictedMoreThanAsked);
  in_tree_ = std::max<std::int64_t>(in_tree_ - units, 0);
  gone(nodes);
}

// The tree.
void RadixScript::saw(const MatchTokens& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  if (config_.eagle) reach(Seen::kPairs);
  if (seen.error) return;
  const auto& hit = seen.as<FoundPrefix>();
  if (config_.disable) return reach(Seen::kDisabled);
  if (hit.length == 0) return reach(Seen::kNothingHeld);
  if (hit.node > newest_) reach(Seen::kSplit);
  if (hit.length == units(std::ssize(op.tokens))) reach(Seen::kWholeHit);
  if (hit.length > kThousand) reach(Seen::kHitOf1024Tokens);
  met(hit.node);
}
void RadixScript::saw(const TouchTokens& op, const Observation& /*seen*/) {
  pay(std::ssize(op.tokens));
}
void RadixScript::saw(const Insert& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  const std::int64_t offered = std::exchange(offered_, 0);
  if (seen.error) return;
  const auto& put = seen.as<Insert::Returns>();
  texts_.keep(op.tokens);
  in_tree_ += units(std::ssize(op.tokens)) - put.length;
  if (config_.page_size >= 16) reach(Seen::kPageOf16);
  if (put.length > 0) reach(Seen::kHeldTokensInserted);
  // The tree has slots for what it held; the others are its own now (PX-74).
  const auto held = put.node.has_value() ? std::min(put.length, offered) : offered;
  const Numbers slots = op.slots.value_or(Numbers());
  if (held > 0) plan(FreeSlots{Numbers(slots.begin(), slots.begin() + held)});
  if (put.node.has_value() && units(std::ssize(op.tokens)) >= config_.page_size) met(*put.node);
}
void RadixScript::saw(const EvictUnits& op, const Observation& seen) {
  pay(0);
  if (seen.failed_with(Code::kPrecondition)) return reach(Seen::kEvictedByTlru);
  if (seen.error) return;
  const auto& went = seen.as<EvictUnits::Returns>();
  evicted(op.tokens, went.tokens, went.nodes);
}
void RadixScript::saw(const MakeRoom& op, const Observation& seen) {
  pay(0);
  if (!seen.error) evicted(op.tokens, 0, seen.as<NodesOnly>().nodes);
}
void RadixScript::saw(const Lock& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  if (seen.as<Delta>().delta < 0) reach(Seen::kLocked);
  if (is_long()) return;
  if (const auto owed = owed_.find(op.node); owed != owed_.end() && owed->second > 0)
    --owed->second;
  else
    locks_.push_back(op.node);
}
void RadixScript::saw(const Unlock& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  if (const auto at = std::ranges::find(locks_, op.node); at != locks_.end())
    locks_.erase(at);
  else
    ++owed_[op.node];
}
void RadixScript::saw(const ResetTree& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  nodes_.clear();
  locks_.clear();
  owed_.clear();
  rows_.clear();
  in_tree_ = 0;
  // Those that were admitted hold nodes that are no more; some are asked to end (PX-79).
  for (const auto& [number, known] : requests_)
    if (known.has_row && draw().percent(30)) plan(Finish{.request = number});
  requests_.clear();
}
void RadixScript::saw(const AllSlots& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error || seen.as<SlotsOnly>().slots.empty()) reach(Seen::kAllSlotsOfAnEmptyTree);
}

// Slots by hand.
void RadixScript::saw(const AllocSlots& op, const Observation& seen) {
  pay(op.count);
  auto what = std::exchange(inserted_next_, std::nullopt);
  if (seen.failed_with(Code::kExhausted)) {
    reach(Seen::kAllocExhausted);
    if (what && draw().percent(60)) plan(EvictUnits{op.count});
  }
  if (seen.error) return;
  taken_ = seen.as<SlotsOnly>().slots;
  if (what) {
    offered_ = std::ssize(taken_);
    what->slots = taken_;
    plan(std::move(*what));
  } else if (!taken_.empty()) {
    rows_.push_back(taken_);
  }
}
void RadixScript::grow(const Numbers& lengths, const Numbers& slots) {
  auto from = slots.begin();
  for (std::size_t i = 0; i < called_.size(); ++i) {
    const std::int64_t row = called_[i];
    Numbers& grown = row < 0 ? rows_.emplace_back() : rows_[static_cast<std::size_t>(row)];
    const auto to = from + (lengths[i] - std::ssize(grown));
    grown.insert(grown.end(), from, to);
    from = to;
  }
  reach(Seen::kPagesByHand);
}
void RadixScript::saw(const AllocExtend& op, const Observation& seen) {
  pay(0);
  if (seen.failed_with(Code::kNotSupported)) reach(Seen::kPagesNotSupported);
  if (seen.failed_with(Code::kExhausted)) reach(Seen::kAllocExhausted);
  if (!seen.error) grow(op.seq_lens, seen.as<SlotsOnly>().slots);
}
void RadixScript::saw(const AllocDecode& op, const Observation& seen) {
  pay(0);
  if (!seen.error) grow(op.seq_lens, seen.as<SlotsOnly>().slots);
}
void RadixScript::saw(const FreeSlots& op, const Observation& /*seen*/) {
  pay(std::ssize(op.slots));
}
void RadixScript::saw(const FreeSegment& op, const Observation& seen) {
  pay(std::ssize(op.slots));
  if (seen.error && op.start % config_.page_size != 0) reach(Seen::kSegmentWithinAPage);
}
void RadixScript::saw(const GroupBegin& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error) return reach(Seen::kSecondGroup);
  in_group_ = true;
}
void RadixScript::saw(const GroupEnd& /*op*/, const Observation& seen) {
  pay(0);
  if (!seen.error) in_group_ = false;
}

// Requests.
void RadixScript::saw(const FileRequest& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  if (seen.error) return;
  requests_[op.request] = {.tokens = op.tokens};
  texts_.keep(op.tokens);
  if (op.extra || op.salt) reach(Seen::kRequestInANamespace);
  if (requests_.size() > 32) reach(Seen::kRequestsBeyond32);
}
void RadixScript::saw(const Admit& op, const Observation& seen) {
  Request& known = requests_[op.request];
  pay(std::ssize(known.tokens));
  if (seen.error) return;
  const auto& hit = seen.as<FoundPrefix>();
  known.admitted = true;
  known.row = hit.length;
  if (hit.length > 0) met(hit.node);
}
void RadixScript::saw(const Extend& op, const Observation& seen) {
  Request& known = requests_[op.request];
  pay(std::ssize(known.tokens));
  if (seen.error && !seen.failed_with(Code::kExhausted)) return;
  known.tokens.insert(known.tokens.end(), op.append.begin(), op.append.end());
  // Evicted nodes are reported with the error, too.
  if (seen.returns) {
    const Numbers& nodes = seen.as<Extend::Returns>().nodes;
    if (!nodes.empty()) reach(Seen::kExtendEvicts);
    evicted(0, 0, nodes);
  }
  if (seen.error) {
    reach(Seen::kExtendExhausted);
    if (draw().percent(40)) plan(known.has_row ? finish() : withdraw());
    return;
  }
  known.has_row = true;
  known.row += op.tokens;
}
void RadixScript::saw(const Withdraw& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  requests_[op.request].admitted = false;
  reach(Seen::kWithdrawn);
}
void RadixScript::saw(const Finish& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  if (!op.keep) reach(Seen::kFinishedWithoutKeeping);
  const auto known = requests_.find(op.request);
  if (known == requests_.end()) return;
  texts_.keep(std::move(known->second.tokens));
  requests_.erase(known);
}

void RadixScript::saw(const TakeEvents& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  for (const ShownEvent& event : seen.as<TakeEvents::Returns>().events) {
    if (event.kind == EventKind::kRemoved) reach(Seen::kRemovedEvent);
    if (event.kind == EventKind::kCleared) reach(Seen::kClearedEvent);
    if (event.kind == EventKind::kStored) reach(Seen::kStoredEvent);
    if (event.keys && event.keys->size() > 1) reach(Seen::kEventOfSeveralPages);
  }
}
void RadixScript::saw(const ShowTree& /*op*/, const Observation& seen) {
  pay(config_.slots);
  if (seen.error) return;
  const auto& tree = seen.as<ShowTree::Returns>();
  available_ = tree.available;
  in_tree_ = tree.total;
  if (!tree.staged.empty()) reach(Seen::kStagedSlots);
  if (tree.available == 0) reach(Seen::kNothingAvailable);
  if (config_.slots > kThousand) reach(Seen::kSlotsBeyond1024);
  nodes_.clear();
  std::map<std::int64_t, std::int64_t> children;
  std::map<std::int64_t, std::int64_t> depths;
  for (const ShownNode& node : tree.nodes) {
    met(node.node);
    if (++children[node.parent] > 64) reach(Seen::k64Children);
    if (node.lock > 1) reach(Seen::kLockedBranch);
    if (node.lock > kOneByte) reach(Seen::kLockedBeyondOneByte);
    if (node.lock > kTwoBytes) reach(Seen::kLockedBeyondTwoBytes);
    if (node.hits > kTwoBytes) reach(Seen::kHitsBeyondTwoBytes);
    if (node.tokens.size() >= 256) reach(Seen::kNodeOf256Tokens);
    if (const std::int64_t depth = depths[node.node] = depths[node.parent] + 1; depth >= 64)
      reach(Seen::kDepth64);
  }
}

// ---- slots ----

using Words = Oracle::Words;

// ---- Slots ----

// So many slots for a row that ends with `last`.
Words RadixHistory::taken(const Numbers& slots, std::int64_t wanted, std::int64_t from,
                          std::int64_t last) {
  if (std::ssize(slots) != wanted)
    return std::to_string(slots.size()) + " slots are handed out, not " + std::to_string(wanted);
  if (slots_lost_) return std::nullopt;
  forget_rows(slots);
  for (const std::int64_t slot : slots) {
    const std::int64_t page = slot / config_.page_size;
    if (slot % config_.page_size == 0 && (tree_.uses(page) || in_a_row(page))) shared_.insert(page);
  }
  return slots_.grow(from, last, slots);
}

Words RadixHistory::refused(std::int64_t pages) {
  if (slots_lost_ || pages * config_.page_size > slots_.available()) return std::nullopt;
  return "slots are refused, and as many are free";
}

Words RadixHistory::saw(const AllocSlots& op, const Observation& seen) {
  const std::int64_t pages = op.count / config_.page_size;
  if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
  if (seen.error) return skip();
  return judged(taken(seen.as<SlotsOnly>().slots, pages * config_.page_size, 0, -1));
}

Words RadixHistory::saw(const AllocExtend& op, const Observation& seen) {
  const std::int64_t page = config_.page_size;
  std::int64_t pages = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < op.seq_lens.size() && i < op.prefix_lens.size(); ++i) {
    pages += (op.seq_lens[i] + page - 1) / page - (op.prefix_lens[i] + page - 1) / page;
    all += op.seq_lens[i] - op.prefix_lens[i];
  }
  if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
  if (seen.error) return skip();
  const Numbers& slots = seen.as<SlotsOnly>().slots;
  if (std::ssize(slots) != all) return judged("not so many slots as were asked for");
  auto from = slots.begin();
  for (std::size_t i = 0; i < op.seq_lens.size(); ++i) {
    const auto to = from + (op.seq_lens[i] - op.prefix_lens[i]);
    if (auto words = taken(Numbers(from, to), to - from, op.prefix_lens[i], op.last_slots[i]))
      return judged(words);
    from = to;
  }
  return judged();
}

Words RadixHistory::saw(const AllocDecode& op, const Observation& seen) {
  std::int64_t pages = 0;
  for (const std::int64_t length : op.seq_lens) pages += length % config_.page_size == 1 ? 1 : 0;
  if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
  if (seen.error) return skip();
  const Numbers& slots = seen.as<SlotsOnly>().slots;
  if (slots.size() != op.seq_lens.size()) return judged("not one slot for each request");
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (auto words = taken({slots[i]}, 1, op.seq_lens[i] - 1, op.last_slots[i]))
      return judged(words);
  return judged();
}

// Slots that the tree has are not the caller's to free.
Words RadixHistory::saw(const FreeSlots& op, const Observation& seen) {
  if (seen.error) return skip();
  const Numbers pages = slots_.pages_of(op.slots);
  for (const std::int64_t page : pages)
    if (tree_.uses(page)) return lose_track();
  return judged(give_back(pages));
}

Words RadixHistory::saw(const FreeSegment& op, const Observation& seen) {
  if (seen.error) return skip();
  const Numbers pages = slots_.pages_of_segment(op.slots);
  for (const std::int64_t page : pages)
    if (tree_.uses(page)) return lose_track();
  return judged(give_back(pages));
}

Words RadixHistory::saw(const GroupBegin& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  slots_.begin_group();
  return judged();
}

Words RadixHistory::saw(const GroupEnd& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  slots_.end_group();
  return judged();
}

// PX-80
Words RadixHistory::saw(const ClearSlots& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  slots_.clear();
  slots_lost_ = false;
  rows_.clear();
  shared_.clear();
  rows_lost_ = tree_.units() > 0;
  for (const auto& [number, known] : requests_) rows_lost_ = rows_lost_ || !known.row.empty();
  return judged();
}

// ---- Figures ----

Words RadixHistory::saw(const ShowTree& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  const auto& shown = seen.as<ShowTree::Returns>();
  if (auto words = tree_.compare(shown, contents_, config_.eagle)) return judged(words);
  return judged(slots_lost_ ? Words() : slots_.compare(shown));
}

Words RadixHistory::wrong_event(const ShownEvent& event) {
  if (event.kind == EventKind::kCleared) {
    told_.clear();
    return std::nullopt;
  }
  const Numbers keys = event.keys.value_or(Numbers());
  const std::int64_t tokens = event.tokens ? std::ssize(*event.tokens) : 0;
  if (event.kind == EventKind::kStored && tokens != std::ssize(keys) * config_.page_size)
    return "an event has not a page of tokens for each key";
  for (const std::int64_t key : keys)
    if (event.kind == EventKind::kStored)
      ++told_[key];
    else if (--told_[key] < 0)
      return "key " + std::to_string(key) + " is removed, and was not stored";
  return std::nullopt;
}

// PX-77: who follows the events knows how much is held.
Words RadixHistory::saw(const TakeEvents& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  const auto& events = seen.as<TakeEvents::Returns>().events;
  if (!config_.events) return judged(events.empty() ? Words() : Words("none are kept"));
  for (const ShownEvent& event : events)
    if (auto words = wrong_event(event)) return judged(words);
  std::int64_t pages = 0;
  for (const auto& [key, times] : told_) {
    pages += times;
    if (times > 1 && !has(Quirk::kEventKeysLackExtra))
      return judged("key " + std::to_string(key) + " is stored twice");
  }
  return judged(pages * config_.page_size == tree_.units()
                    ? Words()
                    : "events say that " + std::to_string(pages * config_.page_size) +
                          " units are held, not " + std::to_string(tree_.units()));
}

}  // namespace kvo::prefix
