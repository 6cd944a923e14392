// properties/prefix/radix_script.hpp: random scripts for prefix.radix: the tree by hand, requests
// as a scheduler drives them, or both beside slots that are taken by hand.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/prefix/texts.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(RadixSeen, std::uint8_t, kWholeHit, kSplit, kNothingHeld,
                              kHeldTokensInserted, kEvictedByLru, kEvictedByMru, kEvictedByFifo,
                              kEvictedByFilo, kEvictedByLfu, kEvictedByPriority, kEvictedBySlru,
                              kEvictedByTlru, kEvictedMoreThanAsked, kParentEvictedAfterItsChild,
                              kNothingToEvict, kLocked, kLockedBranch, kRequestInANamespace,
                              kExtendExhausted, kExtendEvicts, kWithdrawn, kFinishedWithoutKeeping,
                              kStagedSlots, kNothingAvailable, kDisabled, kPairs, kStoredEvent,
                              kRemovedEvent, kClearedEvent, kEventOfSeveralPages,
                              kSegmentWithinAPage, kSecondGroup, kAllSlotsOfAnEmptyTree,
                              kPagesByHand, kPagesNotSupported, kAllocExhausted, kNodeOf256Tokens,
                              kDepth64, k64Children, kHitOf1024Tokens, kSlotsBeyond1024, kPageOf16,
                              kRequestsBeyond32, kLockedBeyondOneByte, kLockedBeyondTwoBytes,
                              kHitsBeyondTwoBytes, kNodesBeyondTwoBytes)
// Planned orders, and a life that is long.
BOOST_DEFINE_FIXED_ENUM_CLASS(RadixLabel, std::uint8_t, kEvictedBetweenMatchAndLock,
                              kSameContentTwice, kFullPoolOfPinned, kSplitUnderALock, kAroundAPage,
                              kPromptPartedFromOutput, kOrderOfEviction, kResetWhileInUse,
                              kResetUnderARequest, kEventsJoined, kSameTokensInNamespaces,
                              kUnlockedTooOften, kFreedTwice, kFreedInAGroup, kTailEvictedFirst,
                              kPreemptedAndResumed, kRestOfAPartialHit, kCountedBeyondTwoBytes)

/// A case's script.
class RadixScript final : public ScriptGenerator<RadixScript, RadixOps, RadixLabel> {
  using S = RadixScript;
  using Label = RadixLabel;
  using Seen = RadixSeen;

 public:
  RadixScript(const CaseTerms& terms, const RadixConfig& config);

  std::optional<Op> next() override;

