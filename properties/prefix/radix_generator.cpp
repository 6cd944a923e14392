// Random scripts for prefix.radix: the tree by hand, requests as a scheduler drives them, or both
// beside slots that are taken by hand.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/prefix/texts.hpp"
#include "reference/prefix/radix_cache.hpp"

namespace kvo::prefix {
namespace {
// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(RadixSeen, std::uint8_t, kWholeHit, kNothingHeld, kHeldTokensInserted,
                              kEvictedByLru, kEvictedByMru, kEvictedByFifo, kEvictedByFilo,
                              kEvictedByLfu, kEvictedByPriority, kEvictedBySlru, kEvictedByTlru,
                              kEvictedMoreThanAsked, kParentEvictedAfterItsChild, kNothingToEvict,
                              kLocked, kLockedBranch, kRequestInANamespace, kExtendExhausted,
                              kExtendEvicts, kWithdrawn, kFinishedWithoutKeeping, kStagedSlots,
                              kNothingAvailable, kDisabled, kPairs, kStoredEvent, kRemovedEvent,
                              kClearedEvent, kEventOfSeveralPages, kSegmentWithinAPage,
                              kSecondGroup, kAllSlotsOfAnEmptyTree, kPagesByHand,
                              kPagesNotSupported, kAllocExhausted, kNodeOf256Tokens, kDepth64,
                              k64Children, kHitOf1024Tokens, kSlotsBeyond1024, kPageOf16,
                              kRequestsBeyond32, kLockedBeyondOneByte, kLockedBeyondTwoBytes,
                              kHitsBeyondTwoBytes, kNodesBeyondTwoBytes)
// A life that is long.
BOOST_DEFINE_FIXED_ENUM_CLASS(RadixLabel, std::uint8_t, kCountedBeyondTwoBytes)

// The states are in the order of the policies.
RadixSeen evicted_by(Policy policy) {
  return static_cast<RadixSeen>(static_cast<int>(RadixSeen::kEvictedByLru) +
                                static_cast<int>(policy));
}

/// A case's script.
class RadixScript final : public ScriptGenerator<RadixScript, RadixOps, RadixLabel> {
  using S = RadixScript;
  using Label = RadixLabel;
  using Seen = RadixSeen;

 public:
  RadixScript(const CaseTerms& terms, const RadixConfig& config)
      : ScriptGenerator(terms),
        config_(config),
        texts_(config.page_size, terms.seed),
        drive_(draw().one_of({Drive::kTree, Drive::kRequests, Drive::kBoth})),
        owns_slots_(draw().percent(60)),
        documented_(terms.profile == Profile::kDocumented),
        most_tokens_(is_large()  ? std::max<std::int64_t>(config.slots / 3, 1)
                     : is_long() ? 3 * config.page_size
                                 : std::max<std::int64_t>(config.slots / 2, 2)),
        most_requests_(is_large() ? draw().edge(4, 129) : draw().between(2, 5)),
        next_slot_(config.slots) {
    if (is_large() && is_tree() && draw().percent(30)) most_tokens_ = 2'100;
    if (is_large() && draw().percent(50)) shape_ = draw().one_of({Shape::kDeep, Shape::kWide});
    // What is disabled has no tree that a request could be filed in.
    if (config_.disable) drive_ = Drive::kTree;
    if (!is_tree() || documented_) owns_slots_ = true;
    if (!is_long()) return;
    // A plain life, or one of many nodes; the others count one thing up.
    if (draw().percent(10)) return;
    theme_ = draw().one_of({Theme::kInserts, Theme::kLocks, Theme::kChurn});
    drive_ = Drive::kTree;
    owns_slots_ = false;
  }

