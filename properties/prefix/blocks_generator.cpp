// Random scripts for prefix.blocks: requests as a scheduler drives them, and the pool by hand
// beside it.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/prefix/texts.hpp"
#include "reference/prefix/blocks_cache.hpp"

namespace kvo::prefix {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    BlocksSeen, std::uint8_t, kPrefixHit, kHeldPromptLosesItsLastBlock, kHitOfNullBlocks,
    kNullBlocksInATable, kEvictedOnHandingOut, kExhausted, kExhaustedUnderAWindow, kNothingFree,
    kContentHeldTwice, kContentHeldThreeTimes, kResumedWithAHit, kFreeBlockIsHeld, kDraftHeadsHit,
    kKeysLookAhead, kSaltedRequest, kRequestOfAnAdapter, kCachingOff, kResetDone, kResetRefused,
    kStoredEvent, kStoredEventWithoutKeys, kRemovedEvent, kClearedEvent, kEvictedBySignedNumber,
    kEvictOutOfRange, kTakeExhausted, kPoppedBlocksReleased, kExternalTokens, kFullSequenceRefused,
    kDelayedCaching, kTakeOfAWrongCount, kLookupOfAnEmptyPrompt, kLookupBeyondTheKeys,
    kChunkHitOnNothing, kHitsForATrackedRequest, kPoolOfOneBlock, kPoolBeyond1024Blocks,
    kBlockBeyondTwoBytes, kRequestOf1024Tokens, kTableOf256Blocks, kBlockOf64Tokens, kHitOf64Blocks,
    kHitOf100000Blocks, kRequestsBeyond64, kPinnedBeyondOneByte, kPinnedBeyondTwoBytes)
// A life that is long.
BOOST_DEFINE_FIXED_ENUM_CLASS(BlocksLabel, std::uint8_t, kCountedBeyondTwoBytes)

