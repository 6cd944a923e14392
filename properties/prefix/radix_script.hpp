// properties/prefix/radix_script.hpp: random scripts for prefix.radix: the tree by hand, requests
// as a scheduler drives them, or both beside slots that are taken by hand.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
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
// A life that is long.
BOOST_DEFINE_FIXED_ENUM_CLASS(RadixLabel, std::uint8_t, kCountedBeyondTwoBytes)

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

  static const CacheKind& order_kind() { return radix_kind(); }
  static std::span<const OrderWord> order_words();

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

  // Parts of orders. Texts are numbered: 0 text_, 1 other_.
  Tokens pages(std::int64_t count) { return texts_.fresh(tokens_for(count * config_.page_size)); }
  void draw_text(std::int64_t pages_of_it) { text_ = pages(pages_of_it); }
  void draw_other(std::int64_t pages_of_it) { other_ = pages(pages_of_it); }
  void continue_text(std::int64_t more_pages) {
    other_ = text_;
    for (const Token token : pages(more_pages)) other_.push_back(token);
  }
  [[nodiscard]] const Tokens& numbered(std::int64_t text) const {
    return text == 0 ? text_ : other_;
  }
  // The beginning of text_.
  [[nodiscard]] Tokens first(std::int64_t units) const {
    return {text_.begin(), text_.begin() + std::min(std::ssize(text_), tokens_for(units))};
  }
  Op insert_numbered(std::int64_t text) { return insert_text(numbered(text)); }
  Op insert_pages(std::int64_t count) { return insert_text(pages(count)); }
  Op insert_fresh(std::int64_t tokens) { return insert_text(texts_.fresh(tokens)); }
  Op insert_first(std::int64_t units) { return insert_text(first(units)); }
  Op insert_by_priority(std::int64_t text, std::int64_t priority) {
    return insert_by_hand({.tokens = numbered(text), .priority = priority});
  }
  Op insert_in(std::int64_t space) { return insert_by_hand(in_space(Insert{}, space)); }
  Op match_in(std::int64_t space) { return Op::of(in_space(MatchTokens{}, space)); }
  Op match_text() { return Op::of(MatchTokens{.tokens = text_}); }
  Op match_first(std::int64_t units) { return Op::of(MatchTokens{.tokens = first(units)}); }
  Op touch_numbered(std::int64_t text) { return Op::of(TouchTokens{.tokens = numbered(text)}); }
  // text_ in a namespace: 0: extra key x; 1: an empty one; 2: that and a salt; 3: the salt alone;
  // 4: extra key x and an empty salt.
  template <class T>
  T in_space(T what, std::int64_t space) const {
    what.tokens = text_;
    if (space != 3) what.extra = space == 0 || space == 4 ? "x" : "";
    if (space >= 2) what.salt = space == 4 ? "" : "s";
    return what;
  }
  void choose_newest() { node_ = newest_; }
  std::optional<Op> file(std::int64_t& number, Tokens tokens) {
    if (is_tree() || tokens.empty()) return std::nullopt;
    number = next_number_++;
    return Op::of(FileRequest{.request = number, .tokens = std::move(tokens)});
  }
  std::optional<Op> file_first(std::int64_t tokens) { return file(first_, texts_.fresh(tokens)); }
  std::optional<Op> file_second(std::int64_t tokens) { return file(second_, texts_.fresh(tokens)); }
  std::optional<Op> file_first_text() { return file(first_, text_); }
  std::optional<Op> file_second_text() { return file(second_, text_); }
  Op extend_all(std::int64_t request) {
    return extend(request, std::ssize(requests_[request].tokens));
  }
  Op extend_rest(std::int64_t request) {
    return extend(request, std::ssize(requests_[request].tokens) - requests_[request].row);
  }
  Op extend_more(std::int64_t request, std::int64_t more) {
    return extend(request, more, texts_.fresh(more));
  }
  Op end_second() {
    if (requests_[second_].has_row) return Op::of(Finish{.request = second_});
    if (!requests_[second_].admitted) return state();
    return Op::of(Withdraw{second_});
  }
  void forget_taken() { taken_.clear(); }
  std::optional<Op> free_taken() {
    if (taken_.empty()) return std::nullopt;
    if (!rows_.empty() && rows_.back() == taken_) rows_.pop_back();
    return Op::of(FreeSlots{taken_});
  }
  [[nodiscard]] bool keeps() const { return !config_.disable; }
  [[nodiscard]] bool has_events() const { return config_.events; }
  [[nodiscard]] bool drives_by_hand() const { return drive_ != Drive::kRequests; }
  [[nodiscard]] bool drives_both() const { return drive_ == Drive::kBoth; }
  [[nodiscard]] bool has_admitted() const {
    return std::ranges::any_of(requests_, [](const auto& one) { return one.second.admitted; });
  }
  [[nodiscard]] bool is_known(std::int64_t request) const { return requests_.contains(request); }
  bool has_row(std::int64_t request) { return requests_[request].has_row; }
  bool fills_row(std::int64_t request) {
    return std::ssize(requests_[request].tokens) >= requests_[request].row;
  }
  [[nodiscard]] std::int64_t page_size() const { return config_.page_size; }
  [[nodiscard]] std::int64_t tokens_of_pages(std::int64_t count) const {
    return tokens_for(count * config_.page_size);
  }

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
  // Of the order that is followed.
  Tokens text_;
  Tokens other_;
  std::int64_t node_ = 0;
  std::int64_t first_ = 0;
  std::int64_t second_ = 0;
  Ids taken_;
};

}  // namespace kvo::prefix