  // Steps. One that does not fit how the case is driven draws another.
  Op advance();
  Op request();
  Op finish();
  Op withdraw();
  Op row();
  Op insert();
  Op match();
  Op touch();
  Op evict();
  Op make_room();
  Op lock();
  Op unlock();
  Op reset();
  Op all_slots() { return Op::of(AllSlots{}); }
  Op alloc();
  Op alloc_extend();
  Op alloc_decode();
  Op free_slots();
  Op free_segment();
  Op group();
  Op events() { return Op::of(TakeEvents{}); }
  Op state() { return Op::of(ShowTree{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {60, "advance", &S::advance, true},
      {16, "request", &S::request, true},
      {5, "finish", &S::finish},
      {3, "withdraw", &S::withdraw},
      {4, "row", &S::row},
      {24, "insert", &S::insert, true},
      {16, "match", &S::match},
      {4, "touch", &S::touch},
      {10, "evict", &S::evict},
      {3, "make_room", &S::make_room},
      {8, "lock", &S::lock},
      {6, "unlock", &S::unlock},
      {1, "reset", &S::reset},
      {3, "all_slots", &S::all_slots},
      {6, "alloc", &S::alloc},
      {6, "alloc_extend", &S::alloc_extend},
      {4, "alloc_decode", &S::alloc_decode},
      {6, "free", &S::free_slots},
      {5, "free_segment", &S::free_segment},
      {3, "group", &S::group},
      {4, "events", &S::events},
      {20, "state", &S::state, true},
  });

  // Planned orders.
  std::optional<Op> evicted_between_match_and_lock(std::size_t number);
  std::optional<Op> same_content_twice(std::size_t number);
  std::optional<Op> full_pool_of_pinned(std::size_t number);
  std::optional<Op> split_under_a_lock(std::size_t number);
  std::optional<Op> around_a_page(std::size_t number);
  std::optional<Op> prompt_parted_from_output(std::size_t number);
  std::optional<Op> order_of_eviction(std::size_t number);
  std::optional<Op> reset_while_in_use(std::size_t number);
  std::optional<Op> reset_under_a_request(std::size_t number);
  std::optional<Op> events_joined(std::size_t number);
  std::optional<Op> same_tokens_in_namespaces(std::size_t number);
  std::optional<Op> unlocked_too_often(std::size_t number);
  std::optional<Op> freed_twice(std::size_t number);
  std::optional<Op> freed_in_a_group(std::size_t number);
  std::optional<Op> tail_evicted_first(std::size_t number);
  std::optional<Op> preempted_and_resumed(std::size_t number);
  std::optional<Op> rest_of_a_partial_hit(std::size_t number);

  using Plan = ScriptPlan<S, Label>;
  static constexpr std::array kPlans{
      Plan{1, Label::kEvictedBetweenMatchAndLock, 7, &S::evicted_between_match_and_lock},
      Plan{1, Label::kSameContentTwice, 6, &S::same_content_twice},
      Plan{2, Label::kFullPoolOfPinned, 11, &S::full_pool_of_pinned},
      Plan{2, Label::kSplitUnderALock, 8, &S::split_under_a_lock},
      Plan{1, Label::kAroundAPage, 8, &S::around_a_page},
      Plan{3, Label::kPromptPartedFromOutput, 12, &S::prompt_parted_from_output},
      Plan{2, Label::kOrderOfEviction, 10, &S::order_of_eviction},
      Plan{1, Label::kResetWhileInUse, 7, &S::reset_while_in_use},
      Plan{1, Label::kResetUnderARequest, 8, &S::reset_under_a_request},
      Plan{1, Label::kEventsJoined, 7, &S::events_joined},
      Plan{1, Label::kSameTokensInNamespaces, 8, &S::same_tokens_in_namespaces},
      Plan{1, Label::kUnlockedTooOften, 7, &S::unlocked_too_often},
      Plan{1, Label::kFreedTwice, 9, &S::freed_twice},
      Plan{2, Label::kFreedInAGroup, 9, &S::freed_in_a_group},
      Plan{1, Label::kTailEvictedFirst, 9, &S::tail_evicted_first},
      Plan{2, Label::kPreemptedAndResumed, 11, &S::preempted_and_resumed},
      Plan{2, Label::kRestOfAPartialHit, 7, &S::rest_of_a_partial_hit}};

  // What became of an operation.
  void observe(const MatchTokens& op, const Observation& seen);
  void observe(const TouchTokens& op, const Observation& seen);
  void observe(const Insert& op, const Observation& seen);
  void observe(const EvictUnits& op, const Observation& seen);
  void observe(const MakeRoom& op, const Observation& seen);
  void observe(const Lock& op, const Observation& seen);
  void observe(const Unlock& op, const Observation& seen);
  void observe(const ResetTree& op, const Observation& seen);
  void observe(const AllSlots& op, const Observation& seen);
  void observe(const AllocSlots& op, const Observation& seen);
  void observe(const AllocExtend& op, const Observation& seen);
  void observe(const AllocDecode& op, const Observation& seen);
  void observe(const FreeSlots& op, const Observation& seen);
  void observe(const FreeSegment& op, const Observation& seen);
  void observe(const GroupBegin& op, const Observation& seen);
  void observe(const GroupEnd& op, const Observation& seen);
  void observe(const FileRequest& op, const Observation& seen);
  void observe(const Admit& op, const Observation& seen);
  void observe(const Extend& op, const Observation& seen);
  void observe(const Withdraw& op, const Observation& seen);
  void observe(const Finish& op, const Observation& seen);
  void observe(const TakeEvents& op, const Observation& seen);
  void observe(const ShowTree& op, const Observation& seen);
  template <OneOf<ClearSlots, Checkpoint, ShowRow> T>
  void observe(const T& /*nothing to follow*/, const Observation& /*seen*/) {
    pay(0);
  }

 private:
  /// How a case is driven.
  enum class Drive : std::uint8_t { kTree, kRequests, kBoth };
  /// What a long life is mostly made of.
  enum class Theme : std::uint8_t { kAny, kInserts, kLocks, kChurn };
  /// How a large tree grows.
  enum class Shape : std::uint8_t { kAny, kDeep, kWide };

  struct Request {
    Tokens tokens = {};
    bool admitted = false;
    bool has_row = false;
    std::int64_t row = 0;  ///< slots in it, or units that its admission hit
  };

  [[nodiscard]] bool is_tree() const { return drive_ == Drive::kTree; }
  /// Whether the nodes must stay for as long as the case lives.
  [[nodiscard]] bool counts_up() const {
    return theme_ == Theme::kInserts || theme_ == Theme::kLocks;
  }
  std::optional<std::int64_t> pick(bool with_row);
  std::int64_t new_number();
  Op step(std::int64_t request);
  Op extend(std::int64_t request, std::int64_t tokens, Tokens append = {});
  Tokens text() { return texts_.next(draw(), most_tokens_); }
  template <class T>
  T in_namespace(T what);
  Op insert_by_hand(Insert what);
  Op insert_text(Tokens tokens);
  Op evict_units(std::int64_t units);
  std::int64_t units(std::int64_t tokens) const;
  std::int64_t tokens_for(std::int64_t units) const;
  Ids rows_for_call(std::int64_t most);
  void gone(const Ids& nodes);
  void met(std::int64_t node);
  void evicted(std::int64_t asked, std::int64_t units, const Ids& nodes);
  void grow(const Ids& lengths, const Ids& slots);
  void pay(std::int64_t items) {
    constexpr std::uint64_t kCost = 50;  // of an operation, in cells
    spend(kCost +
          (is_long() ? 0 : static_cast<std::uint64_t>(2 * in_tree_ + items + config_.slots)));
  }

  // Parts of plans.
  Tokens pages(std::int64_t count) { return texts_.fresh(tokens_for(count * config_.page_size)); }
  Tokens first_pages(const Tokens& tokens, std::int64_t count) const;
  std::optional<Op> request_of(std::int64_t& number, Tokens tokens);
  Op match_of(Tokens tokens) { return Op::of(MatchTokens{.tokens = std::move(tokens)}); }
  [[nodiscard]] bool keeps() const { return !config_.disable; }

  RadixConfig config_;
  Texts texts_;
  Drive drive_;
  Theme theme_ = Theme::kAny;
  Shape shape_ = Shape::kAny;
  Tokens deepest_;  // with Shape::kDeep, what was inserted last
  /// Whether the tree's slots come from the allocator. Else nothing takes or frees slots, but for
  /// what eviction gives back: in profile documented that is misuse, and nothing is evicted.
  bool owns_slots_;
  bool documented_;
  std::int64_t most_tokens_;    // of a prompt
  std::int64_t most_requests_;  // at a time
  std::map<std::int64_t, Request> requests_;
  std::int64_t next_number_ = 0;
  std::set<std::int64_t> nodes_;               // that are there
  std::int64_t newest_ = 0;                    // node of the highest number
  Ids locks_;                                  // by hand
  std::map<std::int64_t, std::int64_t> owed_;  // nodes that were unlocked too often
  std::vector<Ids> rows_;                      // slots taken by hand
  Ids called_;                           // rows that the next answer belongs to, -1: a new one
  std::optional<Insert> inserted_next_;  // as soon as it has slots
  std::int64_t offered_ = 0;             // slots of the last insert that were taken for it
  bool in_group_ = false;
  std::int64_t available_ = 0;  // at the last state
  std::int64_t in_tree_ = 0;    // units, about
  std::int64_t next_slot_ = 0;
  // Of the plan that is followed.
  Tokens text_;
  Tokens other_;
  std::int64_t node_ = 0;
  std::int64_t first_ = 0;
  std::int64_t second_ = 0;
  Ids taken_;
};

}  // namespace kvo::prefix
