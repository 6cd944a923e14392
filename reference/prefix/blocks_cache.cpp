#include "reference/prefix/blocks_cache.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace kvo::prefix {
namespace {

std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

Error no_request(std::int64_t request) {
  return fail(Code::kPrecondition, "request " + std::to_string(request) + " was never made");
}

}  // namespace

Result<std::unique_ptr<BlockCache>> BlockManager::make(const BlocksOptions& options,
                                                       QuirkSet<Quirk> quirks) {
  return std::make_unique<BlockManager>(options, quirks);
}

BlockManager::BlockManager(const BlocksOptions& options, QuirkSet<Quirk> quirks)
    : options_(options),
      quirks_(quirks),
      pool_(options.num_blocks, options.enable_caching, options.events, quirks) {}

void BlockManager::commit() noexcept {
  pool_.commit();
  texts_.commit();
  progress_.commit();
  holdings_.commit();
}

void BlockManager::roll_back() noexcept {
  pool_.roll_back();
  texts_.roll_back();
  progress_.roll_back();
  holdings_.roll_back();
}

std::int64_t BlockManager::floor_blocks(std::int64_t tokens) const {
  return floor_of(tokens, options_.block_size);
}
std::int64_t BlockManager::ceil_blocks(std::int64_t tokens) const {
  return floor_of(tokens + options_.block_size - 1, options_.block_size);
}

std::int64_t BlockManager::find(std::int64_t request) const {
  const auto found = rows_.find(request);
  return found != rows_.end() ? found->second : -1;
}

// PX-10 to PX-13: the keys that the tokens have and the list does not.
void BlockManager::add_keys(Text& text) {
  if (!options_.enable_caching) return;
  const std::int64_t behind = options_.hash_lookahead;
  while (floor_blocks(std::ssize(text.tokens) - behind) > std::ssize(text.keys)) {
    const std::int64_t block = std::ssize(text.keys);
    const std::int64_t parent =
        block > 0 ? static_cast<std::int64_t>(text.keys.back().low) : std::int64_t{-1};
    const auto begin = text.tokens.begin() + block * options_.block_size;
    Content content(parent, Tokens(begin, begin + options_.block_size + behind),
                    block == 0 ? text.salt : "", text.lora);
    depths_.resize(contents_.size());  // drops the depth of a content that was known
    depths_.push_back(block + 1);
    const auto number =
        contents_.try_emplace(std::move(content), std::ssize(contents_)).first->second;
    text.keys.push_back(key_of(number));
  }
}

Result<std::span<const Key>> BlockManager::request(std::int64_t request,
                                                   const BlocksRequest& what) {
  Undertaking undertaking(*this);
  Text text{.tokens = {what.tokens.begin(), what.tokens.end()},
            .prompt = std::ssize(what.tokens),
            .salt = std::string(what.salt),
            .lora = std::nullopt,
            .skip_reading = what.skip_reading,
            .keys = {}};
  if (what.lora) text.lora.emplace(*what.lora, what.lora_path);
  add_keys(text);
  keys_ = text.keys;
  if (const std::int64_t row = find(request); row >= 0) {
    texts_.change(row) = std::move(text);
    progress_.change(row) = {};
  } else {
    holdings_.add({});
    progress_.add({});
    rows_.emplace(request, texts_.add(std::move(text)));
  }
  undertaking.commit();
  return std::span<const Key>(keys_);
}

Result<std::span<const Key>> BlockManager::append(std::int64_t request, TokensView tokens) {
  const std::int64_t row = find(request);
  if (row < 0) return no_request(request);
  Undertaking undertaking(*this);
  Text& text = texts_.change(row);
  const std::ptrdiff_t before = std::ssize(text.keys);
  text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
  add_keys(text);
  keys_.assign(text.keys.begin() + before, text.keys.end());
  undertaking.commit();
  return std::span<const Key>(keys_);
}

Status BlockManager::set(std::int64_t request, const RequestChange& change) {
  const std::int64_t row = find(request);
  if (row < 0) return no_request(request);
  Undertaking undertaking(*this);
  Progress& progress = progress_.change(row);
  progress.computed = change.computed.value_or(progress.computed);
  progress.status = change.status.value_or(progress.status);
  progress.in_flight = change.in_flight.value_or(progress.in_flight);
  progress.preemptions = change.preemptions.value_or(progress.preemptions);
  if (change.boundary) progress.boundary = change.boundary;
  undertaking.commit();
  return {};
}

// ---- Lookup ----

