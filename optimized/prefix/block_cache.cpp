#include "optimized/prefix/block_cache.hpp"

#include <algorithm>
#include <cstring>

#include "optimized/memory/growth.hpp"

namespace kvo::optimized {

using prefix::Attention;
using prefix::BlocksHit;
using prefix::BlocksOptions;
using prefix::BlocksRequest;
using prefix::BlocksState;
using prefix::BlocksStatistics;
using prefix::EventKind;
using prefix::Key;
using prefix::Numbers;
using prefix::NumbersView;
using prefix::Quirk;
using prefix::RequestChange;
using prefix::Token;
using prefix::TokensView;

namespace {

Error never_made() {
  return fail(Code::kPrecondition, "request: it was never made");
}

void add_part(std::string& text, std::string_view part) {
  const std::uint64_t size = part.size();
  char bytes[sizeof size];
  std::memcpy(bytes, &size, sizeof size);
  text.append(bytes, sizeof bytes).append(part);
}

// What says which namespace a request is of: two texts are equal exactly if the namespaces are.
void write_root(std::string& text, const BlocksRequest& what) {
  text.clear();
  if (what.lora) {
    add_part(text, *what.lora);
    add_part(text, what.lora_path);
  }
  if (!what.salt.empty()) text.append("s").append(what.salt);
}

}  // namespace

Result<std::unique_ptr<prefix::BlockCache>> PrefixBlockCache::make(const BlocksOptions& options,
                                                                   QuirkSet<Quirk> quirks) {
  return std::make_unique<PrefixBlockCache>(options, quirks);
}

PrefixBlockCache::PrefixBlockCache(const BlocksOptions& options, QuirkSet<Quirk> quirks,
                                   unsigned hash_bits)
    : options_(options),
      quirks_(quirks),
      rules_(options),
      index_(static_cast<std::size_t>(options.block_size + options.hash_lookahead), hash_bits),
      queue_(options.num_blocks),
      carried_(static_cast<std::size_t>(options.num_blocks), kNone),
      neighbours_(carried_.size()) {}

PrefixBlockCache::Request* PrefixBlockCache::find(std::int64_t request) {
  const auto at = static_cast<std::size_t>(request);
  return at < requests_.size() ? requests_[at].get() : nullptr;
}

const PrefixBlockCache::Request* PrefixBlockCache::find(std::int64_t request) const {
  const auto at = static_cast<std::size_t>(request);
  return at < requests_.size() ? requests_[at].get() : nullptr;
}

std::int64_t PrefixBlockCache::whole_blocks(std::size_t tokens) const {
  if (!options_.enable_caching) return 0;
  const std::int64_t reached = static_cast<std::int64_t>(tokens) - options_.hash_lookahead;
  return std::max(rules_.whole(reached), std::int64_t{0});
}

// Hashes come first: they wait for each other, but not for the memory that they have fetched.
void PrefixBlockCache::add_keys(Request& request, std::vector<Id>& keys, const Token* tokens,
                                std::size_t whole) noexcept {
  const auto size = static_cast<std::size_t>(options_.block_size);
  const auto width = static_cast<std::size_t>(options_.block_size + options_.hash_lookahead);
  const std::size_t known = keys.size();
  hashes_.clear();
  for (std::size_t i = known; i < whole; ++i) {
    request.hash = hash_behind(request.hash, {tokens + i * size, width});
    index_.prefetch(request.hash);
    hashes_.push_back(request.hash);
  }
  for (std::size_t i = known; i < whole; ++i)
    keys.push_back(
        index_.use(i == 0 ? request.root : keys.back(), hashes_[i - known], tokens + i * size));
}

std::span<const Key> PrefixBlockCache::names(std::span<const Id> keys) {
  names_.clear();
  for (const Id key : keys) names_.push_back(index_[key].name);
  return names_;
}

Result<std::span<const Key>> PrefixBlockCache::request(std::int64_t number,
                                                       const BlocksRequest& what) {
  const auto at = static_cast<std::size_t>(number);
  if (at >= requests_.size()) {
    make_room(requests_, at + 1 - requests_.size());
    requests_.resize(at + 1);
  }
  std::unique_ptr<Request> fresh;
  if (!requests_[at]) fresh = std::make_unique<Request>();
  Request& request = fresh ? *fresh : *requests_[at];
  const auto whole = static_cast<std::size_t>(whole_blocks(what.tokens.size()));
  for (auto* list : {&fresh_, &request.keys}) {
    make_room(*list, whole - std::min(whole, list->size()));
  }
  hashes_.reserve(whole);
  names_.reserve(whole);
  fresh_.clear();
  make_room(request.tokens,
            what.tokens.size() - std::min(what.tokens.size(), request.tokens.size()));
  index_.reserve(whole);
  write_root(root_text_, what);
  const Id root = index_.use_root(root_text_);

  const Id left = request.root;
  request.root = root;
  request.hash = ContentIndex::root_hash(root_text_);
  add_keys(request, fresh_, what.tokens.data(), whole);
  std::swap(request.keys, fresh_);
  for (auto key = fresh_.rbegin(); key != fresh_.rend(); ++key) index_.leave(*key);
  if (left != kNone) index_.leave(left);
  request.tokens.assign(what.tokens.begin(), what.tokens.end());
  request.prompt = std::ssize(what.tokens);
  request.skip_reading = what.skip_reading;
  request.status = prefix::RequestStatus::kWaiting;
  request.computed = request.in_flight = request.preemptions = 0;
  request.boundary.reset();
  if (fresh) requests_[at] = std::move(fresh);
  return names(requests_[at]->keys);
}

Result<std::span<const Key>> PrefixBlockCache::append(std::int64_t number, TokensView tokens) {
  Request* const request = find(number);
  if (request == nullptr) return never_made();
  const std::size_t known = request->keys.size();
  const auto whole = static_cast<std::size_t>(whole_blocks(request->tokens.size() + tokens.size()));
  const std::size_t more = whole - std::min(whole, known);
  make_room(request->tokens, tokens.size());
  if (more > 0) {
    make_room(request->keys, more);
    hashes_.reserve(more);
    names_.reserve(more);
    index_.reserve(more);
  }
  request->tokens.insert(request->tokens.end(), tokens.begin(), tokens.end());
  add_keys(*request, request->keys, request->tokens.data(), whole);
  return names(std::span<const Id>(request->keys).subspan(known));
}

Status PrefixBlockCache::set(std::int64_t number, const RequestChange& change) {
  Request* const request = find(number);
  if (request == nullptr) return never_made();
  request->computed = change.computed.value_or(request->computed);
  request->status = change.status.value_or(request->status);
  request->in_flight = change.in_flight.value_or(request->in_flight);
  request->preemptions = change.preemptions.value_or(request->preemptions);
  if (change.boundary) request->boundary = change.boundary;
  return {};
}

// PX-23
void PrefixBlockCache::full_match(const Request& request, std::int64_t blocks) {
  const std::size_t most = std::min(request.keys.size(), static_cast<std::size_t>(blocks));
  shown_.resize(most);
  std::size_t found = 0;
  for (; found < most; ++found) {
    const Block holder = index_.first(request.keys[found]);
    if (holder == kNone) break;
    shown_[found] = holder;
  }
  shown_.resize(found);
}

// PX-52. The run is found from its end, so it is written where it will stand.
bool PrefixBlockCache::window_match(const Request& request, std::int64_t blocks) {
  const auto keys = std::ssize(request.keys);
  if (blocks > keys && quirks_.has(Quirk::kLooksBeyondKeys)) return false;
  blocks = std::min(blocks, keys);
  const std::int64_t wanted = rules_.run();
  shown_.assign(static_cast<std::size_t>(std::max(blocks, std::int64_t{0})), 0);
  std::int64_t run = 0;
  for (std::int64_t i = blocks - 1; i >= 0; --i) {
    const Block holder = index_.first(request.keys[static_cast<std::size_t>(i)]);
    if (holder == kNone) {
      run = 0;
      continue;
    }
    shown_[static_cast<std::size_t>(i)] = holder;
    if (++run < wanted) continue;
    shown_.resize(static_cast<std::size_t>(i + run));
    std::fill_n(shown_.begin(), i, 0);
    return true;
  }
  shown_.resize(static_cast<std::size_t>(run));
  return true;
}

bool PrefixBlockCache::chunk_match(const Request& request, std::int64_t max_length) {
  const std::int64_t blocks = rules_.whole(max_length);
  const std::int64_t skipped = max_length <= 0 ? 0 : rules_.skipped_blocks(max_length);
  shown_.assign(static_cast<std::size_t>(skipped), 0);
  const auto keys = std::ssize(request.keys);
  for (std::int64_t i = skipped; i < blocks; ++i) {
    if (i >= keys) return !quirks_.has(Quirk::kLooksBeyondKeys);
    const Block holder = index_.first(request.keys[static_cast<std::size_t>(i)]);
    if (holder == kNone) break;
    shown_.push_back(holder);
  }
  return true;
}

Result<BlocksHit> PrefixBlockCache::match(std::int64_t number,
                                          std::optional<std::int64_t> max_length) {
  const Request* const request = find(number);
  if (request == nullptr) return never_made();
  shown_.clear();
  if (!options_.enable_caching || request->skip_reading) return BlocksHit{};
  const std::int64_t most = max_length.value_or(std::ssize(request->tokens) - 1);
  const std::int64_t blocks = rules_.whole(most);
  bool defined = true;
  switch (options_.attention) {
    case Attention::kFull:
      if (most < 0 && quirks_.has(Quirk::kNoPromptAborts))
        return fail(Code::kPrecondition, "max_length: it is below 0");
      full_match(*request, std::max(blocks, std::int64_t{0}));
      break;
    case Attention::kSlidingWindow:
      defined = window_match(*request, blocks);
      break;
    case Attention::kChunkedLocal:
      if (options_.eagle) return fail(Code::kPrecondition, "eagle: not with chunks");
      if (rules_.skipped_blocks(std::max(most, std::int64_t{0})) > prefix::kMostUnits)
        return fail(Code::kPrecondition, "max_length: too many blocks");
      defined = chunk_match(*request, most);
      break;
  }
  if (!defined) return fail(Code::kPrecondition, "max_length: a block has no key yet");
  if (options_.eagle && !shown_.empty()) shown_.pop_back();  // PX-22
  return BlocksHit{shown_, std::ssize(shown_) * options_.block_size};
}

NumbersView PrefixBlockCache::table(std::int64_t number) const {
  const Request* const request = find(number);
  return request == nullptr ? NumbersView() : NumbersView(request->table);
}

std::int64_t PrefixBlockCache::cached_tokens(std::int64_t number) const {
  std::int64_t most = 0;
  for (const std::int64_t block : table(number)) {
    const Id content = carried_[static_cast<std::size_t>(block)];
    if (content != kNone) most = std::max(most, std::int64_t{index_[content].depth});
  }
  return most * options_.block_size;
}

Status PrefixBlockCache::record(std::int64_t number, std::int64_t hits) {
  const Request* const request = find(number);
  if (request == nullptr) return never_made();
  if (!options_.enable_caching || request->skip_reading) return {};
  BlocksStatistics& sums = statistics_;
  const bool again = request->preemptions > 0;
  ++(again ? sums.preempted_requests : sums.requests);
  (again ? sums.preempted_queries : sums.queries) += std::ssize(request->tokens);
  (again ? sums.preempted_hits : sums.hits) += hits;
  return {};
}

BlocksStatistics PrefixBlockCache::take_statistics() {
  return std::exchange(statistics_, {});
}

BlocksState PrefixBlockCache::state() const {
  BlocksState shown;
  for (Block block = queue_.front(); block != 0; block = queue_.behind(block))
    shown.queue.push_back(block);
  for (Block block = 0; block < carried_.size(); ++block) {
    shown.refs.push_back(queue_.users(block));
    const Id content = carried_[block];
    const auto [earlier, later] = neighbours_[block];
    if (content == kNone) {
      shown.keys.emplace_back();
      continue;
    }
    shown.keys.emplace_back(index_[content].name);
    if (earlier != kNone) continue;
    prefix::Holders& holders = shown.cached.emplace_back();
    holders.key = index_[content].name;
    for (Block next = block; next != kNone; next = neighbours_[next].later)
      holders.blocks.push_back(next);
  }
  return shown;
}

std::optional<std::string> PrefixBlockCache::broken_invariant() const {
  std::int64_t queued = 0;
  for (Block block = queue_.front(); block != 0; block = queue_.behind(block)) {
    if (queue_.users(block) > 0) return "a block in the queue is in use";
    if (++queued > queue_.free()) return "the queue is longer than it is said to be";
  }
  if (queued != queue_.free()) return "the queue is shorter than it is said to be";
  for (Block block = 1; block < carried_.size(); ++block) {
    if (queue_.users(block) <= 0) --queued;
    const Id content = carried_[block];
    const auto [earlier, later] = neighbours_[block];
    if (content == kNone) continue;
    const ContentIndex::Content& held = index_[content];
    if (held.users == 0) return "a block carries a content that was forgotten";
    if ((earlier == kNone) != (index_.first(content) == block))
      return "the first holder is another";
    if ((later == kNone) != (held.last == block)) return "the last holder is another";
  }
  if (queued != 0) return "a free block is not in the queue";
  return std::nullopt;
}

}  // namespace kvo::optimized
