// Random scripts for groups.blocks: a scheduler that serves requests step by step, and what else a
// caller does between steps.
//
// A step      begins with `step`; each request has at most one turn: a match and its slots, a
// chunk,
//             or a token with drafts; then the copies are taken, and what the step computed is set.
// Between     steps requests come, end, or are looked at; the pool is changed by hand.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/prefix/texts.hpp"
#include "reference/groups/blocks_cache.hpp"
#include "reference/groups/operations.hpp"

namespace kvo::groups {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    BlocksSeen, std::uint8_t, kCommonHit, kHitVetoedByAGroup, kHitInsideABlock, kStateHit,
    kWindowHit, kHitUnderDraftHeads, kHitOfThreeGroups, kHitOfTwoSizes, kHitOfStatesAlone,
    kResumedWithAHit, kTailCopied, kSeveralCopies, kPreempted, kPreemptedInItsStep, kExhausted,
    kWaitForAState, kChunkCut, kChunkNotNow, kChunkEndsAtABoundary, kDraftsAccepted,
    kDraftsRejected, kLoadedTokens, kLoadedAlone, kDivergedHit, kConnectorHit, kReportedHit,
    kStoredEvent, kStoredEventWithoutKeys, kStoredTail, kRemovedEvent, kClearedEvent, kOffload,
    kFinalizedOffload, kFreshBlocks, kZeroedBlocks, kEvictedOnHandingOut, kNothingFree,
    kContentHeldTwice, kTwoKeysOnABlock, kNullBlocksInATable, kDelayedCaching, kStaleHits,
    kResetDone, kPoppedBlocksReleased, kRequestOf256Tokens, kTableOf64Blocks)
// Configs.
BOOST_DEFINE_FIXED_ENUM_CLASS(BlocksConfigSeen, std::uint8_t, kRingOfABlock, kReplayedWindow,
                              kChunkedGroup, kPromptWindow, kOneGroup, kFourGroups, kRetentionZero,
                              kSegments, kJunction, kKeysLookAhead, kCachingOff,
                              kStatesWithoutCaching, kRefusedSetup, kSmallSplit)

