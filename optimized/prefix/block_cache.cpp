#include "optimized/prefix/block_cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "optimized/memory/growth.hpp"

namespace kvo::optimized {

using prefix::Allocate;
using prefix::Allotted;
using prefix::Attention;
using prefix::BlocksHit;
using prefix::BlocksOptions;
using prefix::BlocksState;
using prefix::BlocksStatistics;
using prefix::EventKind;
using prefix::Ids;
using prefix::IdsView;
using prefix::Key;
using prefix::MakeRequest;
using prefix::Quirk;
using prefix::Token;
using prefix::TokensView;

std::int64_t BlockRules::admitted(std::int64_t blocks) const {
  const std::int64_t size = options_.block_size;
  switch (options_.attention) {
    case prefix::Attention::kSlidingWindow:
      return std::min(blocks, ceil_of(std::min(options_.window - 1 + options_.max_in_flight,
                                               options_.max_model_len),
                                      size) +
                                  1);
    case prefix::Attention::kChunkedLocal:
      return std::min(
          blocks,
          ceil_of(std::min(options_.chunk + options_.max_in_flight, options_.max_model_len), size));
    default:
      return blocks;
  }
}

std::int64_t BlockRules::watermark() const {
  return static_cast<std::int64_t>(
      std::floor(options_.watermark * static_cast<double>(options_.num_blocks)));
}

// Whether block i is one of the run that a hit of so many tokens needs.
bool BlockRules::ends_at(std::int64_t i, std::int64_t token) const {
  const std::int64_t last = floor_of(token, options_.block_size) - 1 + (options_.eagle ? 1 : 0);
  return i <= last && i > last - run();
}

bool BlockRules::keeps_key(std::int64_t i, std::int64_t prompt,
                           const std::optional<std::int64_t>& boundary) const {
  if (keeps_all()) return true;
  const std::int64_t r = run();
  if (r == 0) return false;
  const std::int64_t size = options_.block_size;
  const std::int64_t e = options_.eagle ? 1 : 0;
  if (const std::int64_t period = *options_.retention / size; period > 0) {
    if (r >= period || (i >= e && (i - e) % period >= period - r)) return true;
  }
  if (boundary && (ends_at(i, *boundary) || (options_.eagle && ends_at(i, *boundary - size))))
    return true;
  if (!options_.eagle) return ends_at(i, prompt - 1);
  const auto before = [&](std::int64_t tokens) {
    return std::max(floor_of(tokens, size) * size - size, std::int64_t{0});
  };
  return ends_at(i, before(prompt - 1)) || ends_at(i, before(prompt));
}

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
void write_root(std::string& text, const MakeRequest& op) {
  text.clear();
  if (op.lora) {
    add_part(text, *op.lora);
    add_part(text, op.lora_path ? std::string_view(*op.lora_path) : std::string_view());
  }
  if (op.salt && !op.salt->empty()) text.append("s").append(*op.salt);
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

Result<std::span<const Key>> PrefixBlockCache::request(const MakeRequest& op) {
  const auto at = static_cast<std::size_t>(op.request);
  if (at >= requests_.size()) {
    make_room(requests_, at + 1 - requests_.size());
    requests_.resize(at + 1);
  }
  std::unique_ptr<Request> fresh;
  if (!requests_[at]) fresh = std::make_unique<Request>();
  Request& request = fresh ? *fresh : *requests_[at];
  const auto whole = static_cast<std::size_t>(whole_blocks(op.tokens.size()));
  for (auto* list : {&fresh_, &request.keys}) {
    make_room(*list, whole - std::min(whole, list->size()));
  }
  hashes_.reserve(whole);
  names_.reserve(whole);
  fresh_.clear();
  make_room(request.tokens, op.tokens.size() - std::min(op.tokens.size(), request.tokens.size()));
  index_.reserve(whole);
  write_root(root_text_, op);
  const Id root = index_.use_root(root_text_);

  const Id left = request.root;
  request.root = root;
  request.hash = ContentIndex::root_hash(root_text_);
  add_keys(request, fresh_, op.tokens.data(), whole);
  std::swap(request.keys, fresh_);
  for (auto key = fresh_.rbegin(); key != fresh_.rend(); ++key) index_.leave(*key);
  if (left != kNone) index_.leave(left);
  request.tokens.assign(op.tokens.begin(), op.tokens.end());
  request.prompt = std::ssize(op.tokens);
  request.skip_reading = op.skip_reading.value_or(false);
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

Status PrefixBlockCache::set(const prefix::SetRequest& op) {
  Request* const request = find(op.request);
  if (request == nullptr) return never_made();
  request->computed = op.computed.value_or(request->computed);
  request->status = op.status.value_or(request->status);
  request->in_flight = op.in_flight.value_or(request->in_flight);
  request->preemptions = op.preemptions.value_or(request->preemptions);
  if (op.boundary) request->boundary = op.boundary;
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

IdsView PrefixBlockCache::table(std::int64_t number) const {
  const Request* const request = find(number);
  return request == nullptr ? IdsView() : IdsView(request->table);
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

BlocksStatistics PrefixBlockCache::stats() {
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

// ---- blocks on their way: handed out, adopted, registered, released ----

namespace {

Error refused(const char* why) {
  return fail(Code::kPrecondition, why);
}
Error released_too_often() {
  return refused("blocks: one is released more often than its count");
}
// Without words: making it must not fail, for blocks may have been let go.
Error none_left() {
  return fail(Code::kExhausted);
}

}  // namespace

void PrefixBlockCache::tell_removed(Id content) noexcept {
  if (!options_.events) return;
  if (index_.first(content) != kNone && !quirks_.has(Quirk::kRemovedWhileHeld)) return;
  events_.begin(EventKind::kRemoved);
  events_.add_key(index_[content].name);
}

void PrefixBlockCache::set_key(Block block, Id content) noexcept {
  ContentIndex::Content& held = index_[content];
  carried_[block] = content;
  neighbours_[block] = {.earlier = held.last, .later = kNone};
  (held.last == kNone ? index_.first(content) : neighbours_[held.last].later) = block;
  held.last = block;
  ++held.users;
}

void PrefixBlockCache::drop_key(Block block) noexcept {
  const Id content = std::exchange(carried_[block], kNone);
  const auto [earlier, later] = neighbours_[block];
  (earlier == kNone ? index_.first(content) : neighbours_[earlier].later) = later;
  (later == kNone ? index_[content].last : neighbours_[later].earlier) = earlier;
  tell_removed(content);
  index_.leave(content);
}

void PrefixBlockCache::put_back(Block block, Block& front) noexcept {
  if (!queue_.unpin(block)) return;
  if (options_.enable_caching && carried_[block] != kNone) {
    queue_.put_last(block);
    return;
  }
  queue_.put_behind(block, front);
  front = block;
}

// Adds the front of the queue to a list that has room.
void PrefixBlockCache::hand_out(Ids& to) noexcept {
  const Block block = queue_.front();
  const Block next = queue_.behind(block);
  queue_.prefetch(next);
  if (carried_[block] != kNone) {
    drop_key(block);
    evicted_.push_back(block);
  }
  queue_.pin(block);
  to.push_back(block);
}

bool PrefixBlockCache::front_is_wrong(std::int64_t count) const {
  if (queue_.wrong() == 0) return false;
  Block block = queue_.front();
  for (; count > 0 && block != 0; --count, block = queue_.behind(block))
    if (queue_.users(block) != 0) return true;
  return false;
}

Status PrefixBlockCache::check_hits(const Request& request, const Allocate& what) const {
  const IdsView hits = hits_of(what);
  if (what.hit_tokens.value_or(0) != std::ssize(hits) * options_.block_size)
    return refused("hit_tokens: not those of hit_blocks");
  if (!hits.empty() && (!options_.enable_caching || request.tracked))
    return refused("hit_blocks: not without caching, and not when running");
  if ((!hits.empty() || what.external.value_or(0) > 0) && !request.tracked &&
      !request.table.empty())
    return refused("hit_blocks, external: the request has blocks");
  if (quirks_.has(Quirk::kStaleHitsAdopted)) return {};
  for (std::size_t i = 0; i < hits.size(); ++i)
    if (hits[i] != 0 && (i >= request.keys.size() ||
                         carried_[static_cast<std::size_t>(hits[i])] != request.keys[i]))
      return refused("hit_blocks: one does not carry the request's key");
  return {};
}

// PX-26
std::int64_t PrefixBlockCache::needed(const Request& request, const Allocate& what,
                                      std::int64_t wanted, std::int64_t computed) const {
  const auto held = std::ssize(request.table);
  if (request.tracked) return std::max(wanted - held, std::int64_t{0});
  const std::int64_t skipped = rules_.skipped_blocks(computed);
  const IdsView hits = hits_of(what);
  std::int64_t free_hits = 0;
  for (std::int64_t i = skipped; i < std::ssize(hits); ++i) {
    const auto block = static_cast<Block>(hits[static_cast<std::size_t>(i)]);
    if (block != 0 && queue_.users(block) == 0) ++free_hits;
  }
  const std::int64_t there = std::max(skipped, std::ssize(hits) + held);
  return std::max(wanted - there, std::int64_t{0}) + free_hits;
}

PrefixBlockCache::Plan PrefixBlockCache::plan(const Request& request, const Allocate& what) const {
  const std::int64_t most = options_.max_model_len;
  const std::int64_t external = what.external.value_or(0);
  const IdsView hits = hits_of(what);
  Plan made;
  made.computed = request.computed + what.hit_tokens.value_or(0) + external;
  made.within = std::min(made.computed, most);
  made.wanted =
      rules_.covering(std::min(made.within + what.tokens + what.lookahead.value_or(0), most));
  made.adopts = !request.tracked && (!hits.empty() || external > 0);
  made.adopted = std::ssize(request.table);
  if (made.adopts) {
    made.skipped = rules_.skipped_blocks(made.computed);
    made.adopted = std::max(made.skipped, std::ssize(hits));
  }
  made.loaded = made.adopted;
  if (made.adopts && external > 0 && made.computed > rules_.skipped(made.computed))
    made.loaded = std::max(made.adopted, rules_.covering(made.computed));
  made.length = std::max(made.loaded, made.wanted);
  if (!what.delay_caching.value_or(false))
    made.keyed =
        std::min(rules_.whole(std::min(made.within + what.tokens, std::ssize(request.tokens))),
                 std::ssize(request.keys));
  made.asked = needed(request, what, made.wanted, made.computed);
  return made;
}

bool PrefixBlockCache::fits_whole(const Request& request, const Allocate& what, const Plan& plan,
                                  std::int64_t spared) const {
  const std::int64_t whole = std::min(std::ssize(request.tokens), options_.max_model_len);
  const std::int64_t blocks = rules_.admitted(rules_.covering(whole));
  return needed(request, what, blocks, plan.within) + spared <= queue_.free();
}

// Only what the pool may be able to give decides on memory.
void PrefixBlockCache::make_room_for(Request& request, const Plan& plan) {
  const std::int64_t fresh = plan.length - plan.adopted;
  const std::int64_t held = std::ssize(request.table);
  evicted_.clear();
  if (plan.skipped > prefix::kMostUnits) return;
  const bool hopeless = fresh > queue_.free() + held;
  make_room(request.table,
            static_cast<std::size_t>((hopeless ? plan.adopted : plan.length) - held));
  if (hopeless) return;
  make_room(evicted_, static_cast<std::size_t>(fresh));
  if (plan.keyed <= plan.length)
    reserve_events(request, plan.keyed, static_cast<std::size_t>(fresh));
}

// Whether what is planned cannot be done, behind adoption.
std::optional<Code> PrefixBlockCache::refusal(const Request& request, const Plan& plan) const {
  if (plan.skipped > prefix::kMostUnits) return Code::kPrecondition;
  const std::int64_t loaded = plan.loaded - plan.adopted;
  if (loaded > queue_.free()) return Code::kExhausted;
  if (front_is_wrong(loaded)) return Code::kPrecondition;
  const std::int64_t fresh = plan.length - plan.adopted;
  if (fresh > queue_.free()) return Code::kExhausted;
  if (front_is_wrong(fresh)) return Code::kPrecondition;
  if (plan.keyed > request.registered && plan.keyed > plan.length) return Code::kPrecondition;
  return std::nullopt;
}

Result<Allotted> PrefixBlockCache::allocate(const Allocate& what) {
  Request* const request = find(what.request);
  if (request == nullptr) return refused("request: it was never made");
  if (what.tokens == 0 && what.hit_tokens.value_or(0) == 0 && what.external.value_or(0) == 0)
    return refused("tokens: there are none");
  if (const Status good = check_hits(*request, what); !good) return good.error();
  const Plan planned = plan(*request, what);
  const bool enters =
      request->status != prefix::RequestStatus::kRunning && what.others_scheduled.value_or(true);
  const std::int64_t spared = enters ? rules_.watermark() : 0;
  if (what.full_sequence.value_or(false) && !fits_whole(*request, what, planned, spared))
    return none_left();
  make_room_for(*request, planned);
  const std::int64_t behind = std::max(planned.within - request->in_flight, std::int64_t{0});
  if (const Status good = check_letting_go(*request, behind); !good) return good.error();
  // Where the pool may turn out to be unable to do what was planned, which no sound caller sees.
  std::optional<std::pair<FreeQueue, Ids>> saved;
  if (queue_.wrong() > 0 || releases_below_zero(*request, behind) ||
      planned.length - planned.adopted > planned.asked || planned.keyed > planned.length ||
      planned.skipped > prefix::kMostUnits)
    saved.emplace(queue_, request->table);
  const std::int64_t asked = let_go(*request, behind)
                                 ? needed(*request, what, planned.wanted, planned.computed)
                                 : planned.asked;
  if (asked + spared > queue_.free() - what.reserved.value_or(0)) return none_left();
  if (planned.skipped <= prefix::kMostUnits) adopt(*request, hits_of(what), planned.skipped);
  if (const auto code = saved ? refusal(*request, planned) : std::nullopt) {
    queue_ = std::move(saved->first);
    request->table.swap(saved->second);
    return fail(*code, "the pool cannot do what is asked");
  }
  return carry_out(*request, planned);
}

Allotted PrefixBlockCache::carry_out(Request& request, const Plan& planned) noexcept {
  if (planned.adopts) {
    request.tracked = true;
    request.registered = std::ssize(request.table);
  }
  while (std::ssize(request.table) < planned.loaded) hand_out(request.table);
  const auto held = request.table.size();
  while (std::ssize(request.table) < planned.length) hand_out(request.table);
  register_blocks(request, planned.keyed);
  return {IdsView(request.table).subspan(held), evicted_};
}

void PrefixBlockCache::adopt(Request& request, IdsView hits, std::int64_t skipped) noexcept {
  if (skipped > 0) request.table.insert(request.table.end(), static_cast<std::size_t>(skipped), 0);
  if (skipped >= std::ssize(hits)) return;
  const IdsView adopted = hits.subspan(static_cast<std::size_t>(skipped));
  queue_.pin_all(adopted);
  request.table.insert(request.table.end(), adopted.begin(), adopted.end());
}

// For so many blocks that lose a key, and those that get one.
void PrefixBlockCache::reserve_events(const Request& request, std::int64_t upto, std::size_t lost) {
  if (!options_.events) return;
  const auto got = static_cast<std::size_t>(std::max(upto - request.registered, std::int64_t{0}));
  events_.reserve(lost + got + 1, lost + got, got * static_cast<std::size_t>(options_.block_size));
}

// PX-30, PX-31
void PrefixBlockCache::register_blocks(Request& request, std::int64_t upto) noexcept {
  if (!options_.enable_caching || upto <= request.registered) return;
  request.tracked = true;
  const bool all = rules_.keeps_all();
  const auto size = static_cast<std::size_t>(options_.block_size);
  const auto key = [&](std::int64_t i) -> const Key& {
    return index_[request.keys[static_cast<std::size_t>(i)]].name;
  };
  const auto parent = [&](std::int64_t i) {
    return i == 0 ? std::nullopt : std::optional<Key>(key(i - 1));
  };
  const bool spans = options_.events && quirks_.has(Quirk::kStoredSpan);
  bool running = false;
  if (spans) events_.begin(EventKind::kStored, parent(request.registered));
  for (std::int64_t i = request.registered; i < upto; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto block = static_cast<Block>(request.table[at]);
    const bool keyed = block != 0 && carried_[block] == kNone &&
                       (all || rules_.keeps_key(i, request.prompt, request.boundary));
    if (keyed) set_key(block, request.keys[at]);
    if (options_.events && keyed) {
      if (!spans && !running) events_.begin(EventKind::kStored, parent(i));
      events_.add_key(key(i));
    }
    running = keyed;
    if (spans || (options_.events && keyed))
      events_.add_tokens({request.tokens.data() + at * size, size});
  }
  request.registered = upto;
}

Status PrefixBlockCache::cache(std::int64_t number, std::int64_t tokens) {
  Request* const request = find(number);
  if (request == nullptr) return refused("request: it was never made");
  const std::int64_t upto = std::min(rules_.whole(tokens), std::ssize(request->keys));
  if (upto > request->registered && upto > std::ssize(request->table))
    return refused("tokens: more than blocks are for");
  reserve_events(*request, upto, 0);
  register_blocks(*request, upto);
  return {};
}

// PX-51
bool PrefixBlockCache::let_go(Request& request, std::int64_t tokens) noexcept {
  Block front = 0;
  bool any = false;
  for (std::int64_t i = std::min(rules_.skipped_blocks(tokens), std::ssize(request.table)) - 1;
       i >= 0; --i) {
    std::int64_t& block = request.table[static_cast<std::size_t>(i)];
    if (block == 0) break;
    put_back(static_cast<Block>(std::exchange(block, 0)), front);
    any = true;
  }
  return any;
}

// Tables hold a user of each block, until somebody releases one by hand.
bool PrefixBlockCache::goes_below_zero(IdsView blocks) noexcept {
  if (!released_by_hand_) return false;
  // Counted down and up again: no list says how often a block was met.
  std::size_t met = 0;
  while (met < blocks.size() && queue_.count_down(static_cast<Block>(blocks[met]))) ++met;
  for (const std::int64_t block : blocks.first(met)) queue_.count_up(static_cast<Block>(block));
  return met < blocks.size();
}

bool PrefixBlockCache::releases_below_zero(const Request& request, std::int64_t tokens) noexcept {
  const std::int64_t end = std::min(rules_.skipped_blocks(tokens), std::ssize(request.table));
  if (end <= 0 || !released_by_hand_) return false;
  std::int64_t first = end;
  while (first > 0 && request.table[static_cast<std::size_t>(first - 1)] != 0) --first;
  return goes_below_zero(
      IdsView(request.table)
          .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first)));
}

Status PrefixBlockCache::check_release(IdsView blocks) {
  if (!quirks_.has(Quirk::kCountsBelowZero) && goes_below_zero(blocks)) return released_too_often();
  return {};
}

Status PrefixBlockCache::check_letting_go(const Request& request, std::int64_t tokens) {
  if (!quirks_.has(Quirk::kCountsBelowZero) && releases_below_zero(request, tokens))
    return released_too_often();
  return {};
}

Status PrefixBlockCache::skip(std::int64_t number, std::int64_t computed) {
  Request* const request = find(number);
  if (request == nullptr) return refused("request: it was never made");
  if (Status good = check_letting_go(*request, computed); !good) return good;
  let_go(*request, computed);
  return {};
}

Status PrefixBlockCache::free(std::int64_t number) {
  Request* const request = find(number);
  if (request == nullptr) return {};
  if (Status good = check_release(request->table); !good) return good;
  queue_.release(request->table.rbegin(), request->table.rend(),
                 [&](Block block) { return options_.enable_caching && carried_[block] != kNone; });
  request->table.clear();
  request->tracked = false;
  request->registered = 0;
  return {};
}

Result<IdsView> PrefixBlockCache::pop(std::int64_t number) {
  Request* const request = find(number);
  if (request == nullptr) return IdsView();
  std::swap(shown_, request->table);
  request->table.clear();
  request->tracked = false;
  request->registered = 0;
  const auto first = std::ranges::find_if(shown_, [](std::int64_t block) { return block != 0; });
  return IdsView(shown_).subspan(static_cast<std::size_t>(first - shown_.begin()));
}

Result<Allotted> PrefixBlockCache::take(std::int64_t count) {
  if (count > queue_.free()) return none_left();
  if (front_is_wrong(count)) return refused("a free block has a count other than 0");
  const auto room = static_cast<std::size_t>(count);
  shown_.clear();
  evicted_.clear();
  make_room(shown_, room);
  make_room(evicted_, room);
  if (options_.events) events_.reserve(room, room, 0);
  for (; count > 0; --count) hand_out(shown_);
  return Allotted{shown_, evicted_};
}

Status PrefixBlockCache::touch(IdsView blocks) {
  for (const std::int64_t block : blocks) queue_.pin(static_cast<Block>(block));
  return {};
}

Status PrefixBlockCache::release(IdsView blocks) {
  released_by_hand_ = true;
  if (Status good = check_release(blocks); !good) return good;
  Block front = 0;
  for (const std::int64_t block : blocks) put_back(static_cast<Block>(block), front);
  return {};
}

Result<IdsView> PrefixBlockCache::evict(IdsView blocks) {
  const bool any = quirks_.has(Quirk::kEvictTakesAnyNumber);
  const std::int64_t count = options_.num_blocks;
  for (const std::int64_t block : blocks)
    if (block >= count || block < (any ? -count : 0))
      return fail(any ? Code::kPrecondition : Code::kOutOfRange, "blocks: there is no such block");
  evicted_.clear();
  make_room(evicted_, blocks.size());
  if (options_.events) events_.reserve(blocks.size(), blocks.size(), 0);
  for (const std::int64_t number : blocks) {
    const std::int64_t block = number < 0 ? number + count : number;
    if (carried_[static_cast<std::size_t>(block)] == kNone) continue;
    drop_key(static_cast<Block>(block));
    evicted_.push_back(block);
  }
  return IdsView(evicted_);
}

Result<bool> PrefixBlockCache::reset() {
  if (queue_.free() < options_.num_blocks - 1) return false;
  if (options_.events) events_.reserve(1, 0, 0);
  for (Id& carried : carried_) {
    if (carried == kNone) continue;
    index_.first(carried) = index_[carried].last = kNone;
    index_.leave(std::exchange(carried, kNone));
  }
  if (options_.events) events_.begin(EventKind::kCleared);
  statistics_.reset = true;
  return true;
}

std::optional<std::int64_t> PrefixBlockCache::lookup(const Key& key) const {
  const Id content = index_.find(key);
  if (content == kNone || index_.first(content) == kNone) return std::nullopt;
  return index_.first(content);
}

}  // namespace kvo::optimized
