#include "properties/prefix/blocks_history.hpp"

#include <algorithm>
#include <string>

#include "reference/contract/subject/dispatch.hpp"

namespace kvo::prefix {

using Words = BlocksHistory::Words;

Words BlocksHistory::check(const Op& op, const Observation& seen) {
  Words words;
  if (seen.unsupported) return words;
  visit_op(BlocksOps(), op, [&](const auto& operation) {
    words = lost_ ? look(operation, seen) : saw(operation, seen);
  });
  return words;
}

// ---- Requests ----

// PX-10 to PX-13
Words BlocksHistory::wrong_keys(KnownRequest& known, std::int64_t first, const Numbers& shown) {
  const std::int64_t wanted =
      config_.enable_caching
          ? floor_blocks(std::max<std::int64_t>(known.tokens() - config_.hash_lookahead, 0))
          : 0;
  if (first + std::ssize(shown) != wanted)
    return std::to_string(wanted) + " blocks have keys, " +
           std::to_string(first + std::ssize(shown)) + " are shown";
  for (std::int64_t i = first; i < wanted; ++i) {
    const std::int64_t end = (i + 1) * config_.block_size + config_.hash_lookahead;
    const Content content = known.prefixes[static_cast<std::size_t>(end)];
    const auto [number, is_new] = numbers_.try_emplace(content, std::ssize(keys_));
    if (is_new) keys_.push_back({.content = content, .block = i});
    const std::int64_t key = shown[static_cast<std::size_t>(i - first)];
    if (key != number->second)
      return "block " + std::to_string(i) + " has key " + std::to_string(key) + ", that of its " +
             (is_new ? "content would be new" : "content is " + std::to_string(number->second));
    known.keys.push_back(key);
  }
  return std::nullopt;
}

Words BlocksHistory::saw(const MakeRequest& op, const Observation& seen) {
  if (seen.error) return skip();
  const bool named = op.salt && !op.salt->empty();
  const Content start = contents_.start(
      {named ? op.salt : std::nullopt, op.lora, op.lora ? op.lora_path.value_or("") : ""});
  KnownRequest& known = requests_[op.request];
  KnownRequest made{.prefixes = {start},
                    .skip_reading = op.skip_reading.value_or(false),
                    .table = std::move(known.table),
                    .registered = known.registered};
  made.odd = !made.table.empty() || made.registered;
  known = std::move(made);
  contents_.extend(known.prefixes, op.tokens);
  return judged(wrong_keys(known, 0, seen.as<KeysOnly>().keys));
}

Words BlocksHistory::saw(const Append& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  contents_.extend(known->prefixes, op.tokens);
  return judged(wrong_keys(*known, std::ssize(known->keys), seen.as<KeysOnly>().keys));
}

Words BlocksHistory::saw(const SetRequest& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  known->computed = op.computed.value_or(known->computed);
  known->in_flight = op.in_flight.value_or(known->in_flight);
  known->preemptions = op.preemptions.value_or(known->preemptions);
  return judged();
}

// ---- Hits ----

// PX-23, PX-52, PX-57
template <class Carried>
std::int64_t BlocksHistory::found_blocks(const KnownRequest& known, std::int64_t most,
                                         std::int64_t begin, const Carried& carried) const {
  const auto holds = [&](std::int64_t block) {
    return block < std::ssize(known.keys) && carried(known.keys[static_cast<std::size_t>(block)]);
  };
  if (config_.attention != Attention::kSlidingWindow) {
    std::int64_t end = begin;
    while (end < most && holds(end)) ++end;
    return end;
  }
  std::int64_t run = 0;
  for (std::int64_t i = std::min(most, std::ssize(known.keys)) - 1; i >= 0; --i) {
    run = holds(i) ? run + 1 : 0;
    if (run > 0 && (i == 0 || run >= run_needed())) return i + run;
  }
  return 0;
}

Words BlocksHistory::wrong_rows(const KnownRequest& known, std::int64_t block, std::int64_t place,
                                std::int64_t end) {
  const std::vector<Content>& rows = blocks_.rows(block);
  const std::int64_t begin = place * config_.block_size;
  for (std::int64_t i = begin; i < std::min(end, begin + std::ssize(rows)); ++i) {
    const Content there = rows[static_cast<std::size_t>(i - begin)];
    if (there != kNoContent && there != known.prefixes[static_cast<std::size_t>(i + 1)])
      return "block " + std::to_string(block) + " has the row of another token in the place of " +
             std::to_string(i);
  }
  return std::nullopt;
}

Words BlocksHistory::wrong_hit(const KnownRequest& known, const MatchBlocks::Returns& hit,
                               std::int64_t most) {
  if (hit.length != std::ssize(hit.blocks) * config_.block_size)
    return "the length is not that of the blocks";
  const auto carrier = std::ranges::find_if(hit.blocks, [](auto block) { return block != 0; });
  const std::int64_t nulls = carrier - hit.blocks.begin();
  const bool in_chunks = config_.attention == Attention::kChunkedLocal;
  const std::int64_t begin = in_chunks ? floor_blocks(skipped(most)) : 0;
  const std::int64_t unneeded = in_chunks ? begin : floor_blocks(skipped(hit.length));
  if (nulls > unneeded) return "a block that the next token sees is not hit";
  const std::int64_t blocks = floor_blocks(most);
  const auto dropped = [&](std::int64_t found) {
    return std::max<std::int64_t>(found - (config_.eagle ? 1 : 0), 0);
  };
  const std::int64_t least = dropped(
      found_blocks(known, blocks, begin, [&](std::int64_t key) { return blocks_.carried(key); }));
  const std::int64_t at_most = dropped(found_blocks(
      known, blocks, begin, [&](std::int64_t key) { return blocks_.perhaps_carried(key); }));
  if (std::ssize(hit.blocks) < least || std::ssize(hit.blocks) > at_most)
    return std::to_string(hit.blocks.size()) + " blocks are hit, " + std::to_string(least) +
           (least < at_most ? " or more are held" : " are held");
  for (std::int64_t i = nulls; i < std::ssize(hit.blocks); ++i) {
    const std::int64_t block = hit.blocks[static_cast<std::size_t>(i)];
    if (!blocks_.may_carry(block, known.keys[static_cast<std::size_t>(i)]))
      return "block " + std::to_string(block) + " is hit, and does not hold block " +
             std::to_string(i) + " of the request";
    if (auto words = wrong_rows(known, block, i, hit.length)) return words;
  }
  return std::nullopt;
}

Words BlocksHistory::saw(const MatchBlocks& op, const Observation& seen) {
  const KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  const auto& hit = seen.as<MatchBlocks::Returns>();
  const std::int64_t most = std::max<std::int64_t>(op.max_length.value_or(known->tokens() - 1), 0);
  if (!config_.enable_caching || known->skip_reading)
    return judged(hit.blocks.empty() && hit.length == 0
                      ? Words()
                      : Words("a request that may hit nothing has a hit"));
  return judged(wrong_hit(*known, hit, most));
}

// ---- Slots ----

bool BlocksHistory::lets_go(const KnownRequest& known, std::int64_t tokens) const {
  const std::int64_t end = std::min(floor_blocks(skipped(tokens)), std::ssize(known.table));
  return end > 0 && known.table[static_cast<std::size_t>(end - 1)] != 0;
}

// PX-51
void BlocksHistory::let_go(KnownRequest& known, std::int64_t tokens) {
  std::int64_t i = std::min(floor_blocks(skipped(tokens)), std::ssize(known.table)) - 1;
  for (; i >= 0 && known.table[static_cast<std::size_t>(i)] != 0; --i)
    blocks_.unpin(std::exchange(known.table[static_cast<std::size_t>(i)], 0));
}

// PX-27, PX-28, PX-53
std::int64_t BlocksHistory::adopt(KnownRequest& known, const Allocate& op, std::int64_t computed,
                                  Words& words) {
  const Numbers hits = op.hit_blocks.value_or(Numbers());
  const std::int64_t external = op.external.value_or(0);
  if ((hits.empty() && external == 0) || known.registered) return 0;
  const std::int64_t behind = floor_blocks(skipped(computed));
  known.table.assign(static_cast<std::size_t>(behind), 0);
  const bool stale_too = quirks_.has(Quirk::kStaleHitsAdopted);
  // Where stale hits are adopted, adoption does not prove that the block carries the key.
  const auto holds = [&](std::int64_t block, std::int64_t i) {
    if (i >= std::ssize(known.keys)) return false;
    const std::int64_t key = known.keys[static_cast<std::size_t>(i)];
    return stale_too ? blocks_.key(block) == key : blocks_.may_carry(block, key);
  };
  for (std::int64_t i = 0; i < std::ssize(hits); ++i) {
    const std::int64_t block = hits[static_cast<std::size_t>(i)];
    if (block != 0 && !holds(block, i)) {
      if (!stale_too)
        words = "block " + std::to_string(block) + " is adopted, and does not hold block " +
                std::to_string(i) + " of the request";
      known.odd = true;
    }
    if (i < behind) continue;
    blocks_.pin(block);
    known.table.push_back(block);
  }
  known.registered = std::ssize(known.table);
  if (external == 0 || computed <= skipped(computed)) return 0;
  const std::int64_t unseen =
      std::max<std::int64_t>(ceil_blocks(computed) - std::ssize(known.table), 0);
  known.table.insert(known.table.end(), static_cast<std::size_t>(unseen), kUnseen);
  return unseen;
}

// Rows that the next tokens see, as far as they were written.
Words BlocksHistory::wrong_own_rows(const KnownRequest& known, std::int64_t end) {
  if (known.odd) return std::nullopt;
  end = std::min(end, known.tokens());
  for (std::int64_t i = floor_blocks(skipped(end)); i < std::ssize(known.table); ++i) {
    const std::int64_t block = known.table[static_cast<std::size_t>(i)];
    if (block == 0 || block == kUnseen) continue;
    if (auto words = wrong_rows(known, block, i, end)) return words;
  }
  return std::nullopt;
}

// The rows of tokens that are computed, or loaded, in blocks that are the request's own.
void BlocksHistory::write(KnownRequest& known, std::int64_t end) {
  const std::int64_t size = config_.block_size;
  end = std::min({end, known.tokens(), std::ssize(known.table) * size});
  for (std::int64_t i = known.registered.value_or(0) * size; i < end; ++i) {
    const std::int64_t block = known.table[static_cast<std::size_t>(i / size)];
    if (block == 0 || block == kUnseen) continue;
    std::vector<Content>& rows = blocks_.rows(block);
    rows.resize(static_cast<std::size_t>(size), kNoContent);
    rows[static_cast<std::size_t>(i % size)] = known.prefixes[static_cast<std::size_t>(i + 1)];
  }
}

// PX-30
bool BlocksHistory::register_blocks(KnownRequest& known, std::int64_t tokens) {
  const std::int64_t end =
      std::min({floor_blocks(std::min(tokens, known.tokens())), std::ssize(known.keys)});
  if (end <= known.registered.value_or(0)) return true;
  if (end > std::ssize(known.table)) return false;
  write(known, end * config_.block_size);
  const std::int64_t first = known.registered.value_or(0);
  known.registered = end;
  for (std::int64_t i = first; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!blocks_.set_key(known.table[at], known.keys[at], keys_are_sparse())) return false;
  }
  return true;
}