namespace {

using prefix::Texts;

std::int64_t common_multiple(const std::vector<Group>& groups) {
  return scheduler_block_of(groups).value_or(1);
}

Group draw_group(Draw& draw, std::int64_t unit) {
  const std::int64_t size = unit * draw.one_of<std::int64_t>({1, 1, 2, 4});
  Group group{.block_size = size};
  const std::uint64_t kind = draw.below(20);
  if (kind < 6) {
    group.kind = draw.percent(75) ? GroupKind::kFull : GroupKind::kMla;
  } else if (kind < 12) {
    group.kind = draw.percent(75) ? GroupKind::kSlidingWindow : GroupKind::kSlidingWindowMla;
    group.window = draw.between(1, 4 * size + 2);
    if (draw.percent(20)) group.retained = draw.between(0, 2 * size);
    if (group.kind == GroupKind::kSlidingWindowMla) group.replay = draw.percent(40);
  } else if (kind < 17) {
    group.kind = GroupKind::kMamba;
    group.block_size = unit * draw.one_of<std::int64_t>({1, 2, 4, 4});
    if (draw.percent(35))
      group.speculative = draw.between(0, std::min<std::int64_t>(group.block_size - 1, 3));
    if (draw.percent(35)) {
      group.checkpoints = 1;
      group.checkpoint_alignment = unit * draw.one_of<std::int64_t>({1, 1, 2});
    }
  } else if (kind < 18) {
    group.kind = GroupKind::kRswa;
    group.window = draw.between(1, 4 * size + 2);
  } else if (kind < 19) {
    group.kind = GroupKind::kChunkedLocal;
    group.chunk = size * draw.between(1, 4);
  } else {
    group.kind = GroupKind::kRing;
  }
  return group;
}

std::vector<Group> draw_groups(Draw& draw, std::int64_t& unit) {
  std::vector<Group> groups;
  const std::int64_t count = draw.percent(8) ? 1 : draw.between(2, draw.percent(25) ? 4 : 3);
  while (std::ssize(groups) < count) {
    Group group = draw_group(draw, unit);
    // Most models have full attention, and hybrids one kind of states.
    if (groups.empty() && draw.percent(60))
      group = {.block_size = unit * draw.one_of<std::int64_t>({1, 2, 4})};
    for (const Group& before : groups)
      if (is_state(before) && is_state(group)) group = before;
    const bool chunked = group.kind == GroupKind::kChunkedLocal;
    for (const Group& before : groups)
      if (chunked || before.kind == GroupKind::kChunkedLocal) {
        group.block_size = before.block_size;  // lookups of chunks need one size
        if (chunked) group.chunk = group.block_size * draw.between(1, 4);
      }
    groups.push_back(group);
  }
  if (count == 1) unit = groups[0].block_size;
  return groups;
}

Config draw_config(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool is_large = terms.scale == Scale::kLarge;
  Config config;
  config.hash_block = draw.one_of<std::int64_t>({1, 2, 2, 4});
  config.groups = draw_groups(draw, config.hash_block);
  const bool chunked = std::ranges::any_of(
      config.groups, [](const Group& group) { return group.kind == GroupKind::kChunkedLocal; });
  const std::int64_t block = common_multiple(config.groups);
  config.enable_caching = !draw.percent(5);
  if (!config.enable_caching)
    for (Group& group : config.groups)
      if (is_state(group) && draw.percent(50)) group.mode = StateMode::kNone;
  config.max_model_len =
      is_large ? draw.between(200, 500) : draw.between(3 * block, 6 * block + 12);
  config.num_blocks =
      is_large ? draw.between(100, 400) : draw.between(8, 16) * std::ssize(config.groups);
  config.eagle = !chunked && draw.percent(20);
  if (config.eagle && draw.percent(40))
    for (Group& group : config.groups) group.draft = draw.percent(50);
  if (!config.eagle && draw.percent(12)) config.hash_lookahead = draw.between(1, 2);
  if (draw.percent(15))
    config.prefill_lookahead = draw.between(0, std::min<std::int64_t>(block, 3));
  if (draw.percent(20)) config.watermark = draw.one_of({0.02, 0.1});
  if (draw.percent(40)) config.max_in_flight = draw.between(1, config.max_model_len);
  const bool sparse = std::ranges::any_of(
      config.groups, [](const Group& group) { return is_window(group) || is_state(group); });
  if (sparse && draw.percent(55))
    config.retention = Nullable<std::int64_t>(block * draw.one_of<std::int64_t>({0, 0, 1, 2, 3}));
  config.junction = draw.percent(25);
  config.events = draw.percent(40);
  if (draw.percent(30)) config.max_scheduled = draw.between(block, 3 * block);
  if (draw.percent(6)) config.split_block = config.hash_block * draw.between(1, 2);
  if (draw.percent(2)) config.retention = Nullable<std::int64_t>(block + 1);
  if (draw.percent(2)) config.hash_block = block + 1;
  return config;
}

/// A case's script.
class BlocksScript final : public ScriptGenerator<BlocksScript, BlocksOps> {
  using S = BlocksScript;
  using Seen = BlocksSeen;
  using SetUp = BlocksConfigSeen;

 public:
  BlocksScript(const CaseTerms& terms, const Config& config)
      : ScriptGenerator(terms),
        config_(config),
        texts_(common_multiple(config.groups), terms.seed),
        most_tokens_(std::max<std::int64_t>(1, config.max_model_len - 4)),
        most_numbers_(is_large() ? draw().between(6, 20) : draw().between(2, 6)),
        connects_(draw().percent(20)),
        lags_(draw().percent(20)),
        disturbs_(draw().percent(10)) {
    std::int64_t spare = 3;
    for (const Group& group : config.groups)
      if (is_state(group)) {
        cuts_ = cuts_ || is_aligned_state(group);
        spare = std::min(spare, group.speculative);
        states_ = true;
      }
    if (draw().percent(40)) drafts_ = draw().between(0, spare);
  }

  std::optional<Op> choose() override {
    constexpr std::int64_t kCost = 60;  // of an operation, in cells
    spend(static_cast<std::uint64_t>(kCost + 3 * config_.num_blocks));
    if (!std::exchange(started_, true)) return Op::of(ShowSetup{});
    if (refused_) return refused_++ < 3 ? std::optional(Op::of(ShowSetup{})) : std::nullopt;
    if (!has_plan() && in_step_)
      if (auto op = next_of_step()) return op;
    return ScriptGenerator::choose();
  }