  std::optional<Op> choose() override {
    if (!std::exchange(has_begun_, true)) return state();
    spend(static_cast<std::uint64_t>(
        kCost + (is_long() ? 0 : 2 * std::max<std::int64_t>(tree().units(), 0) + config_.slots)));
    if (has_plan() || theme_ == Theme::kAny || draw().percent(8)) return ScriptGenerator::choose();
    if (theme_ == Theme::kChurn && tree().newest() - tree().root() > 8) return reset();
    if (theme_ == Theme::kChurn) return insert_text(texts_.fresh(tokens_for(config_.page_size)));
    const auto node = node_from(tree().root() + 1);
    if (theme_ == Theme::kInserts || !node)
      return insert_text(Tokens(static_cast<std::size_t>(tokens_for(config_.page_size)), 1));
    return Op::of(Lock{*node});
  }

  // Steps. One that does not fit how the case is driven draws another.
  Op advance() {
    if (is_tree()) return draw().percent(60) ? insert() : look_up<MatchTokens>();
    if (shape_ == Shape::kWide && std::ssize(requests_) < most_requests_ && draw().percent(70))
      return request();
    const auto number = pick(false);
    return number ? step(*number) : request();
  }
  Op request() {
    if (is_tree()) return insert();
    if (std::ssize(requests_) >= most_requests_) return step(*pick(false));
    const std::int64_t number = new_number();
    if (admitted(number)) return step(number);
    FileRequest what{.request = number, .tokens = drawn_text()};
    if (shape_ == Shape::kWide) what.tokens = texts_.fresh(draw().between(1, 5));
    if (what.tokens.empty()) what.tokens = texts_.some(draw(), 1);
    if (draw().percent(20)) what.priority = draw().between(-1, 3);
    return Op::of(in_namespace(std::move(what)));
  }
  Op finish() {
    const auto number = pick(true);
    if (!number) return advance();
    Finish what{.request = *number};
    if (draw().percent(40)) what.keep = draw().percent(40);
    return Op::of(what);
  }
  Op withdraw() {
    for (const std::int64_t number : requests_)
      if (admitted(number) && !has_row(number)) return Op::of(Withdraw{number});
    return advance();
  }
  Op row() {
    const auto number = pick(true);
    return number ? Op::of(ShowRow{*number}) : advance();
  }
  // The tree.
  Op insert() {
    if (drive_ == Drive::kRequests) return advance();
    if (shape_ == Shape::kWide) return insert_text(texts_.fresh(tokens_for(config_.page_size)));
    if (shape_ == Shape::kDeep && draw().percent(70)) {
      if (std::ssize(deepest_) > most_tokens_) deepest_.clear();
      const std::int64_t more =
          deepest_.empty() ? tokens_for(config_.page_size) : config_.page_size;
      for (const Token token : texts_.fresh(more)) deepest_.push_back(token);
      return insert_text(deepest_);
    }
    Insert what = in_namespace(Insert{.tokens = drawn_text()});
    if (draw().percent(20)) what.priority = draw().between(-1, 3);
    if (draw().percent(20)) what.inserted = draw().between(0, std::ssize(what.tokens));
    return insert_by_hand(std::move(what));
  }
  template <OneOf<MatchTokens, TouchTokens> T>
  Op look_up() {
    T what = in_namespace(T{.tokens = drawn_text()});
    if (draw().percent(15)) what.limit = draw().between(0, std::ssize(what.tokens) + 1);
    return Op::of(std::move(what));
  }
  Op evict() { return evict_units(draw().percent(15) ? config_.slots : draw().between(-1, 6)); }
  Op make_room() {
    if (counts_up() || (documented_ && !owns_slots_)) return state();
    return Op::of(MakeRoom{draw().between(0, config_.slots + 1)});
  }
  Op lock() {
    const auto node = node_from(draw().between(tree().root() + 1, tree().newest()));
    return node ? Op::of(Lock{*node}) : advance();
  }
  Op unlock() {
    if (is_long()) return lock();
    const Ids nodes = locked_by_hand();
    return nodes.empty() ? lock() : Op::of(Unlock{nodes[draw().below(nodes.size())]});
  }
  Op reset() {
    if (counts_up()) return state();
    if (in_group()) return group();
    if (draw().percent(60)) plan(ClearSlots{});
    return Op::of(ResetTree{});
  }
  Op all_slots() { return Op::of(AllSlots{}); }
  Op events() { return Op::of(TakeEvents{}); }
  // Slots by hand.
  Op alloc() {
    if (drive_ != Drive::kBoth) return advance();
    return Op::of(AllocSlots{draw().percent(8) ? config_.slots : draw().between(0, 9)});
  }
  Op alloc_extend() {
    if (drive_ != Drive::kBoth || (config_.page_size == 1 && !draw().percent(5))) return alloc();
    AllocExtend what;
    called_ = rows_for_call(3);
    for (const std::int64_t row : called_) {
      const Ids slots = row < 0 ? Ids{} : rows_[static_cast<std::size_t>(row)];
      what.prefix_lens.push_back(std::ssize(slots));
      what.seq_lens.push_back(std::ssize(slots) + draw().size(0, 2 * config_.page_size + 1));
      what.last_slots.push_back(slots.empty() ? -1 : slots.back());
    }
    return Op::of(std::move(what));
  }
  Op alloc_decode() {
    if (drive_ != Drive::kBoth || (config_.page_size == 1 && !draw().percent(5))) return alloc();
    AllocDecode what;
    called_ = rows_for_call(5);
    for (const std::int64_t row : called_) {
      const Ids slots = row < 0 ? Ids{} : rows_[static_cast<std::size_t>(row)];
      what.seq_lens.push_back(std::ssize(slots) + 1);
      what.last_slots.push_back(slots.empty() ? -1 : slots.back());
    }
    return Op::of(std::move(what));
  }
  Op free_slots() {
    if (rows_.empty()) return alloc();
    const std::size_t at = draw().below(rows_.size());
    Ids slots = std::move(rows_[at]);
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(at));
    if (draw().percent(30)) std::ranges::reverse(slots);
    return Op::of(FreeSlots{std::move(slots)});
  }
  Op free_segment() {
    if (rows_.empty()) return alloc();
    Ids& row = rows_[draw().below(rows_.size())];
    const std::int64_t size = config_.page_size;
    if (size > 1 && row.size() > 1 && draw().percent(8))
      return Op::of(FreeSegment{Ids(row.begin() + 1, row.end()), 1});
    const std::int64_t start = draw().between(0, std::ssize(row) / size) * size;
    FreeSegment what{Ids(row.begin() + start, row.end()), start};
    row.resize(static_cast<std::size_t>(start));
    return Op::of(std::move(what));
  }
  Op group() {
    const bool once_more = draw().percent(8);  // a second beginning, or a second end
    return in_group() == once_more ? Op::of(GroupBegin{}) : Op::of(GroupEnd{});
  }
  Op state() { return Op::of(ShowTree{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {60, "advance", &S::advance, true},
      {16, "request", &S::request, true},
      {5, "finish", &S::finish},
      {3, "withdraw", &S::withdraw},
      {4, "row", &S::row},
      {24, "insert", &S::insert, true},
      {16, "match", &S::look_up<MatchTokens>},
      {4, "touch", &S::look_up<TouchTokens>},
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
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::text>("text"),
        order_word<&S::swap>("swap"),
        order_word<&S::lengthen>("lengthen"),
        order_word<&S::insert_first>("insert_first"),
        order_word<&S::insert_fresh>("insert_fresh"),
        order_word<&S::insert_ranked>("insert_ranked"),
        order_word<&S::insert_in>("insert_in"),
        order_word<&S::match_first>("match_first"),
        order_word<&S::match_in>("match_in"),
        order_word<&S::touch_text>("touch_text"),
        order_word<&S::request_first>("request_first"),
        order_word<&S::request_second>("request_second"),
        order_word<&S::extend_fresh>("extend_fresh"),
        order_word<&S::evict_units>("evict_units"),
        order_word<&S::free_taken>("free_taken"),
        order_word<&S::free_slots>("free_some"),
        order_word<&S::free_segment>("free_some_segment"),
        order_word<&S::finish>("finish_some"),
        order_word<&S::first_>("first"),
        order_word<&S::second_>("second"),
        order_word<&S::newest>("newest"),
        order_word<&S::in_tree>("in_tree"),
        order_word<&S::available>("available"),
        order_word<&S::in_group>("in_group"),
        order_word<&S::page>("page"),
        order_word<&S::is_tree>("tree"),
        order_word<&S::both>("both"),
        order_word<&S::by_hand>("by_hand"),
        order_word<&S::keeps>("keeps"),
        order_word<&S::has_events>("has_events"),
        order_word<&S::exists>("exists"),
        order_word<&S::admitted>("admitted"),
        order_word<&S::has_row>("has_row"),
        order_word<&S::length>("length"),
        order_word<&S::left>("left"),
        order_word<&S::admitted_requests>("admitted_requests"),
    });
    return kWords;
  }