Result<BlocksHit> BlockManager::match(std::int64_t request,
                                      std::optional<std::int64_t> max_length) {
  const std::int64_t row = find(request);
  if (row < 0) return no_request(request);
  const Text& text = texts_[row];
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
  const Numbers& holders = pool_.holders(static_cast<std::int64_t>(key.low));
  return holders.empty() ? std::nullopt : std::optional(holders.front());
}

// ---- Letting go, and the pool by hand ----

Status BlockManager::skip(std::int64_t request, std::int64_t computed) {
  const std::int64_t row = find(request);
  if (row < 0) return no_request(request);
  Undertaking undertaking(*this);
  if (Status done = let_go(row, computed); !done) return done;
  undertaking.commit();
  return {};
}

Status BlockManager::free(std::int64_t request) {
  const std::int64_t row = find(request);
  if (row < 0) return {};
  Undertaking undertaking(*this);
  const Holding holding = std::exchange(holdings_.change(row), {});
  const Numbers from_the_end(holding.table.rbegin(), holding.table.rend());
  if (Status done = pool_.release(from_the_end); !done) return done;
  undertaking.commit();
  return {};
}

Result<NumbersView> BlockManager::pop(std::int64_t request) {
  blocks_.clear();
  const std::int64_t row = find(request);
  if (row < 0) return NumbersView();
  Undertaking undertaking(*this);
  const Holding holding = std::exchange(holdings_.change(row), {});
  const auto first = std::ranges::find_if(holding.table, [](auto block) { return block != 0; });
  blocks_.assign(first, holding.table.end());
  undertaking.commit();
  return NumbersView(blocks_);
}

Result<Allotted> BlockManager::take(std::int64_t count) {
  if (count > pool_.free()) return fail(Code::kExhausted);
  blocks_.clear();
  evicted_.clear();
  Undertaking undertaking(*this);
  if (const Status done = pool_.hand_out(count, blocks_, evicted_); !done) return done.error();
  undertaking.commit();
  return Allotted{blocks_, evicted_};
}

Status BlockManager::touch(NumbersView blocks) {
  Undertaking undertaking(*this);
  for (const std::int64_t block : blocks) pool_.pin(block);
  undertaking.commit();
  return {};
}

Status BlockManager::release(NumbersView blocks) {
  Undertaking undertaking(*this);
  if (Status done = pool_.release(blocks); !done) return done;
  undertaking.commit();
  return {};
}

Result<NumbersView> BlockManager::evict(NumbersView blocks) {
  evicted_.clear();
  Undertaking undertaking(*this);
  const bool any = quirks_.has(Quirk::kEvictTakesAnyNumber);
  for (std::int64_t block : blocks) {
    if (any && block < 0) block += pool_.count();  // PX-47
    if (block < 0 || block >= pool_.count())
      return fail(any ? Code::kPrecondition : Code::kOutOfRange,
                  "blocks: " + std::to_string(block));
    if (pool_.take_key(block)) evicted_.push_back(block);
  }
  undertaking.commit();
  return NumbersView(evicted_);
}

Result<bool> BlockManager::reset() {
  if (pool_.free() < pool_.count() - 1) return false;
  Undertaking undertaking(*this);
  pool_.take_all_keys();
  undertaking.commit();
  statistics_.reset = true;
  return true;
}

// ---- Figures ----

NumbersView BlockManager::table(std::int64_t request) const {
  const std::int64_t row = find(request);
  return row >= 0 ? NumbersView(holdings_[row].table) : NumbersView();
}

std::int64_t BlockManager::cached_tokens(std::int64_t request) const {
  std::int64_t depth = 0;
  for (const std::int64_t block : table(request))
    if (const auto key = pool_[block].key)
      depth = std::max(depth, depths_[static_cast<std::size_t>(*key)]);
  return depth * options_.block_size;
}

Status BlockManager::record(std::int64_t request, std::int64_t hits) {
  const std::int64_t row = find(request);
  if (row < 0) return no_request(request);
  const Text& text = texts_[row];
  if (!options_.enable_caching || text.skip_reading) return {};
  const bool preempted = progress_[row].preemptions > 0;
  BlocksStatistics& sums = statistics_;
  (preempted ? sums.preempted_requests : sums.requests) += 1;
  (preempted ? sums.preempted_queries : sums.queries) += std::ssize(text.tokens);
  (preempted ? sums.preempted_hits : sums.hits) += hits;
  return {};
}

BlocksStatistics BlockManager::take_statistics() {
  return std::exchange(statistics_, {});
}

std::optional<std::string> BlockManager::broken_invariant() const {
  return pool_.broken_invariant();
}

}  // namespace kvo::prefix
