// properties/prefix/blocks_script.hpp: random scripts for prefix.blocks: requests as a scheduler
// drives them, and the pool by hand beside it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/prefix/texts.hpp"
#include "reference/prefix/blocks.hpp"

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
    kRequestsBeyond64, kPinnedBeyondOneByte, kPinnedBeyondTwoBytes)
// Planned orders, and a life that is long.
BOOST_DEFINE_FIXED_ENUM_CLASS(BlocksLabel, std::uint8_t, kEvictedBetweenMatchAndAllocate,
                              kSameContentTwice, kFullPoolOfPinned, kAroundTheWindow,
                              kFailedAllocateUnderAWindow, kPreemptedAndResumed, kTailEvictedFirst,
                              kAroundABlock, kResetWhileInUse, kReleasedTwice, kRemovedWhileHeld,
                              kSameTokensInNamespaces, kEvictedInUse, kChunksOnNothing, kSparseKeys,
                              kCountedBeyondTwoBytes)

/// A case's script.
class BlocksScript final : public ScriptGenerator<BlocksScript, BlocksOps, BlocksLabel> {
  using S = BlocksScript;
  using Label = BlocksLabel;
  using Seen = BlocksSeen;

 public:
  BlocksScript(const CaseTerms& terms, const BlocksConfig& config);

  std::optional<Op> next() override;

  // Steps.
  Op advance();
  Op make();
  Op finish();
  Op preempt();
  Op append();
  Op set();
  Op match();
  Op allocate();
  Op cache();
  Op skip();
  Op pop();
  Op take();
  Op touch();
  Op release();
  Op evict();
  Op reset() { return Op::of(ResetBlocks{}); }
  Op look_up();
  Op table() { return Op::of(ShowTable{pick()}); }
  Op cached_tokens() { return Op::of(CachedTokens{pick()}); }
  Op usage() { return Op::of(ShowUsage{}); }
  Op record() { return Op::of(RecordHits{pick(), draw().between(0, 9)}); }
  Op stats() { return Op::of(ShowStatistics{}); }
  Op events() { return Op::of(TakeEvents{}); }
  Op state() { return Op::of(ShowBlocks{}); }

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

  // Planned orders.
  std::optional<Op> evicted_between_match_and_allocate(std::size_t number);
  std::optional<Op> same_content_twice(std::size_t number);
  std::optional<Op> full_pool_of_pinned(std::size_t number);
  std::optional<Op> around_the_window(std::size_t number);
  std::optional<Op> failed_allocate_under_a_window(std::size_t number);
  std::optional<Op> preempted_and_resumed(std::size_t number);
  std::optional<Op> tail_evicted_first(std::size_t number);
  std::optional<Op> around_a_block(std::size_t number);
  std::optional<Op> reset_while_in_use(std::size_t number);
  std::optional<Op> released_twice(std::size_t number);
  std::optional<Op> removed_while_held(std::size_t number);
  std::optional<Op> same_tokens_in_namespaces(std::size_t number);
  std::optional<Op> evicted_in_use(std::size_t number);
  std::optional<Op> chunks_on_nothing(std::size_t number);
  std::optional<Op> sparse_keys(std::size_t number);

  using Plan = ScriptPlan<S, Label>;
  static constexpr std::array kPlans{
      Plan{2, Label::kEvictedBetweenMatchAndAllocate, 10, &S::evicted_between_match_and_allocate},
      Plan{2, Label::kSameContentTwice, 11, &S::same_content_twice},
      Plan{2, Label::kFullPoolOfPinned, 8, &S::full_pool_of_pinned},
      Plan{3, Label::kAroundTheWindow, 12, &S::around_the_window},
      Plan{3, Label::kFailedAllocateUnderAWindow, 9, &S::failed_allocate_under_a_window},
      Plan{2, Label::kPreemptedAndResumed, 9, &S::preempted_and_resumed},
      Plan{2, Label::kTailEvictedFirst, 11, &S::tail_evicted_first},
      Plan{2, Label::kAroundABlock, 11, &S::around_a_block},
      Plan{1, Label::kResetWhileInUse, 9, &S::reset_while_in_use},
      Plan{1, Label::kReleasedTwice, 9, &S::released_twice},
      Plan{1, Label::kRemovedWhileHeld, 9, &S::removed_while_held},
      Plan{1, Label::kSameTokensInNamespaces, 10, &S::same_tokens_in_namespaces},
      Plan{1, Label::kEvictedInUse, 8, &S::evicted_in_use},
      Plan{1, Label::kChunksOnNothing, 6, &S::chunks_on_nothing},
      Plan{2, Label::kSparseKeys, 8, &S::sparse_keys}};