Words BlocksHistory::saw(const Allocate& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (known == nullptr) return skip();
  const std::int64_t most = config_.max_model_len;
  const std::int64_t before = known->computed + op.hit_tokens.value_or(0);
  const std::int64_t computed = before + op.external.value_or(0);
  const std::int64_t within = std::min(computed, most);
  const std::int64_t kept_from = std::max<std::int64_t>(within - known->in_flight, 0);
  if (seen.error && !seen.failed_with(Code::kExhausted)) return skip();
  if (computed > most) return lose_track();
  if (seen.error) {  // PX-26
    if (op.full_sequence.value_or(false) && lets_go(*known, kept_from)) return lose_track();
    if (!op.full_sequence.value_or(false)) let_go(*known, kept_from);
    return skip();
  }
  const auto& got = seen.as<AllottedBlocks>();
  let_go(*known, kept_from);
  Words words;
  const std::int64_t unseen = adopt(*known, op, computed, words);
  if (words) return judged(words);
  const std::int64_t slots = std::min(within + op.tokens + op.lookahead.value_or(0), most);
  const std::int64_t wanted =
      std::max<std::int64_t>(ceil_blocks(slots) - std::ssize(known->table), 0);
  if (std::ssize(got.blocks) != wanted)
    return judged(std::to_string(got.blocks.size()) + " blocks are handed out, " +
                  std::to_string(wanted) + " are needed");
  words = blocks_.hand_out(got.blocks, unseen, got.evicted);
  if (words) return judged(words);
  known->table.insert(known->table.end(), got.blocks.begin(), got.blocks.end());
  words = wrong_own_rows(*known, before);
  if (words) return judged(words);
  write(*known, within + op.tokens);
  if (!op.delay_caching.value_or(false) && !register_blocks(*known, within + op.tokens))
    return lose_track();
  return judged();
}

