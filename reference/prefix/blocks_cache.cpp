#include "reference/prefix/blocks_cache.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace kvo::prefix {
Result<std::unique_ptr<BlockCache>> BlockManager::make(const BlocksOptions& options,
                                                       QuirkSet<Quirk> quirks) {
  return std::make_unique<BlockManager>(options, quirks);
}

BlockManager::BlockManager(const BlocksOptions& options, QuirkSet<Quirk> quirks)
    : options_(options),
      quirks_(quirks),
      pool_(options.num_blocks, options.enable_caching, options.events, quirks),
      requests_(options.block_size, options.hash_lookahead, options.enable_caching) {}

void BlockManager::commit() noexcept {
  pool_.commit();
  requests_.commit();
  holdings_.commit();
}

void BlockManager::roll_back() noexcept {
  pool_.roll_back();
  requests_.roll_back();
  holdings_.roll_back();
}

std::int64_t BlockManager::floor_blocks(std::int64_t tokens) const {
  return floor_of(tokens, options_.block_size);
}
std::int64_t BlockManager::ceil_blocks(std::int64_t tokens) const {
  return ceil_of(tokens, options_.block_size);
}

const BlockManager::Text& BlockManager::text(std::int64_t request) const {
  static const Text kNone;
  const std::int64_t row = requests_.find(request);
  return row >= 0 ? requests_.text(row) : kNone;
}

const BlockManager::Progress& BlockManager::progress(std::int64_t request) const {
  static const Progress kNone;
  const std::int64_t row = requests_.find(request);
  return row >= 0 ? requests_.progress(row) : kNone;
}

Result<std::span<const Key>> BlockManager::request(const MakeRequest& op) {
  Transaction undertaking(*this);
  const std::int64_t row = requests_.make(op.request, Requests::text_of(op));
  while (holdings_.size() < std::ssize(requests_.rows())) holdings_.add({});
  keys_ = requests_.text(row).keys;
  undertaking.commit();
  return std::span<const Key>(keys_);
}

Result<std::span<const Key>> BlockManager::append(std::int64_t request, TokensView tokens) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return no_request(request);
  Transaction undertaking(*this);
  const Text& text = requests_.text(row);
  const std::ptrdiff_t before = std::ssize(text.keys);
  requests_.append(row, tokens);
  keys_.assign(text.keys.begin() + before, text.keys.end());
  undertaking.commit();
  return std::span<const Key>(keys_);
}

Status BlockManager::set(const SetRequest& op) {
  const std::int64_t row = requests_.find(op.request);
  if (row < 0) return no_request(op.request);
  Transaction undertaking(*this);
  requests_.set(row, op);
  undertaking.commit();
  return {};
}

// ---- Lookup ----

Result<BlocksHit> BlockManager::match(std::int64_t request,
                                      std::optional<std::int64_t> max_length) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return no_request(request);
  const Text& text = requests_.text(row);
  blocks_.clear();
  if (!options_.enable_caching || text.skip_reading) return BlocksHit{};
  // PX-21: the last token is computed in any case.
  if (const Status found = look_up(text, max_length.value_or(std::ssize(text.tokens) - 1)); !found)
    return found.error();
  if (options_.eagle && !blocks_.empty()) blocks_.pop_back();  // PX-22
  return BlocksHit{blocks_, std::ssize(blocks_) * options_.block_size};
}

// The first block that carries the key of a block of the request. Requires  there is a key.
std::optional<std::int64_t> BlockManager::holder(const Text& text, std::int64_t block) const {
  return lookup(text.keys[static_cast<std::size_t>(block)]);
}

Status BlockManager::look_up(const Text& text, std::int64_t max_length) {
  if (options_.attention == Attention::kChunkedLocal) return look_in_chunk(text, max_length);
  const std::int64_t keys = std::ssize(text.keys);
  const std::int64_t blocks = floor_blocks(max_length);
  if (options_.attention == Attention::kSlidingWindow) {
    if (blocks > keys && quirks_.has(Quirk::kLooksBeyondKeys))
      return fail(Code::kPrecondition, "no key of block " + std::to_string(blocks - 1));
    return look_in_window(text, std::min(blocks, keys));
  }
  if (max_length < 0 && quirks_.has(Quirk::kNoPromptAborts))
    return fail(Code::kPrecondition, "nothing to look up");
  for (std::int64_t i = 0; i < std::min(blocks, keys); ++i) {  // PX-23
    const auto found = holder(text, i);
    if (!found) break;
    blocks_.push_back(*found);
  }
  return {};
}