  // Steps.
  Op step() {
    in_step_ = true;
    copied_ = false;
    for (const auto& [request, row] : manager().requests().rows())
      if (has_table(request) || draw().percent(50)) turns_.push_back(request);
    return Op::of(NextStep{});
  }
  Op make() {
    const auto number = unused_number();
    if (!number) return finish();
    MakeRequest what{.request = *number, .tokens = texts_.next(draw(), most_tokens_)};
    if (draw().percent(6)) what.salt = draw().one_of<std::string>({"", "s"});
    if (draw().percent(4)) what.lora = "l";
    if (draw().percent(3)) what.skip_reading = true;
    if (draw().percent(5)) what.report = HitReport::kFull;
    if (what.report) reported_ = true;
    return Op::of(std::move(what));
  }
  Op finish() {
    const std::int64_t request = pick_running();
    loading_.erase(request);
    if (!has_table(request)) return step();
    if (draw().percent(30)) {
      plan(prefix::Pop{request});
      return Op::of(Finalize{request});
    }
    plan(prefix::FreeRequest{request});
    if (draw().percent(20)) audit();
    return Op::of(Finalize{request});
  }
  Op preempt() {
    const std::int64_t request = pick_running();
    if (!has_table(request)) return step();
    plan_preemption(request);
    return Op::of(NextStep{});
  }
  Op match() {
    const std::int64_t request = pick();
    if (has_table(request) || computed(request) > 0) return audit();
    Match what{.request = request};
    if (draw().percent(30)) what.max_length = draw().between(-1, length(request) + 2);
    return Op::of(what);
  }
  Op skip() {
    const std::int64_t request = pick_running();
    if (row(request) < 0) return make();
    Skip what{.request = request, .computed = draw().between(0, computed(request))};
    if (draw().percent(50)) what.prompt = manager().requests().text(row(request)).prompt;
    return Op::of(what);
  }
  Op audit() {
    for (const auto& [request, row] : manager().requests().rows()) plan(ShowTables{request});
    plan(ShowBlocks{});
    if (config_.events && !reported_) plan(TakeEvents{});
    return Op::of(prefix::ShowUsage{});
  }
  Op take() {
    const std::int64_t free = manager().free_blocks();
    if (!held_.empty() && draw().percent(60)) return release();
    return Op::of(prefix::Take{draw().percent(8) ? free + draw().between(0, 1)
                                                 : std::min(free, draw().between(0, 4))});
  }
  Op touch() { return Op::of(prefix::TouchBlocks{{some_block()}}); }
  Op release() {
    Ids blocks;
    for (std::int64_t more = draw().between(1, 4); more > 0 && !held_.empty(); --more) {
      const auto at = held_.begin() + static_cast<std::ptrdiff_t>(draw().below(held_.size()));
      blocks.push_back(*at);
      held_.erase(at);
    }
    return Op::of(prefix::Release{std::move(blocks)});
  }
  Op evict() {
    Ids blocks;
    for (std::int64_t more = draw().between(1, 3); more > 0; --more)
      blocks.push_back(draw().percent(4) ? draw().between(-2, config_.num_blocks) : some_block());
    return Op::of(prefix::EvictBlocks{std::move(blocks)});
  }
  Op reset() {
    if (draw().percent(60)) return Op::of(prefix::ResetBlocks{});
    for (const auto& [request, row] : manager().requests().rows())
      if (has_table(request)) {
        plan(prefix::FreeRequest{request});
        plan(prefix::SetRequest{.request = request, .computed = 0});
      }
    loading_.clear();
    plan(prefix::Release{std::exchange(held_, {})});
    plan(prefix::ResetBlocks{});
    return Op::of(TakeCopies{});
  }
  Op zero() {
    const std::int64_t request = pick_running();
    const std::int64_t block = common_multiple(config_.groups);
    return Op::of(
        Zero{request, draw().percent(6) ? draw().between(0, 9) : block * draw().between(0, 3)});
  }
  Op clip() { return Op::of(Clip{pick(), draw().between(0, config_.max_model_len)}); }
  Op fresh() { return Op::of(TakeFresh{}); }
  Op offloads() { return Op::of(TakeOffloads{}); }
  Op look_up() {
    Ids asked;
    for (std::int64_t group = 0; group < std::ssize(config_.groups); ++group)
      if (draw().percent(60)) asked.push_back(group);
    return Op::of(LookUp{draw().between(0, manager().requests().keys()), std::move(asked)});
  }
  Op table() { return Op::of(ShowTables{pick()}); }
  Op cached_tokens() { return Op::of(prefix::CachedTokens{pick()}); }
  Op stats() { return Op::of(ShowStatistics{}); }
  Op events() { return Op::of(TakeEvents{}); }
  Op state() { return Op::of(ShowBlocks{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {60, "step", &S::step, true},
      {20, "request", &S::make, true},
      {9, "finish", &S::finish, true},
      {2, "preempt", &S::preempt},
      {8, "match", &S::match},
      {2, "skip", &S::skip},
      {8, "audit", &S::audit, true},
      {3, "take", &S::take},
      {1, "touch", &S::touch},
      {3, "release", &S::release},
      {3, "evict", &S::evict},
      {2, "reset", &S::reset},
      {2, "zero", &S::zero},
      {2, "clip", &S::clip},
      {3, "fresh", &S::fresh},
      {4, "offloads", &S::offloads},
      {3, "lookup", &S::look_up},
      {3, "table", &S::table},
      {3, "cached_tokens", &S::cached_tokens},
      {3, "stats", &S::stats},
      {4, "events", &S::events},
      {8, "state", &S::state, true},
  });

  // What became of an operation.
  void observe(const ShowSetup& /*op*/, const Observation& seen) {
    if (seen.error) {
      refused_ = std::max(refused_, 1);
      return reach(SetUp::kRefusedSetup);
    }
    layout_ = seen.as<SetupReturns>();
    learn_config();
  }
  void observe(const MakeRequest& op, const Observation& seen) {
    if (seen.error) return;
    texts_.keep(op.tokens);
    if (std::ssize(op.tokens) >= 256) reach(Seen::kRequestOf256Tokens);
    if (config_.hash_lookahead > 0 && !seen.as<prefix::KeysOnly>().keys.empty())
      reach(SetUp::kKeysLookAhead);
  }
  void observe(const Match& op, const Observation& seen) {
    if (seen.error) return admission_.reset();
    const auto& hit = seen.as<MatchReturns>();
    learn_hit(op.request, hit.blocks, hit.length);
    if (hit.boundary > hit.length) reach(Seen::kHitVetoedByAGroup);
    admit(op.request, hit.blocks, hit.length, hit.boundary);
  }
  void observe(const MatchConnector& op, const Observation& seen) {
    if (seen.error) return admission_.reset();
    const auto& hit = seen.as<MatchConnectorReturns>();
    learn_hit(op.request, hit.blocks, hit.length);
    if (hit.length > 0) reach(Seen::kConnectorHit);
    if (hit.diverged) reach(Seen::kDivergedHit);
    admit(op.request, hit.blocks, hit.length, hit.boundary);
  }
  void observe(const Split& op, const Observation& seen) {
    const auto asked = std::exchange(split_, std::nullopt);
    if (seen.error || !asked) return;
    const std::int64_t tokens = seen.as<SplitReturns>().tokens;
    if (tokens == 0) return reach(Seen::kChunkNotNow);
    if (tokens < op.tokens) reach(Seen::kChunkCut);
    const auto& boundary = manager().requests().progress(row(op.request)).boundary;
    if (boundary ==
        op.hit_tokens.value_or(0) + op.external.value_or(0) + computed(op.request) + tokens)
      reach(Seen::kChunkEndsAtABoundary);
    Allocate what = *asked;
    what.tokens = tokens;
    plan(std::move(what));
  }
  void observe(const Allocate& op, const Observation& seen) {
    if (seen.failed_with(Code::kExhausted)) {
      reach(Seen::kExhausted);
      if (op.hit_tokens.value_or(0) > 0 && op.tokens < manager().free_blocks())
        for (const Group& group : config_.groups)
          if (is_state(group)) reach(Seen::kWaitForAState);
      // A request that waits gives way; one that runs needs somebody's blocks.
      if (draw().percent(has_table(op.request) ? 80 : 15)) plan_preemption(pick_running());
      return;
    }
    if (seen.error) return;
    const auto& got = seen.as<Allotment>();
    if (!got.evicted.empty()) reach(Seen::kEvictedOnHandingOut);
    const std::int64_t loaded = op.external.value_or(0);
    if (loaded > 0) reach(op.tokens > 0 ? Seen::kLoadedTokens : Seen::kLoadedAlone);
    if (op.delay_caching.value_or(false)) reach(Seen::kDelayedCaching);
    const std::int64_t start = computed(op.request) + op.hit_tokens.value_or(0) + loaded;
    plan(prefix::SetRequest{.request = op.request, .status = RequestStatus::kRunning});
    if (states_ || draw().percent(50)) plan(ShowTables{op.request});
    if (draw().percent(12)) plan(ShowBlocks{});
    if (op.tokens == 0)
      loading_[op.request] = start;
    else
      scheduled_.push_back({.request = op.request,
                            .start = start,
                            .tokens = op.tokens,
                            .delayed = op.delay_caching.value_or(false)});
  }
  void observe(const TakeCopies& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& copies = seen.as<CopiesReturns>();
    if (!copies.copies.empty()) reach(Seen::kTailCopied);
    if (copies.copies.size() > 1) reach(Seen::kSeveralCopies);
    if (!copies.retained.empty()) plan_next(Op::of(prefix::Release{copies.retained}));
  }
  void observe(const ShowTables& /*op*/, const Observation& seen) {
    if (seen.error) return;
    for (const Ids& blocks : seen.as<TablesReturns>().blocks) {
      if (std::ranges::find(blocks, 0) != blocks.end()) reach(Seen::kNullBlocksInATable);
      if (blocks.size() >= 64) reach(Seen::kTableOf64Blocks);
    }
  }
  void observe(const prefix::Pop& /*op*/, const Observation& seen) {
    if (seen.error || seen.as<BlocksOnly>().blocks.empty()) return;
    Ids blocks = seen.as<BlocksOnly>().blocks;
    std::ranges::reverse(blocks);
    plan_next(Op::of(prefix::Release{std::move(blocks)}));
    reach(Seen::kPoppedBlocksReleased);
  }
  void observe(const prefix::Take& /*op*/, const Observation& seen) {
    if (seen.error) return;
    for (const std::int64_t block : seen.as<prefix::AllottedBlocks>().blocks)
      held_.push_back(block);
  }
  void observe(const prefix::TouchBlocks& op, const Observation& seen) {
    if (!seen.error) held_.insert(held_.end(), op.blocks.begin(), op.blocks.end());
  }
  void observe(const prefix::ResetBlocks& /*op*/, const Observation& seen) {
    if (!seen.error && seen.as<prefix::ResetBlocks::Returns>().done) reach(Seen::kResetDone);
  }
  void observe(const TakeOffloads& /*op*/, const Observation& seen) {
    if (!seen.error && !seen.as<OffloadsReturns>().offloads.empty()) reach(Seen::kOffload);
  }
  void observe(const Finalize& /*op*/, const Observation& seen) {
    if (!seen.error && !seen.as<OffloadsReturns>().offloads.empty()) reach(Seen::kFinalizedOffload);
  }
  void observe(const TakeFresh& /*op*/, const Observation& seen) {
    if (!seen.error && !seen.as<BlocksOnly>().blocks.empty()) reach(Seen::kFreshBlocks);
  }
  void observe(const Zero& op, const Observation& seen) {
    if (!seen.error && states_ && has_table(op.request)) reach(Seen::kZeroedBlocks);
  }
  void observe(const TakeEvents& /*op*/, const Observation& seen) {
    if (seen.error) return;
    for (const ShownEvent& event : seen.as<TakeEvents::Returns>().events) {
      if (event.kind == EventKind::kRemoved) reach(Seen::kRemovedEvent);
      if (event.kind == EventKind::kCleared) reach(Seen::kClearedEvent);
      if (event.kind != EventKind::kStored) continue;
      reach(event.keys->empty() ? Seen::kStoredEventWithoutKeys : Seen::kStoredEvent);
      if (event.block_size != config_.groups[static_cast<std::size_t>(*event.group)].block_size)
        reach(Seen::kStoredTail);
    }
  }
  void observe(const ShowBlocks& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& pool = seen.as<ShowBlocks::Returns>();
    if (pool.free == 0) reach(Seen::kNothingFree);
    for (const ShownHolders& holders : pool.cached)
      if (holders.blocks.size() > 1) reach(Seen::kContentHeldTwice);
    for (const auto& keys : pool.keys)
      if (keys.has_value() && keys->size() > 1) reach(Seen::kTwoKeysOnABlock);
  }

 private:
  /// A turn of this step that got slots.
  struct Turn {
    std::int64_t request = 0;
    std::int64_t start = 0;   ///< tokens before it
    std::int64_t tokens = 0;  ///< drafts among them
    bool delayed = false;     ///< keys are set when it is computed
  };

  // The reference.
  [[nodiscard]] const Manager& manager() const {
    return dynamic_cast<const Manager&>(reference<prefix::ShowsCache<BlockCache>>().shown());
  }
  [[nodiscard]] std::int64_t row(std::int64_t request) const {
    return manager().requests().find(request);
  }
  [[nodiscard]] std::int64_t length(std::int64_t request) const {
    return row(request) < 0 ? 0 : std::ssize(manager().requests().text(row(request)).tokens);
  }
  [[nodiscard]] std::int64_t computed(std::int64_t request) const {
    return row(request) < 0 ? 0 : manager().requests().progress(row(request)).computed;
  }
  [[nodiscard]] bool has_table(std::int64_t request) const {
    return std::ranges::any_of(manager().table(request),
                               [](const Ids& blocks) { return !blocks.empty(); });
  }
  std::int64_t pick() {
    const auto& rows = manager().requests().rows();
    if (rows.empty()) return 0;
    auto at = rows.begin();
    std::advance(at, draw().below(rows.size()));
    return at->first;
  }
  std::int64_t pick_running() {
    const auto& rows = manager().requests().rows();
    const std::int64_t drawn = pick();
    for (auto at = rows.lower_bound(drawn); at != rows.end(); ++at)
      if (has_table(at->first)) return at->first;
    return drawn;
  }
  std::int64_t some_block() {
    for (const Ids& blocks : manager().table(pick()))
      if (!blocks.empty() && draw().percent(50)) return blocks[draw().below(blocks.size())];
    return draw().between(1, config_.num_blocks - 1);
  }
  // Of a request that has ended, or a new one.
  std::optional<std::int64_t> unused_number() {
    if (std::ssize(manager().requests().rows()) < most_numbers_)
      return std::ssize(manager().requests().rows());
    const std::int64_t drawn = pick();
    if (!has_table(drawn)) return drawn;
    return std::nullopt;
  }

  // ---- A step of the scheduler ----

  std::optional<Op> next_of_step() {
    while (!turns_.empty()) {
      const std::int64_t request = turns_.front();
      turns_.pop_front();
      if (auto op = turn(request)) return op;
    }
    if (!std::exchange(copied_, true)) return Op::of(TakeCopies{});
    if (!scheduled_.empty()) {
      const Turn done = scheduled_.front();
      scheduled_.pop_front();
      return computed_turn(done);
    }
    in_step_ = false;
    return std::nullopt;
  }

  std::optional<Op> turn(std::int64_t request) {
    if (const auto loaded = loading_.find(request); loaded != loading_.end()) {
      if (draw().percent(50)) return std::nullopt;  // not there yet
      const std::int64_t tokens = loaded->second;
      loading_.erase(loaded);
      plan(prefix::CacheTokens{request, tokens});
      return Op::of(prefix::SetRequest{.request = request, .computed = tokens});
    }
    if (!has_table(request)) {
      if (length(request) == 0 && draw().percent(90)) return std::nullopt;
      if (computed(request) != 0)
        return Op::of(prefix::SetRequest{.request = request, .computed = 0, .in_flight = 0});
      admission_ = request;
      // A connector may do with the common lookup.
      if (connects_ && draw().percent(70)) return Op::of(MatchConnector{request});
      return Op::of(Match{request});
    }
    const std::int64_t left = length(request) - computed(request);
    const std::int64_t room = config_.max_model_len - computed(request);
    if (room <= 0 || left <= 0) {
      loading_.erase(request);
      return Op::of(prefix::FreeRequest{request});
    }
    Allocate what{.request = request, .tokens = chunk(left)};
    if (left == 1 && drafts_ > 0) what.tokens = std::min(room, 1 + draw().between(0, drafts_));
    return slots(std::move(what));
  }

  std::int64_t chunk(std::int64_t left) {
    const std::int64_t most = config_.max_scheduled.value_or(config_.max_model_len);
    const std::int64_t tokens = draw().percent(60) ? left : draw().between(1, left);
    return std::min(tokens, most);
  }

  Op slots(Allocate what) {
    if (drafts_ > 0) what.lookahead = drafts_;
    if (draw().percent(6)) what.delay_caching = true;
    if (draw().percent(8)) what.full_sequence = true;
    if (draw().percent(6)) what.reserved = draw().between(0, 3);
    if (draw().percent(8)) what.others_scheduled = draw().percent(30);
    if (!cuts_ || what.tokens == 0) return Op::of(std::move(what));
    split_ = what;
    return Op::of(Split{.request = what.request,
                        .tokens = what.tokens,
                        .hit_tokens = what.hit_tokens,
                        .external = what.external});
  }

  // What was hit is adopted at once.
  void admit(std::int64_t request, const Tables& blocks, std::int64_t hit, std::int64_t boundary) {
    if (std::exchange(admission_, std::nullopt) != request || hit >= length(request)) return;
    plan(prefix::SetRequest{.request = request, .boundary = boundary});
    if (draw().percent(40)) plan(prefix::RecordHits{request, hit});
    if (disturbs_ && draw().percent(5)) disturb();
    const std::int64_t left = length(request) - hit;
    Allocate what{
        .request = request, .tokens = chunk(left), .hit_blocks = blocks, .hit_tokens = hit};
    if (hit == 0 && draw().percent(50)) {
      what.hit_blocks.reset();
      what.hit_tokens.reset();
    }
    if (left > 1 && draw().percent(connects_ ? 40 : 4)) {
      const std::int64_t unit = config_.hash_block;
      const std::int64_t units = (left - 1) / unit;
      if (units > 0) what.external = unit * draw().between(1, units);
      what.tokens = std::min(what.tokens, left - what.external.value_or(0));
      if (what.external && draw().percent(40)) {
        what.tokens = 0;
        what.delay_caching = true;
        what.reserved = draw().between(0, 2);
        if (drafts_ > 0) what.lookahead = drafts_;
        return plan(std::move(what));
      }
      if (what.external && draw().percent(20)) what.loaded_groups = Ids{0};
    }
    plan(slots(std::move(what)));
  }
  // Between a lookup and its slots comes what a scheduler must not do (PX-47).
  void disturb() {
    plan(prefix::Take{draw().between(0, manager().free_blocks())});
    reach(Seen::kStaleHits);
  }

  Op computed_turn(const Turn& turn) {
    std::int64_t end = turn.start + turn.tokens;
    const std::int64_t known = length(turn.request);
    const std::int64_t room = config_.max_model_len - known;
    Tokens output;
    if (end >= known && room > 0) {  // a token, and the drafts that it confirms
      const std::int64_t drafts = end - known;
      const std::int64_t accepted = std::min(draw().between(0, drafts), room - 1);
      if (drafts > 0) reach(accepted > 0 ? Seen::kDraftsAccepted : Seen::kDraftsRejected);
      end = known + accepted;
      output = texts_.some(draw(), accepted + 1);
    }
    end = std::min(end, known + std::ssize(output));
    if (!output.empty()) plan(prefix::Append{turn.request, std::move(output)});
    if (turn.delayed) plan(prefix::CacheTokens{turn.request, end});
    prefix::SetRequest set{.request = turn.request, .computed = end};
    // Engines mostly have whole steps in flight.
    if (lags_) set.in_flight = std::min(draw().between(0, 2 * turn.tokens), turn.tokens);
    return Op::of(set);
  }

  void plan_preemption(std::int64_t request) {
    if (!has_table(request)) return;
    reach(Seen::kPreempted);
    if (std::erase_if(scheduled_, [&](const Turn& turn) { return turn.request == request; }) > 0)
      reach(Seen::kPreemptedInItsStep);
    std::erase(turns_, request);
    loading_.erase(request);
    plan(prefix::FreeRequest{request});
    plan(prefix::SetRequest{
        .request = request,
        .computed = 0,
        .status = RequestStatus::kPreempted,
        .in_flight = 0,
        .preemptions = manager().requests().progress(row(request)).preemptions + 1});
  }

  // ---- Labels ----

  void learn_config() {
    const auto has = [&](GroupKind kind) {
      return std::ranges::find(config_.groups, kind, &Group::kind) != config_.groups.end();
    };
    if (has(GroupKind::kRing)) reach(SetUp::kRingOfABlock);
    if (has(GroupKind::kChunkedLocal)) reach(SetUp::kChunkedGroup);
    if (has(GroupKind::kRswa)) reach(SetUp::kPromptWindow);
    if (std::ranges::any_of(config_.groups, &Group::replay)) reach(SetUp::kReplayedWindow);
    if (config_.groups.size() == 1) reach(SetUp::kOneGroup);
    if (config_.groups.size() == 4) reach(SetUp::kFourGroups);
    if (config_.retention && config_.retention->has_value())
      reach(**config_.retention == 0 ? SetUp::kRetentionZero : SetUp::kSegments);
    if (layout_.junction) reach(SetUp::kJunction);
    if (!config_.enable_caching) reach(SetUp::kCachingOff);
    if (states_ && !cuts_) reach(SetUp::kStatesWithoutCaching);
    if (config_.split_block) reach(SetUp::kSmallSplit);
  }
  void learn_hit(std::int64_t request, const Tables& blocks, std::int64_t length) {
    if (length == 0) return;
    reach(Seen::kCommonHit);
    std::set<std::int64_t> sizes;
    std::size_t hit = 0;
    bool only_states = true;
    bool inside = false;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Group& group = config_.groups[i];
      if (blocks[i].empty()) continue;
      ++hit;
      sizes.insert(group.block_size);
      inside = inside || length % group.block_size != 0;
      only_states = only_states && is_state(group);
      if (is_state(group)) reach(Seen::kStateHit);
      if (is_window(group)) reach(Seen::kWindowHit);
    }
    if (inside) reach(Seen::kHitInsideABlock);
    if (only_states) reach(Seen::kHitOfStatesAlone);
    if (hit >= 3) reach(Seen::kHitOfThreeGroups);
    if (sizes.size() > 1) reach(Seen::kHitOfTwoSizes);
    if (!layout_.drops.empty()) reach(Seen::kHitUnderDraftHeads);
    if (manager().requests().progress(row(request)).preemptions > 0) reach(Seen::kResumedWithAHit);
    if (manager().requests().text(row(request)).report) reach(Seen::kReportedHit);
  }

