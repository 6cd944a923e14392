#include <algorithm>
#include <string>
#include <utility>

#include "properties/contract_parts.hpp"
#include "properties/prefix/blocks_script.hpp"

namespace kvo::prefix {
namespace {

bool has_null(const Numbers& blocks) {
  return std::ranges::find(blocks, 0) != blocks.end();
}

BlocksConfig draw_blocks_config(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool is_large = terms.scale == Scale::kLarge;
  BlocksConfig config;
  config.block_size = is_large ? draw.size(1, 65) : draw.between(1, 4);
  const std::int64_t size = config.block_size;
  config.num_blocks = is_large ? draw.edge(64, 4'097) : draw.between(3, 20);
  if (draw.percent(2)) config.num_blocks = draw.between(1, 2);
  if (is_large && draw.percent(6)) config.num_blocks = kTwoBytes + draw.between(2, 40);
  config.max_model_len = is_large ? draw.edge(64, 2'049) : draw.between(4, 48);
  const std::uint64_t attention = draw.below(10);
  if (attention >= 5 && attention < 8) {
    config.attention = Attention::kSlidingWindow;
    config.window = draw.between(1, 4 * size + 2);
    if (draw.percent(40)) config.retention = Nullable<std::int64_t>(size * draw.between(0, 4));
  } else if (attention >= 8) {
    config.attention = Attention::kChunkedLocal;
    config.chunk = draw.between(1, 4 * size + 1);
  }
  config.enable_caching = !draw.percent(4);
  if (draw.percent(40)) config.max_in_flight = draw.between(1, config.max_model_len);
  config.eagle = attention < 8 && draw.percent(18);
  if (attention >= 8 && terms.profile == Profile::kOriginal) config.eagle = draw.percent(2);
  if (draw.percent(12)) config.hash_lookahead = draw.between(1, 3);
  if (draw.percent(30)) config.watermark = draw.one_of({0.01, 0.1, 0.25, 0.5});
  config.events = draw.percent(40);
  if (terms.scale == Scale::kLong) {
    // Nothing may pile up that an operation copies.
    config.events = false;
    config.max_model_len = draw.between(3, 6);
    config.num_blocks = draw.between(4, 9);
  }
  return config;
}

GeneratedCase make_blocks_case(const CaseTerms& terms) {
  BlocksConfig config = draw_blocks_config(terms);
  auto script = std::make_unique<BlocksScript>(terms, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(std::move(config))},
          .ops = std::move(script)};
}

}  // namespace

BlocksScript::BlocksScript(const CaseTerms& terms, const BlocksConfig& config)
    : ScriptGenerator(terms),
      config_(config),
      texts_(config.block_size),
      most_tokens_(is_large() ? config.max_model_len
                              : std::min(config.max_model_len, 5 * config.block_size + 6)),
      most_numbers_(is_large() ? draw().edge(4, 129) : draw().between(2, 6)),
      pins_(is_long() && draw().percent(30)) {}

std::optional<Op> BlocksScript::next() {
  if (requests_.empty() && !has_plan()) {
    // All but the last blocks of a pool that takes more than two bytes to number.
    if (config_.num_blocks > kTwoBytes) plan(Take{kTwoBytes - draw().between(0, 20)});
    return make();
  }
  if (is_long() && pins_ && !has_plan() && draw().percent(80)) return touch();
  return ScriptGenerator::next();
}

// Which request.
std::int64_t BlocksScript::pick() {
  auto at = requests_.begin();
  std::advance(at, draw().below(requests_.size()));
  return at->first;
}
std::int64_t BlocksScript::pick_running() {
  const std::int64_t drawn = pick();
  for (auto at = requests_.lower_bound(drawn); at != requests_.end(); ++at)
    if (at->second.has_table) return at->first;
  return drawn;
}
std::optional<std::int64_t> BlocksScript::unused_number() {
  if (std::ssize(requests_) < most_numbers_) return next_number_++;
  const std::int64_t drawn = pick();
  if (!requests_[drawn].has_table || draw().percent(1)) return drawn;
  return std::nullopt;
}

// Steps.
Op BlocksScript::make(std::int64_t request, Tokens tokens) {
  MakeRequest what{.request = request, .tokens = std::move(tokens)};
  if (draw().percent(8)) what.salt = draw().one_of<std::string>({"", "s"});
  if (draw().percent(6)) what.lora = draw().one_of<std::string>({"", "l"});
  if (what.lora && draw().percent(30)) what.lora_path = "/l";
  if (draw().percent(4)) what.skip_reading = true;
  return Op::of(std::move(what));
}
Op BlocksScript::make() {
  const auto number = unused_number();
  return number ? make(*number, texts_.next(draw(), most_tokens_)) : finish();
}
Op BlocksScript::advance() {
  const std::int64_t request = pick();
  const Request& known = requests_[request];
  if (!known.has_table) return admit(request);
  const std::int64_t left = std::ssize(known.tokens) - known.computed;
  if (left <= 0) return decode(request);
  return with_flags({.request = request, .tokens = draw().between(1, left)});
}
Op BlocksScript::admit(std::int64_t request) {
  if (requests_[request].computed != 0) return Op::of(SetRequest{request, 0});
  admitted_ = request;
  return Op::of(MatchBlocks{request});
}
Op BlocksScript::decode(std::int64_t request) {
  const std::int64_t room = config_.max_model_len - std::ssize(requests_[request].tokens);
  if (room <= 0) return Op::of(FreeRequest{request});
  const std::int64_t more = std::min(room, draw().percent(80) ? 1 : draw().between(2, 5));
  plan(with_flags({.request = request, .tokens = more}));
  return Op::of(Append{request, texts_.some(draw(), more)});
}
Op BlocksScript::with_flags(Allocate allotment) {
  const std::int64_t size = config_.block_size;
  if (draw().percent(15)) allotment.lookahead = draw().between(0, 2 * size);
  if (draw().percent(8)) allotment.delay_caching = true;
  if (draw().percent(10)) allotment.full_sequence = true;
  if (draw().percent(6)) allotment.reserved = draw().between(0, 3);
  if (draw().percent(8)) allotment.others_scheduled = draw().percent(30);
  return Op::of(std::move(allotment));
}
Op BlocksScript::finish() {
  const std::int64_t request = pick_running();
  if (draw().percent(30)) plan(ShowBlocks{});
  return Op::of(FreeRequest{request});
}
Op BlocksScript::preempt() {
  const std::int64_t request = pick_running();
  plan(SetRequest{.request = request,
                  .computed = 0,
                  .status = RequestStatus::kPreempted,
                  .preemptions = requests_[request].preemptions + 1});
  return Op::of(FreeRequest{request});
}
Op BlocksScript::append() {
  const std::int64_t request = pick();
  const std::int64_t room = config_.max_model_len - std::ssize(requests_[request].tokens);
  return Op::of(Append{request, texts_.some(draw(), std::min(room, draw().between(0, 3)))});
}
Op BlocksScript::set() {
  const std::int64_t request = pick();
  const Request& known = requests_[request];
  SetRequest change{.request = request};
  const auto tokens = std::ssize(known.tokens);
  if (draw().percent(30)) change.computed = draw().between(0, tokens);
  if (draw().percent(30)) change.in_flight = draw().between(0, known.computed);
  if (draw().percent(40)) change.boundary = draw().between(0, tokens + config_.block_size);
  if (draw().percent(30))
    change.status = draw().one_of(
        {RequestStatus::kWaiting, RequestStatus::kRunning, RequestStatus::kPreempted});
  if (draw().percent(20)) change.preemptions = draw().between(0, 2);
  return Op::of(std::move(change));
}
Op BlocksScript::match() {
  MatchBlocks what{.request = pick()};
  if (draw().percent(40))
    what.max_length = draw().between(-1, std::ssize(requests_[what.request].tokens) + 2);
  return Op::of(std::move(what));
}
Op BlocksScript::allocate() {
  const std::int64_t request = pick();
  const Request& known = requests_[request];
  Allocate what{.request = request};
  std::int64_t room = config_.max_model_len - known.computed;
  if (known.computed == 0 && draw().percent(25) && room >= known.hit_length) {
    what.hit_blocks = known.hits;
    what.hit_tokens = known.hit_length;
    room -= known.hit_length;
  }
  if (!config_.enable_caching && draw().percent(5)) {
    what.hit_blocks = Numbers{std::min<std::int64_t>(1, config_.num_blocks - 1)};
    what.hit_tokens = config_.block_size;
  }
  if (known.computed == 0 && draw().percent(20)) {
    what.external = std::min(std::max<std::int64_t>(room, 0), draw().between(0, 9));
    room -= *what.external;
  }
  what.tokens = std::min(std::max<std::int64_t>(room, 0), draw().between(0, 9));
  return with_flags(std::move(what));
}
Op BlocksScript::cache() {
  cached_next_ = pick_running();
  return Op::of(ShowTable{*cached_next_});
}
Op BlocksScript::skip() {
  const std::int64_t request = pick_running();
  return Op::of(Skip{request, draw().between(0, requests_[request].computed)});
}
Op BlocksScript::pop() {
  return Op::of(Pop{pick_running()});
}
Op BlocksScript::take() {
  if (dry_ && !held_.empty() && (is_long() || draw().percent(50))) return release();
  return Op::of(Take{draw().percent(8) ? free_ + draw().between(0, 1) : draw().between(0, 4)});
}
Op BlocksScript::touch() {
  if (seen_.empty()) return Op::of(Take{1});
  // In a long life the same block is pinned again and again.
  if (is_long()) return Op::of(TouchBlocks{{seen_.front()}});
  Numbers blocks;
  for (std::int64_t more = draw().between(1, 3); more > 0; --more)
    blocks.push_back(draw().percent(5) ? 0 : seen_[draw().below(seen_.size())]);
  return Op::of(TouchBlocks{std::move(blocks)});
}
Op BlocksScript::release() {
  // In any order, but none twice in a list: no rule says which place would count.
  Numbers blocks;
  const std::size_t start = held_.empty() ? 0 : draw().below(held_.size());
  const std::int64_t most = draw().percent(20) ? std::ssize(held_) : draw().between(1, 4);
  for (std::size_t i = 0; i < held_.size() && std::ssize(blocks) < most; ++i)
    blocks.push_back(held_[(start + i) % held_.size()]);
  if (draw().percent(50)) std::ranges::reverse(blocks);
  Numbers once;
  for (const std::int64_t block : blocks)
    if (std::ssize(once) > kOneByte || std::ranges::find(once, block) == once.end())
      once.push_back(block);
  if (std::ssize(once) > kOneByte) once.resize(kOneByte);
  if (draw().percent(4)) once.push_back(0);
  return Op::of(Release{std::move(once)});
}
Op BlocksScript::evict() {
  Numbers blocks;
  for (std::int64_t more = draw().between(0, 3); more > 0; --more) {
    const std::int64_t last = config_.num_blocks - 1;
    blocks.push_back(draw().percent(6)                     ? draw().between(-last - 2, last + 1)
                     : draw().percent(30) || seen_.empty() ? draw().between(0, last)
                                                           : seen_[draw().below(seen_.size())]);
  }
  return Op::of(EvictBlocks{std::move(blocks)});
}
Op BlocksScript::look_up() {
  return Op::of(LookUp{draw().between(0, keys_)});
}

// Between a lookup and its allocate comes what the scheduler must not do (PX-47).
void BlocksScript::disturb() {
  const auto hits = requests_[*admitted_].hits;
  if (draw().percent(50)) plan(Take{draw().between(0, free_)});
  if (draw().percent(50) && !hits.empty()) plan(EvictBlocks{{hits.back()}});
  if (draw().percent(50)) plan(ShowBlocks{});
}

Allocate BlocksScript::admission(std::int64_t request) {
  const Request& known = requests_[request];
  const std::int64_t left = std::ssize(known.tokens) - known.hit_length;
  Allocate what{.request = request,
                .tokens = draw().percent(60) ? left : draw().between(1, left),
                .hit_blocks = known.hits,
                .hit_tokens = known.hit_length};
  if (known.hits.empty() && draw().percent(50)) {
    what.hit_blocks.reset();
    what.hit_tokens.reset();
  }
  if (what.tokens < left && draw().percent(30))
    what.external = draw().between(0, left - what.tokens);
  return what;
}

void BlocksScript::remember(const Numbers& blocks) {
  constexpr std::size_t kMost = 32;
  for (const std::int64_t block : blocks) {
    if (block == 0) continue;
    if (seen_.size() < kMost)
      seen_.push_back(block);
    else if (!is_long())
      seen_[draw().below(kMost)] = block;
    if (block > kTwoBytes) reach(Seen::kBlockBeyondTwoBytes);
    if (std::ssize(blocks) > kThousand) break;
  }
}

// What became of an operation.
void BlocksScript::saw(const MakeRequest& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  if (seen.error) return;
  Request& known = requests_[op.request];
  known = {.tokens = op.tokens, .has_table = known.has_table};
  for (const std::int64_t key : seen.as<KeysOnly>().keys) keys_ = std::max(keys_, key + 1);
  texts_.keep(op.tokens);
  if (!op.salt.value_or("").empty()) reach(Seen::kSaltedRequest);
  if (op.lora) reach(Seen::kRequestOfAnAdapter);
  if (!config_.enable_caching) reach(Seen::kCachingOff);
  if (config_.hash_lookahead > 0 && std::ssize(seen.as<KeysOnly>().keys) > 1)
    reach(Seen::kKeysLookAhead);
  if (config_.block_size >= 64) reach(Seen::kBlockOf64Tokens);
  if (config_.num_blocks > kThousand) reach(Seen::kPoolBeyond1024Blocks);
  if (config_.num_blocks == 1) reach(Seen::kPoolOfOneBlock);
  if (std::ssize(op.tokens) >= kThousand) reach(Seen::kRequestOf1024Tokens);
  if (requests_.size() > 64) reach(Seen::kRequestsBeyond64);
}
void BlocksScript::saw(const Append& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  if (seen.error) return;
  Tokens& tokens = requests_[op.request].tokens;
  tokens.insert(tokens.end(), op.tokens.begin(), op.tokens.end());
  for (const std::int64_t key : seen.as<KeysOnly>().keys) keys_ = std::max(keys_, key + 1);
}
void BlocksScript::saw(const SetRequest& op, const Observation& seen) {
  spend(kCost);
  if (seen.error) return;
  Request& known = requests_[op.request];
  known.computed = op.computed.value_or(known.computed);
  known.preemptions = op.preemptions.value_or(known.preemptions);
}
void BlocksScript::saw(const MatchBlocks& op, const Observation& seen) {
  const bool is_admitted = admitted_ == op.request;
  Request& known = requests_[op.request];
  if (seen.error) {
    admitted_.reset();
    const std::int64_t length = op.max_length.value_or(std::ssize(known.tokens) - 1);
    reach(length < 0 ? Seen::kLookupOfAnEmptyPrompt : Seen::kLookupBeyondTheKeys);
    return;
  }
  const auto& hit = seen.as<MatchBlocks::Returns>();
  pay(std::ssize(known.tokens));
  known.hits = hit.blocks;
  known.hit_length = hit.length;
  if (hit.length > 0) {
    if (!has_null(hit.blocks)) reach(Seen::kPrefixHit);
    if (has_null(hit.blocks)) reach(Seen::kHitOfNullBlocks);
    const bool only_nulls = std::ranges::count(hit.blocks, 0) == std::ssize(hit.blocks);
    if (only_nulls && config_.chunk) reach(Seen::kChunkHitOnNothing);
    if (known.preemptions > 0) reach(Seen::kResumedWithAHit);
    if (config_.eagle) reach(Seen::kDraftHeadsHit);
    if (hit.length == std::ssize(known.tokens) - config_.block_size)
      reach(Seen::kHeldPromptLosesItsLastBlock);
    if (hit.blocks.size() >= 64) reach(Seen::kHitOf64Blocks);
  }
  if (!is_admitted) return;
  if (std::ssize(known.tokens) > known.hit_length) {
    if (draw().percent(8)) disturb();
    plan(with_flags(admission(op.request)));
  }
  admitted_.reset();
}
void BlocksScript::saw(const Allocate& op, const Observation& seen) {
  Request& known = requests_[op.request];
  pay(std::ssize(known.tokens));
  if (seen.failed_with(Code::kExhausted)) {
    reach(Seen::kExhausted);
    if (config_.attention != Attention::kFull && known.has_table && known.computed > 0)
      reach(Seen::kExhaustedUnderAWindow);
    if (op.full_sequence.value_or(false)) reach(Seen::kFullSequenceRefused);
    if (!follows_plan() && draw().percent(60)) plan_next(preempt());
    return;
  }
  if (seen.error) {
    if (known.has_table && op.hit_tokens.value_or(0) > 0) reach(Seen::kHitsForATrackedRequest);
    return;
  }
  const auto& got = seen.as<AllottedBlocks>();
  known.blocks = got.blocks;
  known.has_table = true;
  remember(got.blocks);
  if (!got.evicted.empty()) reach(Seen::kEvictedOnHandingOut);
  if (op.external.value_or(0) > 0) reach(Seen::kExternalTokens);
  if (op.delay_caching.value_or(false)) reach(Seen::kDelayedCaching);
  if (!follows_plan() && draw().percent(15)) return;
  const std::int64_t computed =
      known.computed + op.hit_tokens.value_or(0) + op.external.value_or(0) + op.tokens;
  plan(SetRequest{.request = op.request,
                  .computed = std::min(computed, std::ssize(known.tokens)),
                  .status = RequestStatus::kRunning});
}
void BlocksScript::saw(const ShowTable& op, const Observation& seen) {
  const bool is_cached = std::exchange(cached_next_, std::nullopt) == op.request;
  spend(kCost);
  if (seen.error) return;
  const Numbers& blocks = seen.as<BlocksOnly>().blocks;
  if (has_null(blocks)) reach(Seen::kNullBlocksInATable);
  if (blocks.size() >= 256) reach(Seen::kTableOf256Blocks);
  // Beyond the table's end there is nothing to register.
  if (is_cached)
    plan(CacheTokens{op.request, draw().between(0, std::ssize(blocks) * config_.block_size)});
}
void BlocksScript::saw(const FreeRequest& op, const Observation& /*seen*/) {
  pay(0);
  requests_[op.request].has_table = false;
}
void BlocksScript::saw(const Pop& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  requests_[op.request].has_table = false;
  for (const std::int64_t block : seen.as<BlocksOnly>().blocks)
    if (block != 0) held_.push_back(block);
  if (seen.as<BlocksOnly>().blocks.empty()) return;
  if (draw().percent(50)) plan(Release{seen.as<BlocksOnly>().blocks});
}
void BlocksScript::saw(const Take& op, const Observation& seen) {
  pay(op.count);
  dry_ = seen.error.has_value();
  if (seen.failed_with(Code::kExhausted)) reach(Seen::kTakeExhausted);
  if (seen.failed_with(Code::kPrecondition)) reach(Seen::kTakeOfAWrongCount);
  if (seen.error) return;
  taken_ = seen.as<AllottedBlocks>().blocks;
  held_.insert(held_.end(), taken_.begin(), taken_.end());
  remember(taken_);
}
void BlocksScript::saw(const TouchBlocks& op, const Observation& seen) {
  pay(0);
  if (seen.error || is_long()) return;
  for (const std::int64_t block : op.blocks) {
    if (block == 0) continue;
    if (const auto owed = owed_.find(block); owed != owed_.end() && owed->second > 0)
      --owed->second;
    else
      held_.push_back(block);
  }
}
void BlocksScript::saw(const Release& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  dry_ = false;
  std::map<std::int64_t, std::int64_t> gone;
  for (const std::int64_t block : op.blocks)
    if (block != 0) ++gone[block];
  std::erase_if(held_, [&](std::int64_t block) {
    const auto at = gone.find(block);
    return at != gone.end() && at->second > 0 && at->second-- > 0;
  });
  for (const auto& [block, left] : gone)
    if (left > 0) owed_[block] += left;
  if (op.blocks.size() > 1) reach(Seen::kPoppedBlocksReleased);
}
void BlocksScript::saw(const EvictBlocks& op, const Observation& seen) {
  pay(0);
  if (seen.error) return reach(Seen::kEvictOutOfRange);
  if (std::ranges::any_of(op.blocks, [](std::int64_t block) { return block < 0; }))
    reach(Seen::kEvictedBySignedNumber);
}
void BlocksScript::saw(const ResetBlocks& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  reach(seen.as<ResetBlocks::Returns>().done ? Seen::kResetDone : Seen::kResetRefused);
}
void BlocksScript::saw(const TakeEvents& /*op*/, const Observation& seen) {
  spend(kCost);
  if (seen.error) return;
  for (const ShownEvent& event : seen.as<TakeEvents::Returns>().events) {
    if (event.kind == EventKind::kRemoved) reach(Seen::kRemovedEvent);
    if (event.kind == EventKind::kCleared) reach(Seen::kClearedEvent);
    if (event.kind != EventKind::kStored) continue;
    reach(event.keys && event.keys->empty() ? Seen::kStoredEventWithoutKeys : Seen::kStoredEvent);
  }
}
void BlocksScript::saw(const ShowBlocks& /*op*/, const Observation& seen) {
  pay(config_.num_blocks);
  if (seen.error) return;
  const auto& pool = seen.as<ShowBlocks::Returns>();
  free_ = pool.free;
  if (free_ == 0 && config_.num_blocks > 1) reach(Seen::kNothingFree);
  for (const ShownHolders& holders : pool.cached) {
    if (holders.blocks.size() > 1) reach(Seen::kContentHeldTwice);
    if (holders.blocks.size() > 2) reach(Seen::kContentHeldThreeTimes);
  }
  for (const std::int64_t users : pool.refs) {
    if (users > kOneByte) reach(Seen::kPinnedBeyondOneByte);
    if (users > kTwoBytes) reach(Seen::kPinnedBeyondTwoBytes);
  }
  if (std::ranges::any_of(pool.queue, [&](std::int64_t block) {
        return pool.keys[static_cast<std::size_t>(block)].has_value();
      }))
    reach(Seen::kFreeBlockIsHeld);
}

Generator blocks_generator() {
  Generator made = script_generator<BlocksLabel>(blocks_kind(), make_blocks_case, {}, {});
  add_states<BlocksSeen>(made,
                         {BlocksSeen::kEvictedBySignedNumber, BlocksSeen::kTakeOfAWrongCount,
                          BlocksSeen::kLookupOfAnEmptyPrompt, BlocksSeen::kLookupBeyondTheKeys,
                          BlocksSeen::kStoredEventWithoutKeys});
  return made;
}

// ---- planned orders of operations ----

// Parts.
Tokens BlocksScript::text_of(std::int64_t tokens) {
  return texts_.fresh(std::clamp<std::int64_t>(tokens, 1, config_.max_model_len));
}
std::optional<Op> BlocksScript::make_for_plan(std::int64_t& number, MakeRequest what) {
  number = unused_number().value_or(next_number_);
  next_number_ = std::max(next_number_, number + 1);
  if (requests_.contains(number) && requests_[number].has_table) return std::nullopt;
  what.request = number;
  what.tokens = text_;
  return Op::of(std::move(what));
}
Op BlocksScript::whole(std::int64_t request, bool adopt) {
  const Request& known = requests_[request];
  if (!adopt) return Op::of(Allocate{.request = request, .tokens = std::ssize(known.tokens)});
  return Op::of(Allocate{.request = request,
                         .tokens = std::ssize(known.tokens) - known.hit_length,
                         .hit_blocks = known.hits,
                         .hit_tokens = known.hit_length});
}
Op BlocksScript::more(std::int64_t request, std::int64_t tokens) {
  const std::int64_t room = config_.max_model_len - requests_[request].computed;
  return Op::of(Allocate{.request = request, .tokens = std::min(tokens, room)});
}
std::optional<Op> BlocksScript::evict_first_block(std::int64_t request) {
  const Numbers& blocks = requests_[request].blocks;
  if (blocks.empty()) return std::nullopt;
  return Op::of(EvictBlocks{{blocks.front()}});
}

// What a lookup found is handed out to others before it is adopted (PX-47).
std::optional<Op> BlocksScript::evicted_between_match_and_allocate(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return Op::of(FreeRequest{first_});
    case 3:
      return make_for_plan(second_);
    case 5:
      return Op::of(MatchBlocks{second_});
    case 6:
      return take_all(0);
    case 7:
      return release_taken();
    case 8:
      return whole(second_, true);
    default:
      return state();
  }
}

// Two blocks carry one key, and the first of them loses it (PX-31, PX-24).
std::optional<Op> BlocksScript::same_content_twice(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + draw().between(0, 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return make_for_plan(second_);
    case 3:
      return whole(second_, false);
    case 6:
      return Op::of(FreeRequest{first_});
    case 8:
      return evict_first_block(first_);
    case 4:
    case 10:
      return state();
    default:
      return Op::of(MatchBlocks{second_});
  }
}

std::optional<Op> BlocksScript::full_pool_of_pinned(std::size_t number) {
  switch (number) {
    case 1:
      return take_all(0);
    case 2:
      text_ = text_of(2 * config_.block_size);
      return make_for_plan(first_);
    case 3:
      return Op::of(MatchBlocks{first_});
    case 4:
    case 6:
      return whole(first_, true);
    case 5:
      return release_taken();
    default:
      return state();
  }
}

// A request grows over the end of its window, or chunk, a token at a time (PX-50, PX-51).
std::optional<Op> BlocksScript::around_the_window(std::size_t number) {
  if (config_.attention == Attention::kFull) return std::nullopt;
  const std::int64_t end = config_.window.value_or(config_.chunk.value_or(1));
  switch (number) {
    case 0:
      text_ = text_of(end + 2 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return more(first_, std::max<std::int64_t>(end - 1, 1));
    case 2:
    case 4:
    case 6:
    case 8:
      return Op::of(ShowTable{first_});
    case 10:
      return Op::of(Skip{first_, requests_[first_].computed});
    case 11:
      return state();
    default:
      return more(first_, number == 9 ? config_.block_size : 1);
  }
}

// What lay behind the window is gone though nothing was handed out (PX-26a).
std::optional<Op> BlocksScript::failed_allocate_under_a_window(std::size_t number) {
  if (config_.attention == Attention::kFull) return std::nullopt;
  const std::int64_t end = config_.window.value_or(config_.chunk.value_or(1));
  switch (number) {
    case 0:
      text_ = text_of(std::min(end + 2 * config_.block_size, config_.max_model_len - 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 3:
      return take_all(0);
    case 4:
      return Op::of(Allocate{.request = first_,
                             .tokens = config_.max_model_len > requests_[first_].computed ? 1 : 0,
                             .reserved = config_.num_blocks});
    case 5:
      return Op::of(ShowTable{first_});
    case 7:
      return release_taken();
    case 8:
      return more(first_, 1);
    default:
      return state();
  }
}

std::optional<Op> BlocksScript::preempted_and_resumed(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(3 * config_.block_size + draw().between(0, 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return Op::of(FreeRequest{first_});
    case 3:
      return Op::of(SetRequest{
          .request = first_, .computed = 0, .status = RequestStatus::kPreempted, .preemptions = 1});
    case 4:
      return Op::of(Take{draw().between(0, 2)});
    case 5:
      return Op::of(MatchBlocks{first_});
    case 6:
      return whole(first_, true);
    case 7:
      return Op::of(RecordHits{first_, requests_[first_].hit_length});
    default:
      return state();
  }
}

// What stays held of a sequence is a prefix (PX-7).
std::optional<Op> BlocksScript::tail_evicted_first(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(4 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return Op::of(FreeRequest{first_});
    case 3:
      return state();
    case 4:
      return take_all(draw().between(1, 3));
    case 5:
      return make_for_plan(second_);
    case 7:
      return release_taken();
    case 9:
      return Op::of(Take{1});
    default:
      return Op::of(MatchBlocks{second_});
  }
}

// A request reaches and leaves the end of a block (PX-2, PX-11, PX-30).
std::optional<Op> BlocksScript::around_a_block(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(std::min(draw().between(1, 3) * config_.block_size + draw().between(-2, 0),
                               config_.max_model_len - 2));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 3:
    case 6:
      if (std::ssize(requests_[first_].tokens) >= config_.max_model_len) return std::nullopt;
      return Op::of(Append{first_, texts_.fresh(1)});
    case 4:
    case 7:
      return more(first_, 1);
    case 8:
      return state();
    case 9:
      return Op::of(FreeRequest{first_});
    case 10:
      return Op::of(MatchBlocks{first_});
    default:
      return Op::of(CachedTokens{first_});
  }
}

std::optional<Op> BlocksScript::reset_while_in_use(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 3:
      return Op::of(FreeRequest{first_});
    case 2:
    case 4:
      return reset();
    case 5:
      return events();
    case 6:
      return stats();
    case 7:
      return Op::of(MatchBlocks{first_});
    default:
      return state();
  }
}

// A block is released once too often, met at its turn, and put right again (PX-38).
std::optional<Op> BlocksScript::released_twice(std::size_t number) {
  switch (number) {
    case 0:
      taken_.clear();
      return Op::of(Take{1});
    case 1:
      if (taken_.empty()) return std::nullopt;
      second_ = taken_.front();
      return release_taken();
    case 2:
      return Op::of(Release{{second_}});
    case 4:
      return take_all(0);
    case 5:
    case 7:
      return Op::of(TouchBlocks{{second_}});
    case 8:
      return Op::of(Release{{second_}});
    default:
      return state();
  }
}

// One of two blocks with a content goes (PX-40).
std::optional<Op> BlocksScript::removed_while_held(std::size_t number) {
  if (!config_.events) return std::nullopt;
  switch (number) {
    case 0:
      text_ = text_of(config_.block_size);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return make_for_plan(second_);
    case 3:
      return whole(second_, false);
    case 5:
      return evict_first_block(first_);
    case 7:
      return evict_first_block(second_);
    default:
      return events();
  }
}

// Equal tokens never meet where salt or adapter differ (PX-5, PX-12).
std::optional<Op> BlocksScript::same_tokens_in_namespaces(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + 1);
      return make_for_plan(first_, {.salt = draw().percent(50) ? "s" : ""});
    case 1:
      return whole(first_, false);
    case 2:
      return make_for_plan(second_, {.salt = "s"});
    case 4:
      return make_for_plan(second_, {.lora = "l"});
    case 6:
      return make_for_plan(second_, {.lora = "l", .lora_path = "/l"});
    case 8:
      return make_for_plan(second_, {.lora_path = "/l"});
    default:
      return Op::of(MatchBlocks{second_});
  }
}

// A block in use loses its key, and is not registered again (PX-36).
std::optional<Op> BlocksScript::evicted_in_use(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(std::min(2 * config_.block_size, config_.max_model_len - 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return evict_first_block(first_);
    case 3:
      return Op::of(CachedTokens{first_});
    case 4:
      if (std::ssize(requests_[first_].tokens) >= config_.max_model_len) return std::nullopt;
      return Op::of(Append{first_, texts_.fresh(1)});
    case 5:
      return more(first_, 1);
    case 6:
      return Op::of(FreeRequest{first_});
    default:
      return state();
  }
}

// A long prompt hits what was never stored (PX-57).
std::optional<Op> BlocksScript::chunks_on_nothing(std::size_t number) {
  if (!config_.chunk || config_.eagle) return std::nullopt;
  switch (number) {
    case 0:
      text_ = text_of(2 * *config_.chunk + config_.block_size + 1);
      return make_for_plan(first_);
    case 2:
      return whole(first_, true);
    case 3:
      return Op::of(ShowTable{first_});
    case 4:
      return Op::of(FreeRequest{first_});
    default:
      return Op::of(MatchBlocks{first_});
  }
}

// Only the last blocks of segments keep keys (PX-55).
std::optional<Op> BlocksScript::sparse_keys(std::size_t number) {
  if (!config_.retention || !config_.retention->has_value()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = text_of(draw().between(2, 6) * config_.block_size + draw().between(0, 1));
      return make_for_plan(first_);
    case 1:
      return Op::of(
          SetRequest{.request = first_, .boundary = draw().between(0, std::ssize(text_))});
    case 2:
      return whole(first_, false);
    case 3:
      return events();
    case 4:
      return Op::of(FreeRequest{first_});
    case 5:
      return make_for_plan(second_);
    case 6:
      return Op::of(MatchBlocks{second_});
    default:
      return state();
  }
}

}  // namespace kvo::prefix