  // What became of an operation.
  // The tree.
  void observe(const MatchTokens& op, const Observation& seen) {
    if (config_.eagle) reach(Seen::kPairs);
    if (seen.error) return;
    const auto& hit = seen.as<FoundPrefix>();
    if (config_.disable) return reach(Seen::kDisabled);
    if (hit.length == 0) return reach(Seen::kNothingHeld);
    if (hit.length == units(std::ssize(op.tokens))) reach(Seen::kWholeHit);
    if (hit.length > kThousand) reach(Seen::kHitOf1024Tokens);
  }
  void observe(const Insert& op, const Observation& seen) {
    if (seen.error) return;
    const auto& put = seen.as<Insert::Returns>();
    texts_.keep(op.tokens);
    if (config_.page_size >= 16) reach(Seen::kPageOf16);
    if (put.length > 0) reach(Seen::kHeldTokensInserted);
    // The tree has slots for what it held; the others are its own now (PX-74).
    const Ids slots = owns_slots_ ? op.slots.value_or(Ids()) : Ids();
    const auto held =
        put.node.has_value() ? std::min(put.length, std::ssize(slots)) : std::ssize(slots);
    if (held > 0) plan(FreeSlots{Ids(slots.begin(), slots.begin() + held)});
  }
  void observe(const EvictUnits& op, const Observation& seen) {
    if (seen.failed_with(Code::kPrecondition)) return reach(Seen::kEvictedByTlru);
    if (seen.error) return;
    const auto& went = seen.as<EvictUnits::Returns>();
    evicted(op.tokens, went.tokens, went.nodes);
  }
  void observe(const MakeRoom& op, const Observation& seen) {
    if (!seen.error) evicted(op.tokens, 0, seen.as<NodesOnly>().nodes);
  }
  void observe(const Lock& /*op*/, const Observation& seen) {
    if (!seen.error && seen.as<Delta>().delta < 0) reach(Seen::kLocked);
  }
  void observe(const ResetTree& /*op*/, const Observation& seen) {
    if (seen.error) return;
    rows_.clear();
    // Those that were admitted hold nodes that are no more; some are asked to end (PX-79).
    for (const std::int64_t number : requests_)
      if (has_row(number) && draw().percent(30)) plan(Finish{.request = number});
    requests_.clear();
  }
  void observe(const AllSlots& /*op*/, const Observation& seen) {
    if (seen.error || seen.as<SlotsOnly>().slots.empty()) reach(Seen::kAllSlotsOfAnEmptyTree);
  }
  // Slots by hand.
  void observe(const AllocSlots& op, const Observation& seen) {
    auto what = std::exchange(inserted_next_, std::nullopt);
    taken_.clear();
    if (seen.failed_with(Code::kExhausted)) {
      reach(Seen::kAllocExhausted);
      if (what && draw().percent(60)) plan(EvictUnits{op.count});
    }
    if (seen.error) return;
    taken_ = seen.as<SlotsOnly>().slots;
    if (what) {
      what->slots = taken_;
      plan(std::move(*what));
    } else if (!taken_.empty()) {
      rows_.push_back(taken_);
    }
  }
  void observe(const AllocExtend& op, const Observation& seen) {
    if (seen.failed_with(Code::kNotSupported)) reach(Seen::kPagesNotSupported);
    if (seen.failed_with(Code::kExhausted)) reach(Seen::kAllocExhausted);
    if (!seen.error) grow(op.seq_lens, seen.as<SlotsOnly>().slots);
  }
  void observe(const AllocDecode& op, const Observation& seen) {
    if (!seen.error) grow(op.seq_lens, seen.as<SlotsOnly>().slots);
  }
  void observe(const FreeSegment& op, const Observation& seen) {
    if (seen.error && op.start % config_.page_size != 0) reach(Seen::kSegmentWithinAPage);
  }
  void observe(const GroupBegin& /*op*/, const Observation& seen) {
    if (seen.error) reach(Seen::kSecondGroup);
  }
  // Requests.
  void observe(const FileRequest& op, const Observation& seen) {
    if (seen.error) return;
    requests_.insert(op.request);
    texts_.keep(op.tokens);
    if (op.extra || op.salt) reach(Seen::kRequestInANamespace);
    if (requests_.size() > 32) reach(Seen::kRequestsBeyond32);
  }
  void observe(const Extend& op, const Observation& seen) {
    // Evicted nodes are reported with the error, too.
    if (seen.returns) {
      const Ids& nodes = seen.as<Extend::Returns>().nodes;
      if (!nodes.empty()) reach(Seen::kExtendEvicts);
      evicted(0, 0, nodes);
    }
    if (!seen.failed_with(Code::kExhausted)) return;
    reach(Seen::kExtendExhausted);
    if (draw().percent(40)) plan(has_row(op.request) ? finish() : withdraw());
  }
  void observe(const Withdraw& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Seen::kWithdrawn);
  }
  void observe(const Finish& op, const Observation& seen) {
    if (seen.error) return;
    if (!op.keep) reach(Seen::kFinishedWithoutKeeping);
    if (requests_.erase(op.request) > 0) texts_.keep(manager().text(op.request).tokens);
  }
  void observe(const TakeEvents& /*op*/, const Observation& seen) {
    if (seen.error) return;
    for (const ShownEvent& event : seen.as<TakeEvents::Returns>().events) {
      if (event.kind == EventKind::kRemoved) reach(Seen::kRemovedEvent);
      if (event.kind == EventKind::kCleared) reach(Seen::kClearedEvent);
      if (event.kind == EventKind::kStored) reach(Seen::kStoredEvent);
      if (event.keys && event.keys->size() > 1) reach(Seen::kEventOfSeveralPages);
    }
  }
  void observe(const ShowTree& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& shown = seen.as<ShowTree::Returns>();
    if (!shown.staged.empty()) reach(Seen::kStagedSlots);
    if (shown.available == 0) reach(Seen::kNothingAvailable);
    if (config_.slots > kThousand) reach(Seen::kSlotsBeyond1024);
    if (tree().newest() > kTwoBytes) reach(Seen::kNodesBeyondTwoBytes);
    std::map<std::int64_t, std::int64_t> children;
    std::map<std::int64_t, std::int64_t> depths;
    for (const ShownNode& node : shown.nodes) {
      if (++children[node.parent] > 64) reach(Seen::k64Children);
      if (node.lock > 1) reach(Seen::kLockedBranch);
      if (node.lock > kOneByte) reach(Seen::kLockedBeyondOneByte);
      if (node.lock > kTwoBytes) reach(Seen::kLockedBeyondTwoBytes);
      if (node.hits > kTwoBytes) reach(Seen::kHitsBeyondTwoBytes);
      if (node.tokens.size() >= 256) reach(Seen::kNodeOf256Tokens);
      if (const std::int64_t depth = depths[node.node] = depths[node.parent] + 1; depth >= 64)
        reach(Seen::kDepth64);
    }
  }

 private:
  /// How a case is driven.
  enum class Drive : std::uint8_t { kTree, kRequests, kBoth };
  /// What a long life is mostly made of.
  enum class Theme : std::uint8_t { kAny, kInserts, kLocks, kChurn };
  /// How a large tree grows.
  enum class Shape : std::uint8_t { kAny, kDeep, kWide };

  static constexpr std::int64_t kCost = 50;  // of an operation, in cells

  // The reference.
  [[nodiscard]] const RadixManager& manager() const {
    return dynamic_cast<const RadixManager&>(reference<ShowsCache<RadixCache>>().shown());
  }
  [[nodiscard]] const RadixTree& tree() const { return manager().tree(); }
  // The first node of the tree from that number on, then from the lowest one on.
  [[nodiscard]] std::optional<std::int64_t> node_from(std::int64_t first) const {
    const std::int64_t count = tree().newest() - tree().root();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t node = tree().root() + 1 + (first - tree().root() - 1 + i) % count;
      if (tree().has(node)) return node;
    }
    return std::nullopt;
  }
  // Nodes that have more locks than requests lock them.
  [[nodiscard]] Ids locked_by_hand() const {
    std::map<std::int64_t, std::int64_t> locks;
    for (std::int64_t node = tree().root() + 1; node <= tree().newest(); ++node)
      locks[node] = tree().own_locks(node);
    for (const std::int64_t request : requests_)
      if (const auto node = manager().holding(request).node) --locks[*node];
    Ids nodes;
    for (const auto& [node, more] : locks)
      if (more > 0) nodes.push_back(node);
    return nodes;
  }
  [[nodiscard]] bool is_tree() const { return drive_ == Drive::kTree; }
  /// Whether the nodes must stay for as long as the case lives.
  [[nodiscard]] bool counts_up() const {
    return theme_ == Theme::kInserts || theme_ == Theme::kLocks;
  }
  // Requests.
  std::optional<std::int64_t> pick(bool with_row) {
    if (requests_.empty()) return std::nullopt;
    auto at = requests_.begin();
    std::advance(at, draw().below(requests_.size()));
    while (with_row && at != requests_.end() && !has_row(*at)) ++at;
    return at != requests_.end() ? std::optional(*at) : std::nullopt;
  }
  std::int64_t new_number() {
    for (const std::int64_t number : requests_)
      if (!admitted(number) && draw().percent(30)) return number;
    return is_long() && next_number_ > 40 ? draw().between(0, 40) : next_number_++;
  }
  Op step(std::int64_t request) {
    if (!admitted(request)) return Op::of(Admit{request});
    if (const std::int64_t more = left(request); more > 0)
      return extend(request, draw().percent(60) ? more : draw().between(1, more));
    if (draw().percent(40)) return Op::of(Checkpoint{request});
    if (length(request) > 2 * most_tokens_ || draw().percent(15))
      return Op::of(Finish{.request = request});
    const std::int64_t more = draw().percent(80) ? 1 : draw().between(2, 5);
    return extend(request, more, texts_.some(draw(), more));
  }
  Op extend(std::int64_t request, std::int64_t tokens, Tokens append = {}) {
    Extend what{.request = request, .tokens = tokens};
    if (!append.empty()) what.append = std::move(append);
    return Op::of(std::move(what));
  }
  Tokens drawn_text() { return texts_.next(draw(), most_tokens_); }
  template <class T>
  T in_namespace(T what) {
    if (draw().percent(8)) what.extra = draw().one_of<std::string>({"", "x"});
    if (draw().percent(8)) what.salt = draw().one_of<std::string>({"", "s"});
    return what;
  }
  Op insert_by_hand(Insert what) {
    if (!owns_slots_) {
      if (draw().percent(40)) return Op::of(std::move(what));
      what.slots.emplace();
      // Whole pages of their own, from beyond the pool: the allocator never returns these.
      const std::int64_t size = config_.page_size;
      next_slot_ = (next_slot_ / size + 1) * size;
      for (std::int64_t more = units(std::ssize(what.tokens)); more > 0; --more)
        what.slots->push_back(next_slot_++);
      if (is_long()) next_slot_ = config_.slots;
      return Op::of(std::move(what));
    }
    const std::int64_t wanted =
        units(std::ssize(what.tokens)) / config_.page_size * config_.page_size;
    what.tokens.resize(static_cast<std::size_t>(tokens_for(wanted)));
    inserted_next_ = std::move(what);
    return Op::of(AllocSlots{wanted});
  }
  Op insert_text(Tokens tokens) { return insert_by_hand({.tokens = std::move(tokens)}); }
  Op evict_units(std::int64_t units) {
    if (counts_up() || (documented_ && !owns_slots_)) return state();
    return Op::of(EvictUnits{units});
  }
  // Sizes (PX-78).
  [[nodiscard]] std::int64_t units(std::int64_t tokens) const {
    return config_.eagle ? std::max<std::int64_t>(tokens - 1, 0) : tokens;
  }
  [[nodiscard]] std::int64_t tokens_for(std::int64_t units) const {
    return config_.eagle && units > 0 ? units + 1 : units;
  }
  Ids rows_for_call(std::int64_t most) {
    Ids rows;
    const std::int64_t start = draw().between(0, std::max<std::int64_t>(std::ssize(rows_) - 1, 0));
    for (std::int64_t i = start; i < std::ssize(rows_) && std::ssize(rows) < most; ++i)
      if (draw().percent(70)) rows.push_back(i);
    if (rows.empty() || draw().percent(30)) rows.push_back(-1);
    return rows;
  }
  void evicted(std::int64_t asked, std::int64_t units, const Ids& nodes) {
    if (asked > 0 && nodes.empty() && in_tree() > 0) reach(Seen::kNothingToEvict);
    if (nodes.empty()) return;
    reach(evicted_by(config_.policy));
    if (units > asked) reach(Seen::kEvictedMoreThanAsked);
    if (nodes.size() > 1) reach(Seen::kParentEvictedAfterItsChild);
  }
  void grow(const Ids& lengths, const Ids& slots) {
    auto from = slots.begin();
    for (std::size_t i = 0; i < called_.size(); ++i) {
      const std::int64_t row = called_[i];
      Ids& grown = row < 0 ? rows_.emplace_back() : rows_[static_cast<std::size_t>(row)];
      const auto to = from + (lengths[i] - std::ssize(grown));
      grown.insert(grown.end(), from, to);
      from = to;
    }
    reach(Seen::kPagesByHand);
  }
  // ---- For orders ----
  Tokens fresh(std::int64_t units) { return texts_.fresh(tokens_for(units)); }
  void text(std::int64_t units) { text_ = fresh(units); }
  void swap() { std::swap(text_, other_); }
  void lengthen(std::int64_t units) {
    for (const Token token : texts_.fresh(units)) text_.push_back(token);
  }
  [[nodiscard]] Tokens first_of_text(std::int64_t units) const {
    return {text_.begin(), text_.begin() + std::min(std::ssize(text_), tokens_for(units))};
  }
  Op insert_first(std::int64_t units) { return insert_text(first_of_text(units)); }
  Op insert_fresh(std::int64_t units, std::int64_t priority) {
    return insert_by_hand({.tokens = fresh(units), .priority = priority});
  }
  Op insert_ranked(std::int64_t priority) {
    return insert_by_hand({.tokens = text_, .priority = priority});
  }
  static std::optional<std::string> name_of(std::int64_t index, const char* other) {
    if (index == 0) return std::nullopt;
    return index == 1 ? "" : other;
  }
  Op insert_in(std::int64_t extra, std::int64_t salt) {
    return insert_by_hand(
        {.tokens = text_, .extra = name_of(extra, "x"), .salt = name_of(salt, "s")});
  }
  Op match_first(std::int64_t units) { return Op::of(MatchTokens{.tokens = first_of_text(units)}); }
  Op match_in(std::int64_t extra, std::int64_t salt) {
    return Op::of(
        MatchTokens{.tokens = text_, .extra = name_of(extra, "x"), .salt = name_of(salt, "s")});
  }
  Op touch_text() { return Op::of(TouchTokens{.tokens = text_}); }
  std::optional<Op> request_of(std::int64_t& number) {
    if (is_tree() || text_.empty()) return std::nullopt;
    number = next_number_++;
    return Op::of(FileRequest{.request = number, .tokens = text_});
  }
  std::optional<Op> request_first() { return request_of(first_); }
  std::optional<Op> request_second() { return request_of(second_); }
  Op extend_fresh(std::int64_t tokens) { return extend(first_, tokens, texts_.fresh(tokens)); }
  std::optional<Op> free_taken() {
    if (taken_.empty()) return std::nullopt;
    if (!rows_.empty() && rows_.back() == taken_) rows_.pop_back();
    return Op::of(FreeSlots{taken_});
  }
  [[nodiscard]] bool exists(std::int64_t request) const { return requests_.contains(request); }
  [[nodiscard]] bool admitted(std::int64_t request) const {
    return manager().holding(request).node.has_value();
  }
  [[nodiscard]] bool has_row(std::int64_t request) const {
    return manager().holding(request).has_row;
  }
  [[nodiscard]] std::int64_t length(std::int64_t request) const {
    return std::ssize(manager().text(request).tokens);
  }
  [[nodiscard]] std::int64_t left(std::int64_t request) const {
    return length(request) - std::ssize(manager().holding(request).slots);
  }
  [[nodiscard]] std::int64_t admitted_requests() const {
    return std::ranges::count_if(requests_, [&](auto request) { return admitted(request); });
  }
  [[nodiscard]] std::int64_t newest() const { return tree().newest(); }
  [[nodiscard]] std::int64_t in_tree() const { return tree().units(); }
  [[nodiscard]] std::int64_t available() const { return manager().slots().available(); }
  [[nodiscard]] bool in_group() const { return manager().slots().in_group(); }
  [[nodiscard]] std::int64_t page() const { return config_.page_size; }
  [[nodiscard]] bool both() const { return drive_ == Drive::kBoth; }
  [[nodiscard]] bool by_hand() const { return drive_ != Drive::kRequests; }
  [[nodiscard]] bool keeps() const { return !config_.disable; }
  [[nodiscard]] bool has_events() const { return config_.events; }

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
  std::int64_t most_tokens_;         // of a prompt
  std::int64_t most_requests_;       // at a time
  std::set<std::int64_t> requests_;  // that were made and have not ended
  std::int64_t next_number_ = 0;
  bool has_begun_ = false;
  std::vector<Ids> rows_;                // slots taken by hand
  Ids called_;                           // rows that the next answer belongs to, -1: a new one
  std::optional<Insert> inserted_next_;  // as soon as it has slots
  std::int64_t next_slot_ = 0;
  // Of the order that is followed.
  Tokens text_;
  Tokens other_;
  std::int64_t first_ = 0;
  std::int64_t second_ = 0;
  Ids taken_;
};

