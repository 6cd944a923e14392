// The pool by hand, and all figures.
#include <algorithm>
#include <string>

#include "properties/prefix/blocks_history.hpp"
#include "reference/contract/describe/difference.hpp"

namespace kvo::prefix {

using Words = BlocksHistory::Words;

// ---- Words about another result ----

std::string BlocksHistory::block_text(std::int64_t block) const {
  const auto key = blocks_.key(block);
  const std::int64_t users = blocks_.users(block);
  return "block " + std::to_string(block) + " (" +
         (key ? "key " + std::to_string(*key) : "no key known") + ", " + std::to_string(users) +
         (users == 1 ? " user)" : " users)");
}

std::vector<std::string> BlocksHistory::explain(std::span<const Op> script, const Observation& want,
                                                const Observation& got) const {
  const Op& op = script.back();
  if (lost_ || want.error || got.error) return {};
  std::vector<std::string> lines;
  const auto first = [&](const Numbers& wanted, const Numbers& shown, const std::string& what) {
    const auto [due, there] = std::ranges::mismatch(wanted, shown);
    if (due != wanted.end() && there != shown.end())
      lines.push_back(block_text(*there) + what + block_text(*due) + " was to go");
  };
  if (op.as<ShowBlocks>() != nullptr) {
    first(want.as<ShowBlocks::Returns>().queue, got.as<ShowBlocks::Returns>().queue,
          " goes next where ");
    if (!lines.empty() && config_.window)
      lines.push_back("the window of " + std::to_string(*config_.window) +
                      " releases the blocks that left it, the highest first");
  }
  if (op.as<Allocate>() == nullptr && op.as<Take>() == nullptr) return lines;
  const auto& wanted = want.as<AllottedBlocks>();
  const auto& shown = got.as<AllottedBlocks>();
  first(wanted.blocks, shown.blocks, " is handed out where ");
  for (const std::int64_t block : shown.evicted)
    if (std::ranges::find(wanted.evicted, block) == wanted.evicted.end())
      lines.push_back(block_text(block) + " is evicted, and was to stay");
  for (const std::int64_t block : wanted.evicted)
    if (std::ranges::find(shown.evicted, block) == shown.evicted.end())
      lines.push_back(block_text(block) + " was to be evicted, and stays");
  return lines;
}

// ---- The pool by hand ----

Words BlocksHistory::saw(const Take& op, const Observation& seen) {
  if (seen.failed_with(Code::kExhausted))
    return judged(op.count <= blocks_.least_free() ? Words("blocks are refused that are free")
                                                   : Words());
  if (seen.error) return skip();
  const auto& got = seen.as<AllottedBlocks>();
  if (std::ssize(got.blocks) != op.count) return judged("not so many blocks as were asked for");
  for (const std::int64_t block : got.blocks) ++by_hand_[block];
  return judged(blocks_.hand_out(got.blocks, 0, got.evicted));
}

Words BlocksHistory::saw(const TouchBlocks& op, const Observation& seen) {
  if (seen.error) return skip();
  for (const std::int64_t block : op.blocks) {
    blocks_.pin(block);
    ++by_hand_[block];
  }
  return judged();
}

Words BlocksHistory::saw(const Release& op, const Observation& seen) {
  if (seen.error) return skip();
  for (const std::int64_t block : op.blocks) {
    if (block == 0) continue;
    if (--by_hand_[block] < 0) return lose_track();
    blocks_.unpin(block);
  }
  return judged();
}

// PX-36
Words BlocksHistory::saw(const EvictBlocks& op, const Observation& seen) {
  if (seen.error) return skip();
  const Numbers& evicted = seen.as<EvictBlocks::Returns>().evicted;
  std::size_t at = 0;
  for (std::int64_t block : op.blocks) {
    if (block < 0) block += config_.num_blocks;
    const bool told = at < evicted.size() && evicted[at] == block;
    if (told) ++at;
    if (auto words = blocks_.take_key(block, told)) return judged(words);
  }
  return judged(at == evicted.size() ? Words() : Words("a block is evicted that was not named"));
}

// PX-37
Words BlocksHistory::saw(const ResetBlocks& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  const bool done = seen.as<ResetBlocks::Returns>().done;
  const bool in_use = blocks_.least_free() < config_.num_blocks - 1;
  if (done == in_use)
    return judged(done ? "keys are taken off while blocks are in use" : "no block is in use");
  if (done) blocks_.take_all_keys();
  sums_.reset = sums_.reset || done;
  return judged();
}

// ---- Figures ----

Words BlocksHistory::saw(const LookUp& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto& block = seen.as<LookUp::Returns>().block;
  if (!block.has_value())
    return judged(blocks_.carried(op.key) ? Words("a key is not found that a block carries")
                                          : Words());
  return judged(blocks_.may_carry(*block, op.key)
                    ? Words()
                    : "block " + std::to_string(*block) + " does not carry the key");
}

Words BlocksHistory::saw(const ShowTable& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  return judged(wrong_table(*known, seen.as<BlocksOnly>().blocks, 0));
}

// PX-39
Words BlocksHistory::saw(const CachedTokens& op, const Observation& seen) {
  const KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr || !blocks_.keys_are_known()) return skip();
  std::int64_t blocks = 0;
  for (const std::int64_t block : known->table) {
    if (block == kUnseen) return skip();
    if (const auto key = blocks_.key(block))
      blocks = std::max(blocks, keys_[static_cast<std::size_t>(*key)].block + 1);
  }
  const std::int64_t shown = seen.as<CachedTokens::Returns>().tokens;
  if (shown == blocks * config_.block_size) return judged();
  return judged(std::to_string(shown) + " tokens are cached, keys say " +
                std::to_string(blocks * config_.block_size));
}

