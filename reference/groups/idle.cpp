// Allotments that change nothing: most steps of decoding end no block in any group. Caches with
// Parts::skips_idle answer these at once. Each condition here suffices; what fails one is left to
// the rules, which find the same answer.
#include <algorithm>

#include "reference/groups/blocks_cache.hpp"

namespace kvo::groups {

// New tokens alone, of a running request, within the model's length.
bool Manager::is_idle(std::int64_t row, const Call& call) const {
  const Allocate& asked = call.asked;
  const Progress& progress = requests_.progress(row);
  if (asked.tokens <= 0 || asked.hit_blocks || asked.hit_tokens.value_or(0) != 0 ||
      call.external != 0 || asked.full_sequence.value_or(false))
    return false;
  if (progress.status != RequestStatus::kRunning || asked.reserved.value_or(0) > pool_.free())
    return false;
  if (call.main > std::min(options_.max_model_len, kMostUnits)) return false;
  for (std::int64_t g = 0; g < groups(); ++g)
    if (!has_slots(row, g, call) || releases(row, g, call.total - progress.in_flight) ||
        (!asked.delay_caching.value_or(false) && registers(row, g, call.main)))
      return false;
  return true;
}

// Whether the table needs no entry, and no state ends where a block of states does.
bool Manager::has_slots(std::int64_t row, std::int64_t g, const Call& call) const {
  const Group& one = group(g);
  const Holding& own = held(row, g);
  const std::int64_t slots = (std::ssize(table(row, g)) - one.speculative) * one.block_size;
  if (own.tail || own.checkpoint || one.checkpoints > 0 || one.kind == GroupKind::kRing ||
      call.slots > slots)
    return false;
  return !is_aligned_state(one) ||
         (own.placed && call.main < slots && call.total >= slots - one.block_size);
}

// Whether a block may be released after so many settled tokens.
bool Manager::releases(std::int64_t row, std::int64_t g, std::int64_t tokens) const {
  const Group& one = group(g);
  const Holding& own = held(row, g);
  const Ids& blocks = table(row, g);
  const auto has_block = [&](std::int64_t i) { return blocks[static_cast<std::size_t>(i)] != 0; };
  if (one.kind == GroupKind::kRswa || tokens <= 0) return true;
  const std::int64_t left = skipped(one, tokens);
  if (!is_aligned_state(one)) {
    const std::int64_t end = std::min(left / one.block_size, std::ssize(blocks));
    return end > 0 && has_block(end - 1);
  }
  const std::int64_t retired = own.retired * one.block_size;
  return left < retired || left >= retired + one.block_size ||
         (own.last && *own.last >= 0 && *own.last < own.retired && has_block(*own.last));
}

// Whether a block may get a key for one of the first `tokens` tokens.
bool Manager::registers(std::int64_t row, std::int64_t g, std::int64_t tokens) const {
  const Group& one = group(g);
  const Text& text = requests_.text(row);
  if (!options_.enable_caching || !is_cacheable(one)) return false;
  const std::int64_t most = std::min(tokens, std::ssize(text.tokens));
  if (most >= (held(row, g).counted.value_or(0) + 1) * one.block_size) return true;
  if (is_full(one))
    return one.block_size != options_.hash_block &&
           (layout_.partial || quirks_.has(Quirk::kTailsUnused));
  return is_aligned_state(one) && reach_of(g, most) <= text.prompt;
}

}  // namespace kvo::groups