// PX-52: blocks of a run that lets the next token see its whole window.
std::int64_t BlockManager::run_needed() const {
  return ceil_blocks(options_.window - 1) + (options_.eagle ? 1 : 0);
}

Status BlockManager::look_in_window(const Text& text, std::int64_t blocks) {
  std::int64_t run = 0;  // held blocks from i on
  for (std::int64_t i = blocks - 1; i >= 0; --i) {
    run = holder(text, i) ? run + 1 : 0;
    if (run == 0 || (i > 0 && run < run_needed())) continue;
    blocks_.assign(static_cast<std::size_t>(i), 0);
    for (std::int64_t k = i; k < i + run; ++k) blocks_.push_back(*holder(text, k));
    break;
  }
  return {};
}

// PX-57
Status BlockManager::look_in_chunk(const Text& text, std::int64_t max_length) {
  if (options_.eagle) return fail(Code::kPrecondition, "draft heads with chunks");
  const std::int64_t keys = std::ssize(text.keys);
  const std::int64_t begin = floor_blocks(
      floor_of(std::max<std::int64_t>(max_length, 0), options_.chunk) * options_.chunk);
  if (begin > kMostUnits) return fail(Code::kPrecondition, "max_length: too many blocks");
  blocks_.assign(static_cast<std::size_t>(begin), 0);
  for (std::int64_t i = begin; i < floor_blocks(max_length); ++i) {
    if (i >= keys && quirks_.has(Quirk::kLooksBeyondKeys))
      return fail(Code::kPrecondition, "no key of block " + std::to_string(i));
    const auto found = i < keys ? holder(text, i) : std::nullopt;
    if (!found) break;
    blocks_.push_back(*found);
  }
  return {};
}

std::optional<std::int64_t> BlockManager::lookup(const Key& key) const {
  return pool_.holder(number_of(key));
}

// ---- Letting go, and the pool by hand ----

Status BlockManager::skip(std::int64_t request, std::int64_t computed) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return no_request(request);
  return transact(*this, [&] { return let_go(row, computed); });
}

Status BlockManager::free(std::int64_t request) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return {};
  Transaction undertaking(*this);
  const Holding holding = std::exchange(holdings_.change(row), {});
  const Ids from_the_end(holding.table.rbegin(), holding.table.rend());
  if (Status done = pool_.release(from_the_end); !done) return done;
  undertaking.commit();
  return {};
}

Result<IdsView> BlockManager::pop(std::int64_t request) {
  blocks_.clear();
  const std::int64_t row = requests_.find(request);
  if (row < 0) return IdsView();
  Transaction undertaking(*this);
  const Holding holding = std::exchange(holdings_.change(row), {});
  const auto first = std::ranges::find_if(holding.table, [](auto block) { return block != 0; });
  blocks_.assign(first, holding.table.end());
  undertaking.commit();
  return IdsView(blocks_);
}

Result<Allotted> BlockManager::take(std::int64_t count) {
  if (count > pool_.free()) return fail(Code::kExhausted);
  blocks_.clear();
  evicted_.clear();
  const Status done = transact(*this, [&] { return pool_.hand_out(count, blocks_, evicted_); });
  if (!done) return done.error();
  return Allotted{blocks_, evicted_};
}

Status BlockManager::touch(IdsView blocks) {
  Transaction undertaking(*this);
  pool_.pin(blocks);
  undertaking.commit();
  return {};
}

Status BlockManager::release(IdsView blocks) {
  return transact(*this, [&] { return pool_.release(blocks); });
}

Result<IdsView> BlockManager::evict(IdsView blocks) {
  evicted_.clear();
  const Status done = transact(*this, [&] { return pool_.evict(blocks, evicted_); });
  if (!done) return done.error();
  return IdsView(evicted_);
}

Result<bool> BlockManager::reset() {
  if (pool_.free() < pool_.count() - 1) return false;
  Transaction undertaking(*this);
  pool_.take_all_keys();
  undertaking.commit();
  requests_.note_reset();
  return true;
}

