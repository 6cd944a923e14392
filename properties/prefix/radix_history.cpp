#include "properties/prefix/radix_history.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/contract/subject/dispatch.hpp"

namespace kvo::prefix {

using Words = Oracle::Words;

Words RadixHistory::check(const Op& op, const Observation& seen) {
  Words words;
  if (seen.unsupported) return words;
  if (lost_) return skip();
  visit_op(RadixOps(), op, [&](const auto& operation) { words = observe(operation, seen); });
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

Words RadixHistory::wrong_rows(const std::vector<Content>& prefixes, const Ids& slots) const {
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
void RadixHistory::write(const std::vector<Content>& prefixes, const Ids& slots,
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

Words RadixHistory::observe(const MatchTokens& op, const Observation& seen) {
  if (seen.error) return skip();
  const std::vector<Content> prefixes = prefixes_of(op);
  const std::int64_t tokens = std::ssize(op.tokens);
  return judged(
      wrong_hit(prefixes, std::min(op.limit.value_or(tokens), tokens), seen.as<FoundPrefix>()));
}

Words RadixHistory::observe(const TouchTokens& op, const Observation& seen) {
  if (seen.error) return skip();
  const std::int64_t tokens = std::ssize(op.tokens);
  if (!config_.disable)
    (void)tree_.walk(path(prefixes_of(op), std::min(op.limit.value_or(tokens), tokens)));
  return judged();
}

Words RadixHistory::observe(const Insert& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto& put = seen.as<Insert::Returns>();
  if (config_.disable)
    return judged(put.length == 0 && !put.node.has_value() ? Words()
                                                           : Words("what is disabled keeps"));
  const std::vector<Content> prefixes = prefixes_of(op);
  Ids slots = op.slots.value_or(Ids(op.tokens.begin(), op.tokens.end()));
  const Path whole = path(prefixes, std::ssize(op.tokens));
  slots.resize(whole.size() * static_cast<std::size_t>(config_.page_size));
  const Ids held = tree_.slots(whole, tree_.walk(whole).pages);
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

Words RadixHistory::give_back(const Ids& pages) {
  if (slots_.give_back(pages) || slots_lost_) return std::nullopt;
  if (!has(Quirk::kFreesAnything)) return "slots are freed that were not handed out";
  slots_lost_ = true;
  return std::nullopt;
}

Words RadixHistory::evict(const Ids& nodes, std::optional<std::int64_t> units, std::int64_t& gone) {
  for (const std::int64_t node : nodes) {
    if (units && gone >= *units) return "more is evicted than was asked for";
    Ids slots;
    if (auto words = tree_.remove(node, slots)) return words;
    if (auto words = give_back(slots_.pages_of_segment(slots))) return words;
    gone += std::ssize(slots);
  }
  if (units && gone < *units && !config_.disable && tree_.has_evictable())
    return "less is evicted than was asked for, and more may go";
  return std::nullopt;
}

Words RadixHistory::observe(const EvictUnits& op, const Observation& seen) {
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

Words RadixHistory::observe(const MakeRoom& op, const Observation& seen) {
  if (seen.error) return skip();
  std::int64_t gone = 0;
  return judged(evict(seen.as<NodesOnly>().nodes, missing(op.tokens), gone));
}

Words RadixHistory::observe(const Lock& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto delta = config_.disable ? std::optional<std::int64_t>(0) : tree_.lock(op.node);
  if (!delta && has(Quirk::kGoneNodesLocked)) return lose_track();
  return judged(delta == seen.as<Delta>().delta ? Words()
                                                : Words("the units protected are not the path's"));
}

Words RadixHistory::observe(const Unlock& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto delta = config_.disable ? std::optional<std::int64_t>(0) : tree_.unlock(op.node);
  if (!delta && has(Quirk::kUnlockUnguarded)) return lose_track();
  return judged(delta == seen.as<Delta>().delta
                    ? Words()
                    : Words("the units that are no longer protected are not the path's"));
}

Words RadixHistory::observe(const ResetTree& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  tree_.reset();
  return judged();
}

Words RadixHistory::observe(const AllSlots& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  Ids shown = seen.as<SlotsOnly>().slots;
  Ids all = tree_.all_slots();
  std::ranges::sort(shown);
  std::ranges::sort(all);
  return judged(shown == all ? Words() : Words("the slots are not those that were put"));
}

// ---- Requests ----

RadixHistory::Known* RadixHistory::find(std::int64_t request) {
  const auto found = requests_.find(request);
  return found != requests_.end() ? &found->second : nullptr;
}

Words RadixHistory::observe(const FileRequest& op, const Observation& seen) {
  if (seen.error) return skip();
  requests_[op.request] = {.prefixes = prefixes_of(op), .prompt = std::ssize(op.tokens)};
  return judged();
}

// PX-86
Words RadixHistory::observe(const Admit& op, const Observation& seen) {
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

Words RadixHistory::observe(const Extend& op, const Observation& seen) {
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
  const Ids slots = went.slots.value_or(Ids());
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
        IdsView(known.row).subspan(static_cast<std::size_t>(known.protected_),
                                   static_cast<std::size_t>(held - known.protected_));
    if (auto words = give_back(slots_.pages_of_segment(twice))) return words;
  }
  const TreeAccounts::Reached reached = tree_.walk(whole);
  const Ids kept = tree_.slots(whole, reached.pages);
  std::ranges::copy(kept, known.row.begin());
  known.protected_ = units;
  return move_lock(known, reached.node);
}

Words RadixHistory::observe(const Checkpoint& op, const Observation& seen) {
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

Words RadixHistory::observe(const Withdraw& op, const Observation& seen) {
  Known* known = find(op.request);
  if (seen.error || known == nullptr || !known->node) return skip();
  if (auto words = unlock(*known)) return judged(words);
  known->node.reset();
  known->row.clear();
  return judged();
}

// PX-88
Words RadixHistory::observe(const Finish& op, const Observation& seen) {
  Known* known = find(op.request);
  if (seen.error || known == nullptr || !known->has_row) return skip();
  if (op.keep)
    if (auto words = file(*known)) return judged(words);
  const auto own = IdsView(known->row).subspan(static_cast<std::size_t>(known->protected_));
  if (auto words = give_back(slots_.pages_of_segment(own))) return judged(words);
  if (auto words = unlock(*known)) return judged(words);
  *known = {.prefixes = std::move(known->prefixes), .prompt = known->prompt};
  return judged();
}

Words RadixHistory::observe(const ShowRow& op, const Observation& seen) {
  const Known* known = find(op.request);
  if (seen.error || known == nullptr || !known->has_row) return skip();
  const auto& row = seen.as<ShowRow::Returns>();
  if (row.slots != known->row || row.protected_ != known->protected_ ||
      row.inserted != known->inserted || row.node != *known->node)
    return judged("the row is not what was handed out and filed");
  return judged(wrong_rows(known->prefixes, row.slots));
}

// ---- Slots ----

// So many slots for a row that ends with `last`.
Words RadixHistory::taken(const Ids& slots, std::int64_t wanted, std::int64_t from,
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

Words RadixHistory::observe(const AllocSlots& op, const Observation& seen) {
  const std::int64_t pages = op.count / config_.page_size;
  if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
  if (seen.error) return skip();
  return judged(taken(seen.as<SlotsOnly>().slots, pages * config_.page_size, 0, -1));
}

Words RadixHistory::observe(const AllocExtend& op, const Observation& seen) {
  const std::int64_t page = config_.page_size;
  std::int64_t pages = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < op.seq_lens.size() && i < op.prefix_lens.size(); ++i) {
    pages += (op.seq_lens[i] + page - 1) / page - (op.prefix_lens[i] + page - 1) / page;
    all += op.seq_lens[i] - op.prefix_lens[i];
  }
  if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
  if (seen.error) return skip();
  const Ids& slots = seen.as<SlotsOnly>().slots;
  if (std::ssize(slots) != all) return judged("not so many slots as were asked for");
  auto from = slots.begin();
  for (std::size_t i = 0; i < op.seq_lens.size(); ++i) {
    const auto to = from + (op.seq_lens[i] - op.prefix_lens[i]);
    if (auto words = taken(Ids(from, to), to - from, op.prefix_lens[i], op.last_slots[i]))
      return judged(words);
    from = to;
  }
  return judged();
}

Words RadixHistory::observe(const AllocDecode& op, const Observation& seen) {
  std::int64_t pages = 0;
  for (const std::int64_t length : op.seq_lens) pages += length % config_.page_size == 1 ? 1 : 0;
  if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
  if (seen.error) return skip();
  const Ids& slots = seen.as<SlotsOnly>().slots;
  if (slots.size() != op.seq_lens.size()) return judged("not one slot for each request");
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (auto words = taken({slots[i]}, 1, op.seq_lens[i] - 1, op.last_slots[i]))
      return judged(words);
  return judged();
}

// Slots that the tree has are not the caller's to free.
Words RadixHistory::observe(const FreeSlots& op, const Observation& seen) {
  if (seen.error) return skip();
  const Ids pages = slots_.pages_of(op.slots);
  for (const std::int64_t page : pages)
    if (tree_.uses(page)) return lose_track();
  return judged(give_back(pages));
}

Words RadixHistory::observe(const FreeSegment& op, const Observation& seen) {
  if (seen.error) return skip();
  const Ids pages = slots_.pages_of_segment(op.slots);
  for (const std::int64_t page : pages)
    if (tree_.uses(page)) return lose_track();
  return judged(give_back(pages));
}

Words RadixHistory::observe(const GroupBegin& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  slots_.begin_group();
  return judged();
}

Words RadixHistory::observe(const GroupEnd& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  slots_.end_group();
  return judged();
}

// PX-80
Words RadixHistory::observe(const ClearSlots& /*op*/, const Observation& seen) {
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

Words RadixHistory::observe(const ShowTree& /*op*/, const Observation& seen) {
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
  const Ids keys = event.keys.value_or(Ids());
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
Words RadixHistory::observe(const TakeEvents& /*op*/, const Observation& seen) {
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