RadixConfig draw_radix_config(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool is_large = terms.scale == Scale::kLarge;
  RadixConfig config;
  config.policy = draw.one_of({Policy::kLru, Policy::kMru, Policy::kFifo, Policy::kFilo,
                               Policy::kLfu, Policy::kPriority, Policy::kSlru});
  if (terms.profile == Profile::kOriginal && draw.percent(2)) config.policy = Policy::kTlru;
  if (config.policy == Policy::kSlru && draw.percent(50))
    config.slru_threshold = draw.between(1, 4);
  if (draw.percent(50)) config.page_size = is_large ? draw.size(2, 65) : draw.between(2, 4);
  config.slots = is_large ? draw.edge(64, 4'097) : draw.between(4, 50);
  config.eagle = draw.percent(18);
  config.disable = draw.percent(2);
  config.events = !config.eagle && draw.percent(40);
  config.need_sort = draw.percent(30);
  if (terms.scale == Scale::kLong) {
    // Nothing may pile up that an operation copies.
    config.events = config.disable = false;
    config.page_size = draw.between(1, 2);
    config.slots = draw.between(8, 14);
  }
  return config;
}

GeneratedCase make_radix_case(const CaseTerms& terms) {
  RadixConfig config = draw_radix_config(terms);
  auto script = std::make_unique<RadixScript>(terms, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::move(script)};
}

}  // namespace

Generator radix_generator() {
  Generator made =
      with_orders<RadixScript>(script_generator<RadixLabel>(radix_kind(), make_radix_case, {}, {}));
  add_states<RadixSeen>(made, {RadixSeen::kEvictedByTlru});
  return made;
}

std::vector<Generator> generators() {
  return {blocks_generator(), radix_generator()};
}

}  // namespace kvo::prefix
