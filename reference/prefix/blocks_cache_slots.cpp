// Slots of requests: PX-25 to PX-31, PX-50 to PX-56.
#include <algorithm>
#include <cmath>

#include "reference/prefix/blocks_cache.hpp"

namespace kvo::prefix {
namespace {

Error misuse(std::string what) {
  return fail(Code::kPrecondition, std::move(what));
}

}  // namespace

// PX-50
std::int64_t BlockManager::skipped(std::int64_t tokens) const {
  switch (options_.attention) {
    case Attention::kFull:
      return 0;
    case Attention::kSlidingWindow:
      return std::max<std::int64_t>(0, tokens - options_.window + 1);
    case Attention::kChunkedLocal:
      return tokens / options_.chunk * options_.chunk;
  }
  return 0;
}

// PX-51
Status BlockManager::let_go(std::int64_t row, std::int64_t computed) {
  Numbers& table = holdings_.change(row).table;
  Numbers gone;
  for (std::int64_t i = std::min(floor_blocks(skipped(computed)), std::ssize(table)) - 1; i >= 0;
       --i) {
    std::int64_t& block = table[static_cast<std::size_t>(i)];
    if (block == 0) break;
    gone.push_back(std::exchange(block, 0));
  }
  return pool_.release(gone);
}

Result<Allotted> BlockManager::allocate(std::int64_t request, const Allotment& asked) {
  const std::int64_t row = find(request);
  if (row < 0) return misuse("request " + std::to_string(request) + " was never made");
  if (asked.tokens == 0 && asked.hit_tokens == 0 && asked.external == 0)
    return misuse("tokens: 0, and no hits");
  if (const Status may = may_adopt(row, asked); !may) return may.error();
  const std::int64_t most = options_.max_model_len;
  const std::int64_t computed = progress_[row].computed + asked.hit_tokens + asked.external;  // T
  const std::int64_t within = std::min(computed, most);
  const std::int64_t slots = std::min(within + asked.tokens + asked.lookahead, most);  // S
  blocks_.clear();
  evicted_.clear();

  const std::int64_t whole =
      std::min(ceil_blocks(std::min(std::ssize(texts_[row].tokens), most)), admission_cap());
  if (asked.full_sequence && !enough(row, asked, within, whole, 0)) return fail(Code::kExhausted);
  Undertaking undertaking(*this);
  Status done = let_go(row, std::max<std::int64_t>(within - progress_[row].in_flight, 0));
  if (!done) return done.error();
  if (!enough(row, asked, computed, ceil_blocks(slots), asked.reserved)) {
    undertaking.commit();
    return fail(Code::kExhausted);
  }
  done = adopt(row, asked, computed);
  if (done) done = extend(row, ceil_blocks(slots), blocks_);
  if (done && !asked.delay_caching) done = register_blocks(row, within + asked.tokens);
  if (!done) return done.error();
  undertaking.commit();
  return Allotted{blocks_, evicted_};
}

// What PX-28 refuses, and lists that do not fit the request (PX-47).
Status BlockManager::may_adopt(std::int64_t row, const Allotment& asked) const {
  const Holding& holding = holdings_[row];
  const Text& text = texts_[row];
  const std::int64_t hits = std::ssize(asked.hit_blocks);
  if (asked.hit_tokens != hits * options_.block_size)
    return misuse("hit_tokens: " + std::to_string(asked.hit_tokens));
  if (hits > 0 && !options_.enable_caching) return misuse("hit_blocks: no caching");
  if (hits > 0 && holding.registered) return misuse("hit_blocks: the request is running");
  if ((hits > 0 || asked.external > 0) && !holding.registered && !holding.table.empty())
    return misuse("hit_blocks, external: the request has blocks");
  if (quirks_.has(Quirk::kStaleHitsAdopted)) return {};
  for (std::int64_t i = 0; i < hits; ++i) {
    const std::int64_t block = asked.hit_blocks[static_cast<std::size_t>(i)];
    if (block == 0) continue;
    const auto key = pool_[block].key;
    if (!key || i >= std::ssize(text.keys) ||
        text.keys[static_cast<std::size_t>(i)] != key_of(*key))
      return misuse("hit_blocks: block " + std::to_string(block) + " does not carry the key");
  }
  return {};
}

// PX-26, for a table of so many blocks.
bool BlockManager::enough(std::int64_t row, const Allotment& asked, std::int64_t computed,
                          std::int64_t blocks, std::int64_t reserved) const {
  const Holding& holding = holdings_[row];
  const std::int64_t length = std::ssize(holding.table);
  const std::int64_t hits = std::ssize(asked.hit_blocks);
  std::int64_t need = std::max<std::int64_t>(blocks - length, 0);
  if (!holding.registered) {
    const std::int64_t behind = floor_blocks(skipped(computed));
    need = std::max<std::int64_t>(blocks - std::max(behind, hits + length), 0);
    for (std::int64_t i = std::max<std::int64_t>(behind - length, 0); i < hits; ++i) {
      const std::int64_t block = asked.hit_blocks[static_cast<std::size_t>(i)];
      if (block != 0 && pool_[block].refs == 0) ++need;
    }
  }
  const bool enters = progress_[row].status != RequestStatus::kRunning && asked.others_scheduled;
  const auto kept_free = static_cast<std::int64_t>(
      enters ? std::floor(options_.watermark * static_cast<double>(options_.num_blocks)) : 0);
  return need + kept_free <= pool_.free() - reserved;
}

// PX-56
std::int64_t BlockManager::admission_cap() const {
  const auto reach = [&](std::int64_t tokens) {
    return ceil_blocks(std::min(tokens + options_.max_in_flight, options_.max_model_len));
  };
  switch (options_.attention) {
    case Attention::kFull:
      break;
    case Attention::kSlidingWindow:
      return reach(options_.window - 1) + 1;
    case Attention::kChunkedLocal:
      return reach(options_.chunk);
  }
  return ceil_blocks(options_.max_model_len);
}

// PX-27, PX-28, PX-53
Status BlockManager::adopt(std::int64_t row, const Allotment& asked, std::int64_t computed) {
  if ((asked.hit_blocks.empty() && asked.external == 0) || holdings_[row].registered) return {};
  const std::int64_t behind = floor_blocks(skipped(computed));
  if (behind > kMostUnits) return misuse("computed: too many blocks");
  Holding& holding = holdings_.change(row);
  holding.table.assign(static_cast<std::size_t>(behind), 0);
  const std::size_t left = std::min(static_cast<std::size_t>(behind), asked.hit_blocks.size());
  for (const std::int64_t block : asked.hit_blocks.subspan(left)) {
    pool_.pin(block);
    holding.table.push_back(block);
  }
  holding.registered = std::ssize(holding.table);
  if (asked.external == 0 || computed <= skipped(computed)) return {};
  Numbers loaded;
  return extend(row, ceil_blocks(computed), loaded);
}

// The table gets so many blocks, if it has fewer.
Status BlockManager::extend(std::int64_t row, std::int64_t blocks, Numbers& handed_out) {
  const std::int64_t missing = blocks - std::ssize(holdings_[row].table);
  if (missing <= 0) return {};
  if (missing > pool_.free()) return fail(Code::kExhausted);
  if (Status done = pool_.hand_out(missing, handed_out, evicted_); !done) return done;
  Numbers& table = holdings_.change(row).table;
  table.insert(table.end(), handed_out.begin(), handed_out.end());
  return {};
}

// ---- Registering ----

Status BlockManager::cache(std::int64_t request, std::int64_t tokens) {
  const std::int64_t row = find(request);
  if (row < 0) return misuse("request " + std::to_string(request) + " was never made");
  Undertaking undertaking(*this);
  if (const Status done = register_blocks(row, tokens); !done) return done;
  undertaking.commit();
  return {};
}

// PX-30
Status BlockManager::register_blocks(std::int64_t row, std::int64_t tokens) {
  const Text& text = texts_[row];
  const std::int64_t first = holdings_[row].registered.value_or(0);
  const std::int64_t end =
      std::min(floor_blocks(std::min(tokens, std::ssize(text.tokens))), std::ssize(text.keys));
  if (end <= first) return {};
  if (end > std::ssize(holdings_[row].table)) return misuse("tokens: more than there are slots");
  holdings_.change(row).registered = end;
  const Numbers& table = holdings_[row].table;
  Numbers keyed;  // places in the table
  for (std::int64_t i = first; i < end; ++i) {
    const std::int64_t block = table[static_cast<std::size_t>(i)];
    if (block == 0 || pool_[block].key || !gets_key(text, progress_[row], i)) continue;
    pool_.set_key(block, static_cast<std::int64_t>(text.keys[static_cast<std::size_t>(i)].low));
    keyed.push_back(i);
  }
  if (quirks_.has(Quirk::kStoredSpan)) {
    tell_stored(text, first, keyed, end);
    return {};
  }
  for (std::size_t i = 0, run = 0; i < keyed.size(); i = run) {
    while (run < keyed.size() && keyed[run] - keyed[i] == static_cast<std::int64_t>(run - i)) ++run;
    tell_stored(text, keyed[i], std::span(keyed).subspan(i, run - i), keyed[run - 1] + 1);
  }
  return {};
}

// PX-40: tokens of the blocks [first, end), of which `blocks` got keys.
void BlockManager::tell_stored(const Text& text, std::int64_t first,
                               std::span<const std::int64_t> blocks, std::int64_t end) {
  const auto begin = text.tokens.begin();
  Event event{.kind = EventKind::kStored,
              .keys = {},
              .parent = std::nullopt,
              .tokens = {begin + first * options_.block_size, begin + end * options_.block_size}};
  if (first > 0) event.parent = text.keys[static_cast<std::size_t>(first - 1)];
  for (const std::int64_t i : blocks) event.keys.push_back(text.keys[static_cast<std::size_t>(i)]);
  pool_.tell(std::move(event));
}

// PX-54, PX-55
bool BlockManager::gets_key(const Text& text, const Progress& progress, std::int64_t block) const {
  if (options_.attention != Attention::kSlidingWindow) return true;
  const std::int64_t run = run_needed();
  if (run == 0) return false;
  if (!options_.retention) return true;
  const std::int64_t size = options_.block_size;
  const std::int64_t early = options_.eagle ? 1 : 0;
  if (const std::int64_t segment = *options_.retention / size; segment > 0) {
    if (run >= segment) return true;
    if (block >= early && (block - early) % segment >= segment - run) return true;
  }
  const auto drafted = [&](std::int64_t tokens) {
    return std::max<std::int64_t>(floor_blocks(tokens) * size - size, 0);
  };
  if (options_.eagle) {
    if (ends_run(drafted(text.prompt - 1), block) || ends_run(drafted(text.prompt), block))
      return true;
  } else if (ends_run(text.prompt - 1, block)) {
    return true;
  }
  if (!progress.boundary) return false;
  return ends_run(*progress.boundary, block) ||
         (options_.eagle && ends_run(*progress.boundary - size, block));
}

// Whether the block is in the run that ends at a boundary (PX-55 b).
bool BlockManager::ends_run(std::int64_t boundary, std::int64_t block) const {
  const std::int64_t last = floor_blocks(boundary) - 1 + (options_.eagle ? 1 : 0);
  return block <= last && block > last - run_needed();
}

}  // namespace kvo::prefix