Words BlocksHistory::saw(const CacheTokens& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  return register_blocks(*known, op.tokens) ? judged() : lose_track();
}

Words BlocksHistory::saw(const Skip& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  let_go(*known, op.computed);
  return judged();
}

// PX-33
void BlocksHistory::release(KnownRequest& known) {
  known.table.clear();
  known.registered.reset();
  known.odd = false;
}

Words BlocksHistory::saw(const FreeRequest& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  for (const std::int64_t block : known->table) blocks_.unpin(block);
  release(*known);
  return judged();
}

// The table from that place on is what is shown; blocks that were handed out unseen are learnt.
Words BlocksHistory::wrong_table(KnownRequest& known, const Numbers& shown, std::int64_t first) {
  if (first + std::ssize(shown) != std::ssize(known.table))
    return "the table has " + std::to_string(std::ssize(known.table) - first) + " blocks, " +
           std::to_string(shown.size()) + " are shown";
  for (std::int64_t i = first; i < std::ssize(known.table); ++i) {
    std::int64_t& block = known.table[static_cast<std::size_t>(i)];
    const std::int64_t there = shown[static_cast<std::size_t>(i - first)];
    if (block == kUnseen && there > 0 && there < config_.num_blocks) {
      block = there;
      blocks_.found(there);
    }
    if (block != there)
      return "place " + std::to_string(i) + " of the table has block " + std::to_string(there) +
             ", not " + std::to_string(block);
  }
  return std::nullopt;
}

Words BlocksHistory::saw(const Pop& op, const Observation& seen) {
  KnownRequest* known = find(op.request);
  if (seen.error || known == nullptr) return skip();
  const auto first = std::ranges::find_if(known->table, [](auto block) { return block != 0; });
  if (auto words = wrong_table(*known, seen.as<BlocksOnly>().blocks, first - known->table.begin()))
    return judged(words);
  for (const std::int64_t block : known->table)
    if (block != 0) ++by_hand_[block];
  release(*known);
  return judged();
}

}  // namespace kvo::prefix
