// Slots by hand, and all figures.
#include <string>

#include "properties/prefix/radix_history.hpp"

namespace kvo::prefix {

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