// ---- Figures ----

IdsView BlockManager::table(std::int64_t request) const {
  const std::int64_t row = requests_.find(request);
  return row >= 0 ? IdsView(holdings_[row].table) : IdsView();
}

std::int64_t BlockManager::cached_tokens(std::int64_t request) const {
  std::int64_t depth = 0;
  for (const std::int64_t block : table(request))
    if (const auto key = pool_[block].key) depth = std::max(depth, requests_.depth(*key));
  return depth * options_.block_size;
}

Status BlockManager::record(std::int64_t request, std::int64_t hits) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return no_request(request);
  requests_.record(row, hits);
  return {};
}

BlocksStatistics BlockManager::stats() {
  return requests_.stats();
}

std::optional<std::string> BlockManager::broken_invariant() const {
  return pool_.broken_invariant();
}

// ---- slots of requests: PX-25 to PX-31, PX-50 to PX-56 ----

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
  Ids& table = holdings_.change(row).table;
  Ids gone;
  for (std::int64_t i = std::min(floor_blocks(skipped(computed)), std::ssize(table)) - 1; i >= 0;
       --i) {
    std::int64_t& block = table[static_cast<std::size_t>(i)];
    if (block == 0) break;
    gone.push_back(std::exchange(block, 0));
  }
  return pool_.release(gone);
}

Result<Allotted> BlockManager::allocate(const Allocate& asked) {
  const std::int64_t row = requests_.find(asked.request);
  if (row < 0) return no_request(asked.request);
  const std::int64_t hit_tokens = asked.hit_tokens.value_or(0);
  const std::int64_t external = asked.external.value_or(0);
  if (asked.tokens == 0 && hit_tokens == 0 && external == 0)
    return misuse("tokens: 0, and no hits");
  if (const Status may = may_adopt(row, asked); !may) return may.error();
  const std::int64_t most = options_.max_model_len;
  const std::int64_t computed = requests_.progress(row).computed + hit_tokens + external;  // T
  const std::int64_t within = std::min(computed, most);
  const std::int64_t slots =
      std::min(within + asked.tokens + asked.lookahead.value_or(0), most);  // S
  blocks_.clear();
  evicted_.clear();

  const std::int64_t whole = std::min(
      ceil_blocks(std::min(std::ssize(requests_.text(row).tokens), most)), admission_cap());
  if (asked.full_sequence.value_or(false) && !enough(row, asked, within, whole, 0))
    return fail(Code::kExhausted);
  Transaction undertaking(*this);
  Status done = let_go(row, std::max<std::int64_t>(within - requests_.progress(row).in_flight, 0));
  if (!done) return done.error();
  if (!enough(row, asked, computed, ceil_blocks(slots), asked.reserved.value_or(0))) {
    undertaking.commit();
    return fail(Code::kExhausted);
  }
  done = adopt(row, asked, computed);
  if (done) done = extend(row, ceil_blocks(slots), blocks_);
  if (done && !asked.delay_caching.value_or(false))
    done = register_blocks(row, within + asked.tokens);
  if (!done) return done.error();
  undertaking.commit();
  return Allotted{blocks_, evicted_};
}

// What PX-28 refuses, and lists that do not fit the request (PX-47).
Status BlockManager::may_adopt(std::int64_t row, const Allocate& asked) const {
  const Holding& holding = holdings_[row];
  const Text& text = requests_.text(row);
  const IdsView hit_blocks = hits_of(asked);
  const std::int64_t hits = std::ssize(hit_blocks);
  if (const std::int64_t tokens = asked.hit_tokens.value_or(0);
      tokens != hits * options_.block_size)
    return misuse("hit_tokens: " + std::to_string(tokens));
  if (hits > 0 && !options_.enable_caching) return misuse("hit_blocks: no caching");
  if (hits > 0 && holding.registered) return misuse("hit_blocks: the request is running");
  if ((hits > 0 || asked.external.value_or(0) > 0) && !holding.registered && !holding.table.empty())
    return misuse("hit_blocks, external: the request has blocks");
  if (quirks_.has(Quirk::kStaleHitsAdopted)) return {};
  for (std::int64_t i = 0; i < hits; ++i) {
    const std::int64_t block = hit_blocks[static_cast<std::size_t>(i)];
    if (block == 0) continue;
    const auto key = pool_[block].key;
    if (!key || i >= std::ssize(text.keys) ||
        text.keys[static_cast<std::size_t>(i)] != key_of(*key))
      return misuse("hit_blocks: block " + std::to_string(block) + " does not carry the key");
  }
  return {};
}