  // What became of an operation.
  void observe(const MakeRequest& op, const Observation& seen);
  void observe(const Append& op, const Observation& seen);
  void observe(const SetRequest& op, const Observation& seen);
  void observe(const MatchBlocks& op, const Observation& seen);
  void observe(const Allocate& op, const Observation& seen);
  void observe(const ShowTable& op, const Observation& seen);
  void observe(const FreeRequest& op, const Observation& seen);
  void observe(const Pop& op, const Observation& seen);
  void observe(const Take& op, const Observation& seen);
  void observe(const TouchBlocks& op, const Observation& seen);
  void observe(const Release& op, const Observation& seen);
  void observe(const EvictBlocks& op, const Observation& seen);
  void observe(const ResetBlocks& op, const Observation& seen);
  void observe(const TakeEvents& op, const Observation& seen);
  void observe(const ShowBlocks& op, const Observation& seen);
  template <OneOf<CacheTokens, Skip, LookUp, CachedTokens, ShowUsage, RecordHits, ShowStatistics> T>
  void observe(const T& /*nothing to follow*/, const Observation& /*seen*/) {
    spend(kCost);
  }

 private:
  static constexpr std::uint64_t kCost = 50;  // of an operation, in cells

  /// What the script knows of a request.
  struct Request {
    Tokens tokens = {};
    std::int64_t computed = 0;
    bool has_table = false;
    bool is_running = false;
    std::int64_t preemptions = 0;
    Ids blocks = {};  ///< that it was handed out last
    Ids hits = {};    ///< of its last match
    std::int64_t hit_length = 0;
  };

  std::int64_t pick();
  std::int64_t pick_running();
  Op make(std::int64_t request, Tokens tokens);
  Op admit(std::int64_t request);
  Op decode(std::int64_t request);
  Op with_flags(Allocate allotment);
  Allocate admission(std::int64_t request);
  void disturb();
  void remember(const Ids& blocks);
  std::optional<std::int64_t> unused_number();
  void pay(std::int64_t items) {
    spend(kCost + static_cast<std::uint64_t>(items + config_.num_blocks));
  }

  // Parts of plans.
  Tokens text_of(std::int64_t tokens);
  std::optional<Op> make_for_plan(std::int64_t& number, MakeRequest what = {});
  Op whole(std::int64_t request, bool adopt);
  Op more(std::int64_t request, std::int64_t tokens);
  Op take_all(std::int64_t leave) { return Op::of(Take{std::max<std::int64_t>(free_ - leave, 0)}); }
  Op release_taken() { return Op::of(Release{taken_}); }
  std::optional<Op> evict_first_block(std::int64_t request);
  std::int64_t window() const { return config_.window.value_or(1); }

  BlocksConfig config_;
  Texts texts_;
  std::int64_t most_tokens_;   // of a prompt
  std::int64_t most_numbers_;  // of requests at a time
  std::map<std::int64_t, Request> requests_;
  std::optional<std::int64_t> admitted_;     // its match is under way
  std::optional<std::int64_t> cached_next_;  // its table is asked for
  Ids held_;                                 // blocks pinned by hand, once each
  Ids seen_;                                 // some blocks that were handed out
  std::int64_t free_ = 0;                    // at the last state
  std::int64_t keys_ = 0;                    // numbers of keys that were shown
  std::int64_t next_number_ = 0;
  bool dry_ = false;                           // a take found too few
  std::map<std::int64_t, std::int64_t> owed_;  // blocks that were released too often
  bool pins_ = false;                          // a long life of one block that many pin
  // Of the plan that is followed.
  std::int64_t first_ = 0;
  std::int64_t second_ = 0;
  Tokens text_;
  Ids taken_;
};

}  // namespace kvo::prefix