  Config config_;
  Texts texts_;
  std::int64_t most_tokens_;   // of a prompt
  std::int64_t most_numbers_;  // of requests at a time
  bool connects_;              // rows are loaded from elsewhere
  bool lags_;                  // the tokens of a step are in flight when the next one begins
  bool disturbs_;              // hits get stale
  bool cuts_ = false;          // chunks go through split
  bool states_ = false;
  std::int64_t drafts_ = 0;  // of a step
  bool started_ = false;
  int refused_ = 0;
  bool reported_ = false;
  SetupReturns layout_;
  // Of the step that is under way.
  bool in_step_ = false;
  bool copied_ = false;
  std::deque<std::int64_t> turns_;
  std::deque<Turn> scheduled_;
  std::optional<std::int64_t> admission_;         // whose match is under way
  std::optional<Allocate> split_;                 // what follows the split under way
  std::map<std::int64_t, std::int64_t> loading_;  // tokens that a request waits for
  Ids held_;                                      // pinned by hand
};

GeneratedCase make_blocks_case(const CaseTerms& terms) {
  Config config = draw_config(terms);
  auto script = std::make_unique<BlocksScript>(terms, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::move(script)};
}

}  // namespace

Generator blocks_generator() {
  Generator made{.kind = &blocks_kind(), .make = make_blocks_case};
  prefix::add_states<BlocksSeen>(made, {BlocksSeen::kStoredEventWithoutKeys});
  prefix::add_states<BlocksConfigSeen>(made, {});
  return made;
}

}  // namespace kvo::groups