// PX-44
Words BlocksHistory::saw(const ShowUsage& /*op*/, const Observation& seen) {
  if (seen.error || blocks_.unseen() > 0) return skip();
  const auto all = static_cast<double>(config_.num_blocks - 1);
  const auto free = static_cast<double>(blocks_.least_free());
  const double usage = config_.num_blocks == 1 ? 0 : 1 - free / all;
  return judged(seen.as<ShowUsage::Returns>().usage == usage
                    ? Words()
                    : Words("usage is not the part that is not free"));
}

// PX-41
Words BlocksHistory::saw(const RecordHits& op, const Observation& seen) {
  const KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  if (!config_.enable_caching || known->skip_reading) return judged();
  const bool again = known->preemptions > 0;
  (again ? sums_.preempted_requests : sums_.requests) += 1;
  (again ? sums_.preempted_queries : sums_.queries) += known->tokens();
  (again ? sums_.preempted_hits : sums_.hits) += op.hits;
  return judged();
}

Words BlocksHistory::saw(const ShowStatistics& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  const Observation want{.returns = Record::of(std::exchange(sums_, {}))};
  const auto difference = observation_difference(want, seen);
  return judged(difference ? Words("sums: " + difference->text()) : Words());
}

// PX-40: who follows the events knows what is held.
Words BlocksHistory::wrong_event(const ShownEvent& event) {
  const bool removes_last = !quirks_.has(Quirk::kRemovedWhileHeld);
  if (event.kind == EventKind::kCleared) {
    told_.clear();
    return std::nullopt;
  }
  for (const std::int64_t key : event.keys.value_or(Numbers())) {
    if (key < 0 || key >= std::ssize(keys_)) return "an event has a key that nobody has";
    if (event.kind == EventKind::kStored)
      ++told_[key];
    else if (told_[key] == 0)
      return "key " + std::to_string(key) + " is removed, and was not stored";
    else if (removes_last || --told_[key] == 0)
      told_.erase(key);
  }
  return std::nullopt;
}

Words BlocksHistory::saw(const TakeEvents& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  for (const ShownEvent& event : seen.as<TakeEvents::Returns>().events)
    if (auto words = wrong_event(event)) return judged(words);
  if (!config_.events && !seen.as<TakeEvents::Returns>().events.empty())
    return judged("there are events, and none are kept");
  if (!config_.events || !blocks_.keys_are_known()) return skip();
  const auto carriers = blocks_.carriers();
  const bool each = quirks_.has(Quirk::kRemovedWhileHeld);
  for (const auto& [key, blocks] : carriers)
    if (!told_.contains(key) || (each && told_.at(key) != blocks))
      return judged("key " + std::to_string(key) + " is held, events do not say so");
  for (const auto& [key, times] : told_)
    if (!carriers.contains(key))
      return judged("key " + std::to_string(key) + " is not held, events say so");
  return judged();
}

Words BlocksHistory::saw(const ShowBlocks& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  const auto& shown = seen.as<ShowBlocks::Returns>();
  if (auto words = wrong_pool(shown, config_.num_blocks)) return judged(words);
  return judged(blocks_.compare(shown));
}

}  // namespace kvo::prefix