namespace {

bool has_null(const Ids& blocks) {
  return std::ranges::find(blocks, 0) != blocks.end();
}

constexpr std::int64_t kCrowd = 100'000;  // blocks, each of its own content

BlocksConfig draw_blocks_config(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool is_large = terms.scale == Scale::kLarge;
  BlocksConfig config;
  config.block_size = is_large ? draw.size(1, 65) : draw.between(1, 4);
  config.num_blocks = is_large ? draw.edge(64, 4'097) : draw.between(3, 20);
  if (draw.percent(2)) config.num_blocks = draw.between(1, 2);
  if (is_large && draw.percent(6)) config.num_blocks = kTwoBytes + draw.between(2, 40);
  config.max_model_len = is_large ? draw.edge(64, 2'049) : draw.between(4, 48);
  const bool is_crowded = config.num_blocks > kTwoBytes && draw.percent(40);
  if (is_crowded) {
    config.block_size = 1;
    config.max_model_len = kCrowd + draw.between(1, 40);
    config.num_blocks = config.max_model_len + draw.between(2, 40);
  }
  const std::int64_t size = config.block_size;
  const std::uint64_t attention = is_crowded ? 0 : draw.below(10);
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

/// A case's script.
class BlocksScript final : public ScriptGenerator<BlocksScript, BlocksOps, BlocksLabel> {
  using S = BlocksScript;
  using Label = BlocksLabel;
  using Seen = BlocksSeen;

 public:
  BlocksScript(const CaseTerms& terms, const BlocksConfig& config)
      : ScriptGenerator(terms),
        config_(config),
        texts_(config.block_size, terms.seed),
        most_tokens_(is_large() ? std::min(config.max_model_len, 2 * kThousand)
                                : std::min(config.max_model_len, 5 * config.block_size + 6)),
        most_numbers_(is_large() ? draw().edge(4, 129) : draw().between(2, 6)),
        pins_(is_long() && draw().percent(50)) {}

  std::optional<Op> choose() override {
    constexpr std::int64_t kOfCrowd = 8;  // to show so many blocks costs more than a cell each
    const std::int64_t times = config_.max_model_len > kCrowd ? kOfCrowd : 1;
    spend(static_cast<std::uint64_t>(kCost + config_.num_blocks * times));
    if (next_number_ == 0 && !has_plan()) {
      if (config_.max_model_len > kCrowd) return make_crowd();
      // All but the last blocks of a pool that takes more than two bytes to number.
      if (config_.num_blocks > kTwoBytes) plan(Take{kTwoBytes - draw().between(0, 20)});
      return make(next_number_++, texts_.next(draw(), most_tokens_));
    }
    if (is_long() && pins_ && !has_plan() && draw().percent(97)) return touch();
    return ScriptGenerator::choose();
  }

  // Steps.
  Op advance() {
    const std::int64_t request = pick();
    if (!has_table(request)) return admit(request);
    const std::int64_t left = length(request) - computed(request);
    if (left <= 0) return decode(request);
    return with_flags({.request = request, .tokens = draw().between(1, left)});
  }
  Op make() {
    const auto number = unused_number();
    return number ? make(*number, texts_.next(draw(), most_tokens_)) : finish();
  }
  Op finish() {
    const std::int64_t request = pick_running();
    if (draw().percent(30)) plan(ShowBlocks{});
    return Op::of(FreeRequest{request});
  }
  Op preempt() {
    const std::int64_t request = pick_running();
    plan(SetRequest{.request = request,
                    .computed = 0,
                    .status = RequestStatus::kPreempted,
                    .preemptions = manager().progress(request).preemptions + 1});
    return Op::of(FreeRequest{request});
  }
  Op append() {
    const std::int64_t request = pick();
    const std::int64_t room = config_.max_model_len - length(request);
    return Op::of(Append{request, texts_.some(draw(), std::min(room, draw().between(0, 3)))});
  }
  Op set() {
    const std::int64_t request = pick();
    SetRequest change{.request = request};
    const std::int64_t tokens = length(request);
    if (draw().percent(30)) change.computed = draw().between(0, tokens);
    if (draw().percent(30)) change.in_flight = draw().between(0, computed(request));
    if (draw().percent(40)) change.boundary = draw().between(0, tokens + config_.block_size);
    if (draw().percent(30))
      change.status = draw().one_of(
          {RequestStatus::kWaiting, RequestStatus::kRunning, RequestStatus::kPreempted});
    if (draw().percent(20)) change.preemptions = draw().between(0, 2);
    return Op::of(change);
  }
  Op match() {
    MatchBlocks what{.request = pick()};
    if (draw().percent(40)) what.max_length = draw().between(-1, length(what.request) + 2);
    return Op::of(what);
  }
  Op allocate() {
    const std::int64_t request = pick();
    const bool is_new = computed(request) == 0;
    Allocate what{.request = request};
    std::int64_t room = config_.max_model_len - computed(request);
    if (const auto& hit = hits_[request]; is_new && draw().percent(25) && room >= hit.length) {
      what.hit_blocks = hit.blocks;
      what.hit_tokens = hit.length;
      room -= hit.length;
    }
    if (!config_.enable_caching && draw().percent(5)) {
      what.hit_blocks = Ids{std::min<std::int64_t>(1, config_.num_blocks - 1)};
      what.hit_tokens = config_.block_size;
    }
    if (is_new && draw().percent(20)) {
      what.external = std::min(std::max<std::int64_t>(room, 0), draw().between(0, 9));
      room -= *what.external;
    }
    what.tokens = std::min(std::max<std::int64_t>(room, 0), draw().between(0, 9));
    return with_flags(std::move(what));
  }
  Op cache() {
    cached_next_ = pick_running();
    return Op::of(ShowTable{*cached_next_});
  }
  Op skip() {
    const std::int64_t request = pick_running();
    return Op::of(Skip{request, draw().between(0, computed(request))});
  }
  Op pop() { return Op::of(Pop{pick_running()}); }
  Op take() {
    const std::int64_t free = manager().free_blocks();
    if (free < 4 && !held().empty() && (is_long() || draw().percent(50))) return release();
    return Op::of(Take{draw().percent(8) ? free + draw().between(0, 1) : draw().between(0, 4)});
  }
  Op touch() {
    if (config_.num_blocks == 1) return Op::of(Take{1});
    // In a long life the same block is pinned again and again.
    if (is_long()) return Op::of(TouchBlocks{{1}});
    Ids blocks;
    for (std::int64_t more = draw().between(1, 3); more > 0; --more)
      blocks.push_back(draw().percent(5) ? 0 : some_block());
    return Op::of(TouchBlocks{std::move(blocks)});
  }
  Op release() {
    // In any order, but none twice in a list: no rule says which place would count.
    Ids blocks = held();
    const std::int64_t most = draw().percent(20) ? kOneByte : draw().between(1, 4);
    if (!blocks.empty()) {
      const auto start = static_cast<std::ptrdiff_t>(draw().below(blocks.size()));
      std::rotate(blocks.begin(), blocks.begin() + start, blocks.end());
      blocks.resize(static_cast<std::size_t>(std::min(std::ssize(blocks), most)));
    }
    if (draw().percent(50)) std::ranges::reverse(blocks);
    if (draw().percent(4)) blocks.push_back(0);
    return Op::of(Release{std::move(blocks)});
  }
  Op evict() {
    Ids blocks;
    for (std::int64_t more = draw().between(0, 3); more > 0; --more) {
      const std::int64_t last = config_.num_blocks - 1;
      blocks.push_back(draw().percent(6)                 ? draw().between(-last - 2, last + 1)
                       : draw().percent(30) || last == 0 ? draw().between(0, last)
                                                         : some_block());
    }
    return Op::of(EvictBlocks{std::move(blocks)});
  }
  Op reset() { return Op::of(ResetBlocks{}); }
  Op usage() { return Op::of(ShowUsage{}); }
  Op stats() { return Op::of(ShowStatistics{}); }
  Op events() { return Op::of(TakeEvents{}); }
  Op state() { return Op::of(ShowBlocks{}); }
  Op look_up() { return Op::of(LookUp{draw().between(0, manager().keys())}); }
  Op table() { return Op::of(ShowTable{pick()}); }
  Op cached_tokens() { return Op::of(CachedTokens{pick()}); }
  Op record() { return Op::of(RecordHits{pick(), draw().between(0, 9)}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {60, "advance", &S::advance, true},
      {14, "request", &S::make, true},
      {8, "finish", &S::finish},
      {3, "preempt", &S::preempt},
      {4, "append", &S::append},
      {3, "set", &S::set},
      {6, "match", &S::match},
      {6, "allocate", &S::allocate},
      {3, "cache", &S::cache},
      {3, "skip", &S::skip},
      {2, "pop", &S::pop},
      {4, "take", &S::take},
      {3, "touch", &S::touch},
      {6, "release", &S::release},
      {3, "evict", &S::evict},
      {2, "reset", &S::reset},
      {2, "lookup", &S::look_up},
      {3, "table", &S::table},
      {3, "cached_tokens", &S::cached_tokens},
      {2, "usage", &S::usage},
      {2, "record", &S::record},
      {2, "stats", &S::stats},
      {4, "events", &S::events},
      {20, "state", &S::state, true},
  });

  static const CacheKind& order_kind() { return blocks_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::draw_text>("text"),
        order_word<&S::make_first_in>("make_first"),
        order_word<&S::make_second_in>("make_second"),
        order_word<&S::whole>("whole"),
        order_word<&S::adopt>("adopt"),
        order_word<&S::more>("more"),
        order_word<&S::append_one>("append_one"),
        order_word<&S::take_all>("take_all"),
        order_word<&S::release_taken>("release_taken"),
        order_word<&S::evict_first_block>("evict_first_block"),
        order_word<&S::forget_taken>("forget_taken"),
        order_word<&S::choose_taken>("choose_taken"),
        order_word<&S::first_>("first"),
        order_word<&S::second_>("second"),
        order_word<&S::block_size>("block_size"),
        order_word<&S::num_blocks>("num_blocks"),
        order_word<&S::max_model_len>("max_model_len"),
        order_word<&S::is_windowed>("windowed"),
        order_word<&S::is_chunked>("chunked"),
        order_word<&S::has_events>("events_on"),
        order_word<&S::keeps_sparse_keys>("sparse"),
        order_word<&S::window_end>("window_end"),
        order_word<&S::computed>("computed"),
        order_word<&S::hits_of>("hits"),
        order_word<&S::text_length>("text_length"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const MakeRequest& op, const Observation& seen) {
    if (seen.error) return;
    hits_.erase(op.request);
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
    if (manager().requests().size() > 64) reach(Seen::kRequestsBeyond64);
  }
  void observe(const MatchBlocks& op, const Observation& seen) {
    const bool is_admitted = admitted_ == op.request;
    if (seen.error) {
      admitted_.reset();
      const std::int64_t most = op.max_length.value_or(length(op.request) - 1);
      reach(most < 0 ? Seen::kLookupOfAnEmptyPrompt : Seen::kLookupBeyondTheKeys);
      return;
    }
    const auto& hit = hits_[op.request] = seen.as<MatchBlocks::Returns>();
    if (hit.length > 0) {
      if (!has_null(hit.blocks)) reach(Seen::kPrefixHit);
      if (has_null(hit.blocks)) reach(Seen::kHitOfNullBlocks);
      const bool only_nulls = std::ranges::count(hit.blocks, 0) == std::ssize(hit.blocks);
      if (only_nulls && config_.chunk) reach(Seen::kChunkHitOnNothing);
      if (manager().progress(op.request).preemptions > 0) reach(Seen::kResumedWithAHit);
      if (config_.eagle) reach(Seen::kDraftHeadsHit);
      if (hit.length == length(op.request) - config_.block_size)
        reach(Seen::kHeldPromptLosesItsLastBlock);
      if (hit.blocks.size() >= 64) reach(Seen::kHitOf64Blocks);
      if (std::ssize(hit.blocks) >= kCrowd) reach(Seen::kHitOf100000Blocks);
    }
    if (!is_admitted) return;
    if (length(op.request) > hit.length) {
      if (draw().percent(8)) disturb();
      plan(with_flags(admission(op.request)));
    }
    admitted_.reset();
  }
  void observe(const Allocate& op, const Observation& seen) {
    if (seen.failed_with(Code::kExhausted)) {
      reach(Seen::kExhausted);
      if (config_.attention != Attention::kFull && has_table(op.request) &&
          computed(op.request) > 0)
        reach(Seen::kExhaustedUnderAWindow);
      if (op.full_sequence.value_or(false)) reach(Seen::kFullSequenceRefused);
      if (!follows_plan() && draw().percent(60)) plan_next(preempt());
      return;
    }
    if (seen.error) {
      if (has_table(op.request) && op.hit_tokens.value_or(0) > 0)
        reach(Seen::kHitsForATrackedRequest);
      return;
    }
    const auto& got = seen.as<AllottedBlocks>();
    handed_out(got.blocks);
    if (!got.evicted.empty()) reach(Seen::kEvictedOnHandingOut);
    if (op.external.value_or(0) > 0) reach(Seen::kExternalTokens);
    if (op.delay_caching.value_or(false)) reach(Seen::kDelayedCaching);
    if (!follows_plan() && draw().percent(15)) return;
    const std::int64_t end =
        computed(op.request) + op.hit_tokens.value_or(0) + op.external.value_or(0) + op.tokens;
    plan(SetRequest{.request = op.request,
                    .computed = std::min(end, length(op.request)),
                    .status = RequestStatus::kRunning});
  }
  void observe(const ShowTable& op, const Observation& seen) {
    const bool is_cached = std::exchange(cached_next_, std::nullopt) == op.request;
    if (seen.error) return;
    const Ids& blocks = seen.as<BlocksOnly>().blocks;
    if (has_null(blocks)) reach(Seen::kNullBlocksInATable);
    if (blocks.size() >= 256) reach(Seen::kTableOf256Blocks);
    // Beyond the table's end there is nothing to register.
    if (is_cached)
      plan(CacheTokens{op.request, draw().between(0, std::ssize(blocks) * config_.block_size)});
  }
  void observe(const Pop& /*op*/, const Observation& seen) {
    if (seen.error || seen.as<BlocksOnly>().blocks.empty()) return;
    if (draw().percent(50)) plan(Release{seen.as<BlocksOnly>().blocks});
  }
  void observe(const Take& /*op*/, const Observation& seen) {
    if (seen.failed_with(Code::kExhausted)) reach(Seen::kTakeExhausted);
    if (seen.failed_with(Code::kPrecondition)) reach(Seen::kTakeOfAWrongCount);
    if (seen.error) return;
    taken_ = seen.as<AllottedBlocks>().blocks;
    handed_out(taken_);
  }
  void observe(const Release& op, const Observation& seen) {
    if (!seen.error && op.blocks.size() > 1) reach(Seen::kPoppedBlocksReleased);
  }
  void observe(const EvictBlocks& op, const Observation& seen) {
    if (seen.error) return reach(Seen::kEvictOutOfRange);
    if (std::ranges::any_of(op.blocks, [](std::int64_t block) { return block < 0; }))
      reach(Seen::kEvictedBySignedNumber);
  }
  void observe(const ResetBlocks& /*op*/, const Observation& seen) {
    if (seen.error) return;
    reach(seen.as<ResetBlocks::Returns>().done ? Seen::kResetDone : Seen::kResetRefused);
  }
  void observe(const TakeEvents& /*op*/, const Observation& seen) {
    if (seen.error) return;
    for (const ShownEvent& event : seen.as<TakeEvents::Returns>().events) {
      if (event.kind == EventKind::kRemoved) reach(Seen::kRemovedEvent);
      if (event.kind == EventKind::kCleared) reach(Seen::kClearedEvent);
      if (event.kind != EventKind::kStored) continue;
      reach(event.keys && event.keys->empty() ? Seen::kStoredEventWithoutKeys : Seen::kStoredEvent);
    }
  }
  void observe(const ShowBlocks& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& pool = seen.as<ShowBlocks::Returns>();
    if (pool.free == 0 && config_.num_blocks > 1) reach(Seen::kNothingFree);
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

 private:
  static constexpr std::int64_t kCost = 50;  // of an operation, in cells

  // The reference, and what it says of a request; nothing of one that was never made.
  [[nodiscard]] const BlockManager& manager() const {
    return dynamic_cast<const BlockManager&>(reference<ShowsCache<BlockCache>>().shown());
  }
  [[nodiscard]] std::int64_t length(std::int64_t request) const {
    return std::ssize(manager().text(request).tokens);
  }
  [[nodiscard]] std::int64_t computed(std::int64_t request) const {
    return manager().progress(request).computed;
  }
  [[nodiscard]] bool has_table(std::int64_t request) const {
    return !manager().table(request).empty();
  }
  // Blocks that are pinned by hand.
  [[nodiscard]] Ids held() const {
    const BlockPool& pool = manager().pool();
    Ids users;
    for (std::int64_t block = 0; block < pool.count(); ++block) users.push_back(pool[block].refs);
    for (const auto& [request, row] : manager().requests())
      for (const std::int64_t block : manager().table(request))
        --users[static_cast<std::size_t>(block)];
    Ids blocks;
    for (std::int64_t block = 1; block < pool.count(); ++block)
      if (users[static_cast<std::size_t>(block)] > 0) blocks.push_back(block);
    return blocks;
  }
  // Mostly one that a request has; else one of the first, which are handed out first.
  std::int64_t some_block() {
    const IdsView table = manager().table(pick());
    if (!table.empty() && draw().percent(60)) return table[draw().below(table.size())];
    constexpr std::int64_t kMost = 32;
    return draw().between(1, std::min(config_.num_blocks - 1, kMost));
  }

  // Which request.
  std::int64_t pick() {
    auto at = manager().requests().begin();
    std::advance(at, draw().below(manager().requests().size()));
    return at->first;
  }
  std::int64_t pick_running() {
    const auto& requests = manager().requests();
    const std::int64_t drawn = pick();
    for (auto at = requests.lower_bound(drawn); at != requests.end(); ++at)
      if (has_table(at->first)) return at->first;
    return drawn;
  }
  // Steps.
  // As many contents as there are blocks, each asked for again.
  Op make_crowd() {
    const Tokens tokens = texts_.fresh(config_.max_model_len);
    plan(Allocate{.request = 0, .tokens = config_.max_model_len});
    plan(FreeRequest{0});
    plan(MakeRequest{.request = 1, .tokens = tokens});
    plan(MatchBlocks{1});
    next_number_ = 2;
    return Op::of(MakeRequest{.request = 0, .tokens = tokens});
  }
  Op make(std::int64_t request, Tokens tokens) {
    MakeRequest what{.request = request, .tokens = std::move(tokens)};
    if (draw().percent(8)) what.salt = draw().one_of<std::string>({"", "s"});
    if (draw().percent(6)) what.lora = draw().one_of<std::string>({"", "l", "s"});
    if (what.lora && draw().percent(30)) what.lora_path = "/l";
    if (draw().percent(4)) what.skip_reading = true;
    return Op::of(std::move(what));
  }
  Op admit(std::int64_t request) {
    if (computed(request) != 0) return Op::of(SetRequest{request, 0});
    admitted_ = request;
    return Op::of(MatchBlocks{request});
  }
  Op decode(std::int64_t request) {
    const std::int64_t room = config_.max_model_len - length(request);
    if (room <= 0) return Op::of(FreeRequest{request});
    const std::int64_t more = std::min(room, draw().percent(80) ? 1 : draw().between(2, 5));
    plan(with_flags({.request = request, .tokens = more}));
    return Op::of(Append{request, texts_.some(draw(), more)});
  }
  Op with_flags(Allocate allotment) {
    const std::int64_t size = config_.block_size;
    if (draw().percent(15)) allotment.lookahead = draw().between(0, 2 * size);
    if (draw().percent(8)) allotment.delay_caching = true;
    if (draw().percent(10)) allotment.full_sequence = true;
    if (draw().percent(6)) allotment.reserved = draw().between(0, 3);
    if (draw().percent(8)) allotment.others_scheduled = draw().percent(30);
    return Op::of(std::move(allotment));
  }
  Allocate admission(std::int64_t request) {
    const auto& hit = hits_[request];
    const std::int64_t left = length(request) - hit.length;
    Allocate what{.request = request,
                  .tokens = draw().percent(60) ? left : draw().between(1, left),
                  .hit_blocks = hit.blocks,
                  .hit_tokens = hit.length};
    if (hit.blocks.empty() && draw().percent(50)) {
      what.hit_blocks.reset();
      what.hit_tokens.reset();
    }
    if (what.tokens < left && draw().percent(30))
      what.external = draw().between(0, left - what.tokens);
    return what;
  }
  // Between a lookup and its allocate comes what the scheduler must not do (PX-47).
  void disturb() {
    const Ids& hits = hits_[*admitted_].blocks;
    if (draw().percent(50)) plan(Take{draw().between(0, manager().free_blocks())});
    if (draw().percent(50) && !hits.empty()) plan(EvictBlocks{{hits.back()}});
    if (draw().percent(50)) plan(ShowBlocks{});
  }
  void handed_out(const Ids& blocks) {
    if (!blocks.empty() && std::ranges::max(blocks) > kTwoBytes) reach(Seen::kBlockBeyondTwoBytes);
  }
  std::optional<std::int64_t> unused_number() {
    if (std::ssize(manager().requests()) < most_numbers_) return next_number_++;
    const std::int64_t drawn = pick();
    if (!has_table(drawn) || draw().percent(1)) return drawn;
    return std::nullopt;
  }

  // Parts of orders.
  void draw_text(std::int64_t tokens) {
    text_ = texts_.fresh(std::clamp<std::int64_t>(tokens, 1, config_.max_model_len));
  }
  void forget_taken() { taken_.clear(); }
  // A request of the text.
  std::optional<Op> make_for_order(std::int64_t& number, MakeRequest what) {
    number = unused_number().value_or(next_number_);
    next_number_ = std::max(next_number_, number + 1);
    if (has_table(number)) return std::nullopt;
    what.request = number;
    what.tokens = text_;
    return Op::of(std::move(what));
  }
  // 0: none; 1: a salt; 2: an adapter; 3: with a path; 4: the path alone.
  static MakeRequest in_namespace(std::int64_t which) {
    MakeRequest what;
    if (which == 1) what.salt = "s";
    if (which == 2 || which == 3) what.lora = "l";
    if (which >= 3) what.lora_path = "/l";
    return what;
  }
  std::optional<Op> make_first_in(std::int64_t which) {
    return make_for_order(first_, in_namespace(which));
  }
  std::optional<Op> make_second_in(std::int64_t which) {
    return make_for_order(second_, in_namespace(which));
  }
  // All of a request's tokens; what its match found is adopted, or not.
  Op whole(std::int64_t request) {
    return Op::of(Allocate{.request = request, .tokens = length(request)});
  }
  Op adopt(std::int64_t request) {
    const auto& hit = hits_[request];
    return Op::of(Allocate{.request = request,
                           .tokens = length(request) - hit.length,
                           .hit_blocks = hit.blocks,
                           .hit_tokens = hit.length});
  }
  std::optional<Op> append_one(std::int64_t request) {
    if (length(request) >= config_.max_model_len) return std::nullopt;
    return Op::of(Append{request, texts_.fresh(1)});
  }
  bool choose_taken() {
    if (!taken_.empty()) second_ = taken_.front();
    return !taken_.empty();
  }
  [[nodiscard]] std::int64_t block_size() const { return config_.block_size; }
  [[nodiscard]] std::int64_t num_blocks() const { return config_.num_blocks; }
  [[nodiscard]] std::int64_t max_model_len() const { return config_.max_model_len; }
  [[nodiscard]] bool is_windowed() const { return config_.attention != Attention::kFull; }
  [[nodiscard]] bool is_chunked() const { return config_.chunk && !config_.eagle; }
  [[nodiscard]] bool has_events() const { return config_.events; }
  [[nodiscard]] bool keeps_sparse_keys() const {
    return config_.retention && config_.retention->has_value();
  }
  [[nodiscard]] std::int64_t window_end() const {
    return config_.window.value_or(config_.chunk.value_or(1));
  }
  std::int64_t hits_of(std::int64_t request) { return hits_[request].length; }
  [[nodiscard]] std::int64_t text_length() const { return std::ssize(text_); }
  Op more(std::int64_t request, std::int64_t tokens) {
    const std::int64_t room = config_.max_model_len - computed(request);
    return Op::of(Allocate{.request = request, .tokens = std::min(tokens, room)});
  }
  Op take_all(std::int64_t leave) {
    return Op::of(Take{std::max<std::int64_t>(manager().free_blocks() - leave, 0)});
  }
  Op release_taken() { return Op::of(Release{taken_}); }
  // The first block of its table; of its last match, where it has none.
  std::optional<Op> evict_first_block(std::int64_t request) {
    const IdsView table = manager().table(request);
    const IdsView blocks = table.empty() ? IdsView(hits_[request].blocks) : table;
    if (blocks.empty()) return std::nullopt;
    return Op::of(EvictBlocks{{blocks.front()}});
  }

  BlocksConfig config_;
  Texts texts_;
  std::int64_t most_tokens_;                           // of a prompt
  std::int64_t most_numbers_;                          // of requests at a time
  std::map<std::int64_t, MatchBlocks::Returns> hits_;  // of the last match, by request
  std::optional<std::int64_t> admitted_;               // its match is under way
  std::optional<std::int64_t> cached_next_;            // its table is asked for
  std::int64_t next_number_ = 0;
  bool pins_ = false;  // a long life of one block that many pin
  // Of the order that is followed.
  std::int64_t first_ = 0;
  std::int64_t second_ = 0;
  Tokens text_;
  Ids taken_;
};

GeneratedCase make_blocks_case(const CaseTerms& terms) {
  BlocksConfig config = draw_blocks_config(terms);
  auto script = std::make_unique<BlocksScript>(terms, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::move(script)};
}

}  // namespace

Generator blocks_generator() {
  Generator made = with_orders<BlocksScript>(
      script_generator<BlocksLabel>(blocks_kind(), make_blocks_case, {}, {}));
  add_states<BlocksSeen>(made,
                         {BlocksSeen::kEvictedBySignedNumber, BlocksSeen::kTakeOfAWrongCount,
                          BlocksSeen::kLookupOfAnEmptyPrompt, BlocksSeen::kLookupBeyondTheKeys,
                          BlocksSeen::kStoredEventWithoutKeys});
  return made;
}

}  // namespace kvo::prefix