// PX-26, for a table of so many blocks.
bool BlockManager::enough(std::int64_t row, const Allocate& asked, std::int64_t computed,
                          std::int64_t blocks, std::int64_t reserved) const {
  const Holding& holding = holdings_[row];
  const std::int64_t length = std::ssize(holding.table);
  const IdsView hit_blocks = hits_of(asked);
  const std::int64_t hits = std::ssize(hit_blocks);
  std::int64_t need = std::max<std::int64_t>(blocks - length, 0);
  if (!holding.registered) {
    const std::int64_t behind = floor_blocks(skipped(computed));
    need = std::max<std::int64_t>(blocks - std::max(behind, hits + length), 0);
    for (std::int64_t i = std::max<std::int64_t>(behind - length, 0); i < hits; ++i) {
      const std::int64_t block = hit_blocks[static_cast<std::size_t>(i)];
      if (block != 0 && pool_[block].refs == 0) ++need;
    }
  }
  const bool enters = requests_.progress(row).status != RequestStatus::kRunning &&
                      asked.others_scheduled.value_or(true);
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
Status BlockManager::adopt(std::int64_t row, const Allocate& asked, std::int64_t computed) {
  const IdsView hit_blocks = hits_of(asked);
  const bool loads = asked.external.value_or(0) > 0;
  if ((hit_blocks.empty() && !loads) || holdings_[row].registered) return {};
  const std::int64_t behind = floor_blocks(skipped(computed));
  if (behind > kMostUnits) return misuse("computed: too many blocks");
  Holding& holding = holdings_.change(row);
  holding.table.assign(static_cast<std::size_t>(behind), 0);
  const std::size_t left = std::min(static_cast<std::size_t>(behind), hit_blocks.size());
  const IdsView adopted = hit_blocks.subspan(left);
  pool_.pin(adopted);
  holding.table.insert(holding.table.end(), adopted.begin(), adopted.end());
  holding.registered = std::ssize(holding.table);
  if (!loads || computed <= skipped(computed)) return {};
  Ids loaded;
  return extend(row, ceil_blocks(computed), loaded);
}

// The table gets so many blocks, if it has fewer.
Status BlockManager::extend(std::int64_t row, std::int64_t blocks, Ids& handed_out) {
  const std::int64_t missing = blocks - std::ssize(holdings_[row].table);
  if (missing <= 0) return {};
  if (missing > pool_.free()) return fail(Code::kExhausted);
  if (Status done = pool_.hand_out(missing, handed_out, evicted_); !done) return done;
  Ids& table = holdings_.change(row).table;
  table.insert(table.end(), handed_out.begin(), handed_out.end());
  return {};
}

// ---- Registering ----

Status BlockManager::cache(std::int64_t request, std::int64_t tokens) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return no_request(request);
  return transact(*this, [&] { return register_blocks(row, tokens); });
}

// PX-30
Status BlockManager::register_blocks(std::int64_t row, std::int64_t tokens) {
  const Text& text = requests_.text(row);
  const std::int64_t first = holdings_[row].registered.value_or(0);
  const std::int64_t end =
      std::min(floor_blocks(std::min(tokens, std::ssize(text.tokens))), std::ssize(text.keys));
  if (end <= first) return {};
  if (end > std::ssize(holdings_[row].table)) return misuse("tokens: more than there are slots");
  holdings_.change(row).registered = end;
  const Ids& table = holdings_[row].table;
  Ids keyed;  // places in the table
  for (std::int64_t i = first; i < end; ++i) {
    const std::int64_t block = table[static_cast<std::size_t>(i)];
    if (block == 0 || pool_[block].key || !gets_key(text, requests_.progress(row), i)) continue;
    pool_.set_key(block, number_of(text.keys[static_cast<std::size_t>(i)]));
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
