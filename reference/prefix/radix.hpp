// reference/prefix/radix.hpp: cache `radix`: a tree of token runs over a pool of slots.
//
// Words    unit       a token; with `pairs` (eagle) two neighbouring tokens (PX-78).
//          page       page_size units; keys and slots are whole pages.
//          node       a run of units below its parent, with a slot a unit; numbers count up and
//                     are never used again. The root holds nothing (PX-60).
//          row        the slots of a request: those that it matched, and its own behind them.
// Errors   of every operation: kOutOfRange: a request of a number that there cannot be;
//          kPrecondition: a count below 0 or beyond kMostTokens, a request never made.
// Source   rules PX-60 to PX-89.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

/// What is evicted first (PX-71). Leaves that stand alike go by number, the lower first.
enum class Policy : std::uint8_t {
  kLru,
  kMru,
  kFifo,
  kFilo,
  kLfu,
  kPriority,
  kSlru,
  kTlru  ///< original only: evicting is kPrecondition where there is a candidate
};
BOOST_DESCRIBE_ENUM(Policy, kLru, kMru, kFifo, kFilo, kLfu, kPriority, kSlru, kTlru)

struct SlotNumbers {
  using Value = Ids;
  static constexpr Domain kDomain{
      .least = 0, .most = kMostTokens - 1, .outside = Code::kOutOfRange, .handle_of = "slot"};
};
using ReturnedSlots = ListOf<HandleOf<"slot">>;
using NodeNumber = HandleOf<"node">;
struct Priority {
  using Value = std::int64_t;
  static constexpr Domain kDomain{
      .least = -kMostTokens, .most = kMostTokens - 1, .outside = Code::kOutOfRange};
};

/// The config of a case.
KVO_RECORD(RadixConfig, (Policy, policy, "what is evicted first", Policy::kLru),
           (std::optional<std::int64_t>, slru_threshold,
            "hits from which slru spares a node; absent: 2"),
           (std::int64_t, page_size, "units of a page", 1),
           (std::int64_t, slots, "of the pool, slot 0 not counted"),
           (bool, eagle, "draft heads: units are pairs of tokens"),
           (bool, disable, "whether nothing is kept"), (bool, events, "whether events are kept"),
           (bool, need_sort, "whether what is freed waits to be sorted in"))

/// The config, if a cache can be made with it.
/// Errors  kNotSupported: sizes that make no sense or are beyond kMostUnits pages; eagle with
///         events; tlru, without kTlruAborts.
[[nodiscard]] Result<RadixConfig> checked(const RadixConfig& config, QuirkSet<Quirk> quirks);

KVO_RECORD(NodesOnly, (Ids, nodes, "nodes that were evicted, in order"))
KVO_RECORD(SlotsOnly, (ReturnedSlots, slots, "slots by number"))
KVO_RECORD(Delta, (std::int64_t, delta, "change of the evictable units"))
KVO_RECORD(FoundPrefix, (std::int64_t, length, "units"), (NodeNumber, node, "the last node"),
           (ReturnedSlots, slots, "one a unit"))
KVO_OPERATION(MatchTokens, match, "The longest prefix that is held (PX-64).", FoundPrefix,
              (Tokens, tokens, "what is looked up"),
              (std::optional<std::string>, extra, "namespace; empty is one of its own"),
              (std::optional<std::string>, salt, "namespace; empty or absent: none"),
              (Maybe<Count>, limit, "tokens that count"))
KVO_OPERATION(TouchTokens, touch, "A match without a result (PX-64).", Nothing,
              (Tokens, tokens, "what is looked up"),
              (std::optional<std::string>, extra, "namespace; empty is one of its own"),
              (std::optional<std::string>, salt, "namespace; empty or absent: none"),
              (Maybe<Count>, limit, "tokens that count"))
KVO_RECORD(InsertReturns, (std::int64_t, length, "units that were there before"),
           (OrNull<NodeNumber>, node, "the last node; null: nothing is kept"))
KVO_OPERATION(Insert, insert, "Files tokens and their slots (PX-66).", InsertReturns,
              (Tokens, tokens, "what is filed"),
              (Maybe<ReturnedSlots>, slots, "one a unit; absent: the tokens"),
              (std::optional<std::string>, extra, "namespace; empty is one of its own"),
              (std::optional<std::string>, salt, "namespace; empty or absent: none"),
              (Priority, priority, "the higher is spared", 0, may_be_absent),
              (Count, inserted, "units that this insert does not count as hits", 0, may_be_absent))
KVO_RECORD(EvictUnitsReturns, (std::int64_t, tokens, "units that were freed"),
           (Ids, nodes, "in order"))
KVO_OPERATION(EvictUnits, evict, "Evicts leaves until so many units are free (PX-70).",
              EvictUnitsReturns, (std::int64_t, tokens, "units; 0 or less: nothing"))
KVO_OPERATION(Lock, lock, "Protects a node and all above it (PX-73).", Delta,
              (NodeNumber, node, "number of the node"))
KVO_OPERATION(Unlock, unlock, "Releases a lock (PX-73).", Delta,
              (NodeNumber, node, "number of the node"))
KVO_OPERATION(ResetTree, reset, "Drops the tree, not the slots (PX-75).", Nothing)
KVO_OPERATION(AllSlots, all_slots, "The slots of all nodes, depth first (PX-77).", SlotsOnly)
KVO_OPERATION(AllocSlots, alloc, "Takes slots (PX-80, PX-81).", SlotsOnly,
              (Count, count, "slots; what is no whole page is dropped"))
KVO_OPERATION(AllocExtend, alloc_extend, "Takes slots after rows that end in a page (PX-81).",
              SlotsOnly, (Ids, prefix_lens, "tokens that each request has"),
              (Ids, seq_lens, "tokens that it is to have"),
              (ReturnedSlots, last_slots, "its last slot; -1: none"))
KVO_OPERATION(AllocDecode, alloc_decode, "Takes one slot for each request (PX-81).", SlotsOnly,
              (Ids, seq_lens, "tokens of each request, the new one included"),
              (ReturnedSlots, last_slots, "its last slot; -1: none"))
KVO_OPERATION(FreeSlots, free, "Frees slots (PX-80, PX-81).", Nothing,
              (SlotNumbers, slots, "slots by number"))
KVO_OPERATION(FreeSegment, free_segment, "Frees a part of a row (PX-80, PX-81).", Nothing,
              (SlotNumbers, slots, "slots by number, in order of the row"),
              (Count, start, "where they begin in the row"))
KVO_OPERATION(GroupBegin, group_begin, "Defers what is freed (PX-82).", Nothing)
KVO_OPERATION(GroupEnd, group_end, "Frees the slots that the group deferred (PX-82).", Nothing)
KVO_OPERATION(ClearSlots, clear, "All slots are free, as at the start (PX-80).", Nothing)
KVO_OPERATION(MakeRoom, make_room, "Evicts what is missing to so many free slots (PX-83).",
              NodesOnly, (Count, tokens, "slots that are to be free"))
KVO_OPERATION(FileRequest, request, "Makes a request (PX-86).", Nothing, (RequestNumber, request),
              (Tokens, tokens, "its prompt"),
              (std::optional<std::string>, extra, "namespace; empty is one of its own"),
              (std::optional<std::string>, salt, "namespace; empty or absent: none"),
              (Priority, priority, "the higher is spared", 0, may_be_absent))
KVO_OPERATION(Admit, admit, "Looks a request up and locks what it hit (PX-86).", FoundPrefix,
              (RequestNumber, request))
KVO_RECORD_WITH((static constexpr std::array<std::string_view, 1> kComparedIfShown{"left"};),
                ExtendReturns, (Maybe<ReturnedSlots>, slots, "the new ones; absent with an error"),
                (Ids, nodes, "evicted to make room, also for an error"),
                (std::optional<Ids>, left, "of its row, freed because they left a window"))
KVO_OPERATION(Extend, extend, "Takes slots for a request's next tokens (PX-86).", ExtendReturns,
              (RequestNumber, request), (Count, tokens, "how many"),
              (Tokens, append, "output that joins the request first", Tokens(), may_be_absent))
KVO_RECORD(CheckpointReturns, (NodeNumber, node, "the node that is locked now"),
           (std::int64_t, protected_, "units of its row that are the tree's"))
KVO_OPERATION(Checkpoint, checkpoint, "Files what a request has so far (PX-87).", CheckpointReturns,
              (RequestNumber, request))
KVO_OPERATION(Withdraw, withdraw, "Withdraws a request that has no row (PX-86).", Nothing,
              (RequestNumber, request))
KVO_OPERATION(Finish, finish, "Ends a request (PX-88).", Nothing, (RequestNumber, request),
              (bool, keep, "whether its tokens are filed", true, may_be_absent))
KVO_RECORD(ShowRowReturns, (ReturnedSlots, slots, "slots by number"),
           (std::int64_t, protected_, "slots that are the tree's"),
           (std::int64_t, inserted, "units that it filed and counted"),
           (NodeNumber, node, "the node that is locked"))
KVO_OPERATION(ShowRow, row, "The slots of a request (PX-86).", ShowRowReturns,
              (RequestNumber, request))
KVO_RECORD(ShownNode, (std::int64_t, node, "number"),
           (std::int64_t, parent, "number of the node above"),
           (Tokens, tokens, "of its units; with pairs one more"), (Ids, slots, "one a unit"),
           (std::int64_t, lock, "locks"), (std::int64_t, hits, "inserts that passed"),
           (std::int64_t, priority, "the higher is spared"),
           (Nullable<std::string>, extra, "namespace; null: none"),
           (Nullable<std::string>, salt, "namespace; null: none"))
KVO_RECORD(ShowTreeReturns, (std::int64_t, evictable, "units, a running sum"),
           (std::int64_t, protected_, "units, a running sum"),
           (std::int64_t, total, "slots in the tree"), (std::int64_t, available, "free slots"),
           (Ids, free, "free slots, or pages, the next to be taken first"),
           (Ids, staged, "slots, or pages, that are not sorted in yet"),
           (std::vector<ShownNode>, nodes, "by number, without the root"),
           (Ids, leaves, "those that may be evicted, the first to go first"))
KVO_OPERATION(ShowTree, state, "Tree and free slots (PX-60, PX-77, PX-80).", ShowTreeReturns)

#define KVO_PREFIX_RADIX_OPERATIONS                                                             \
  prefix::MatchTokens, prefix::TouchTokens, prefix::Insert, prefix::EvictUnits, prefix::Lock,   \
      prefix::Unlock, prefix::ResetTree, prefix::AllSlots, prefix::AllocSlots,                  \
      prefix::AllocExtend, prefix::AllocDecode, prefix::FreeSlots, prefix::FreeSegment,         \
      prefix::GroupBegin, prefix::GroupEnd, prefix::ClearSlots, prefix::MakeRoom,               \
      prefix::FileRequest, prefix::Admit, prefix::Extend, prefix::Checkpoint, prefix::Withdraw, \
      prefix::Finish, prefix::ShowRow, prefix::ShowTree
using RadixOps = boost::mp11::mp_list<KVO_PREFIX_RADIX_OPERATIONS, TakeEvents>;

/// Where keys part at the root (PX-63).
struct Namespace {
  std::optional<std::string_view> extra = std::nullopt;  ///< empty is one of its own
  std::string_view salt = {};                            ///< empty: none
};

/// The namespace of an operation.
template <class Op>
[[nodiscard]] Namespace space_of(const Op& op) {
  Namespace space{.extra = std::nullopt, .salt = op.salt ? *op.salt : std::string_view()};
  if (op.extra) space.extra = *op.extra;
  return space;
}
/// The tokens that a lookup takes.
template <class Op>
[[nodiscard]] TokensView looked_up(const Op& op) {
  const TokensView tokens = op.tokens;
  return op.limit ? tokens.first(std::min(tokens.size(), static_cast<std::size_t>(*op.limit)))
                  : tokens;
}

/// FoundPrefix with a view.
struct RadixHit {
  std::int64_t length = 0;  ///< units
  std::int64_t node = 0;    ///< the last one
  IdsView slots = {};       ///< one a unit
};

struct RadixEvicted {
  std::int64_t tokens = 0;  ///< units that went
  IdsView nodes = {};       ///< in order
};

/// What came of asking for slots for new tokens.
struct Extended {
  bool exhausted = false;  ///< the request is as before, but `nodes` are gone
  IdsView slots = {};      ///< the new ones
  IdsView nodes = {};      ///< evicted to make room
};

/// A cache of the kind. A method carries out the operation of its name. Numbers of requests are in
/// [0, kMostRequests), counts in [0, kMostTokens]; slots are of any number: they are not checked
/// (PX-85). Depth of the tree is not bounded. An error has changed nothing, but where `exhausted`
/// says so.
class RadixCache {
 public:
  virtual ~RadixCache() = default;

  /// The longest prefix that is held; locks nothing (PX-84), but may split (PX-64, PX-65).
  /// Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<RadixHit> match(const MatchTokens& op) = 0;
  /// The same, without an answer. Errors  kOutOfMemory.
  [[nodiscard]] virtual Status touch(const TouchTokens& op) = 0;
  /// Files tokens and slots (PX-66 to PX-69, PX-74).
  /// Errors  kPrecondition: fewer slots than units.
  [[nodiscard]] virtual Result<InsertReturns> insert(const Insert& op) = 0;
  /// Evicts leaves until so many units have gone (PX-70 to PX-72).
  /// Errors  kPrecondition: with kTlruAborts a policy that cannot tell; with kGoneNodesLocked a
  ///         leaf whose node has gone already.
  [[nodiscard]] virtual Result<RadixEvicted> evict(std::int64_t units) = 0;
  /// Protects a node and all above it (PX-73). Returns  by how much the evictable units change.
  /// Errors  kPrecondition: no such node, one from before a reset, or without kGoneNodesLocked one
  ///         that was evicted.
  [[nodiscard]] virtual Result<std::int64_t> lock(std::int64_t node) = 0;
  /// Takes a lock back. Errors  as lock; without kUnlockUnguarded kPrecondition: the node has none.
  [[nodiscard]] virtual Result<std::int64_t> unlock(std::int64_t node) = 0;
  /// Forgets the tree (PX-75). Errors  kOutOfMemory.
  [[nodiscard]] virtual Status reset() = 0;
  /// The slots of all nodes, depth first (PX-77).
  /// Errors  with kNoSlotsAborts kPrecondition: the tree is empty.
  [[nodiscard]] virtual Result<IdsView> all_slots() = 0;

  /// Takes slots (PX-80), or pages (PX-81).
  /// Errors  kExhausted: what was staged may have been sorted in.
  [[nodiscard]] virtual Result<IdsView> alloc(std::int64_t count) = 0;
  /// Takes slots for requests that grow from prefixes[i] to lengths[i] tokens behind last[i]
  /// (PX-81). Requires  lists of one length, 0 <= prefix <= length, last >= -1. Errors
  /// kNotSupported: pages of one slot; kExhausted.
  [[nodiscard]] virtual Result<IdsView> alloc_extend(IdsView prefixes, IdsView lengths,
                                                     IdsView last) = 0;
  /// Takes one slot for each request, which has lengths[i] tokens with it (PX-81).
  /// Requires  lists of one length, length >= 1, last >= -1. Errors  as alloc_extend.
  [[nodiscard]] virtual Result<IdsView> alloc_decode(IdsView lengths, IdsView last) = 0;
  /// Gives slots back (PX-80, PX-81). Slots are not below 0.
  /// Errors  without kFreesAnything kPrecondition: a slot, or page, that is not handed out, or one
  ///         that the list has twice.
  [[nodiscard]] virtual Status free(IdsView slots) = 0;
  /// Gives the slots of a row from `start` on back (PX-81).
  /// Errors  as free; kPrecondition: start is within a page.
  [[nodiscard]] virtual Status free_segment(IdsView slots, std::int64_t start) = 0;
  /// Holds back what is freed (PX-82). Errors  kPrecondition: it is already.
  [[nodiscard]] virtual Status group_begin() = 0;
  /// Frees what was held back; nothing without a group. Errors  kOutOfMemory.
  [[nodiscard]] virtual Status group_end() = 0;
  /// All slots are free, the tree stays as it is (PX-80). Errors  kOutOfMemory.
  [[nodiscard]] virtual Status clear() = 0;
  /// Evicts what is missing to so many free slots (PX-83). Returns  the nodes. Errors  as evict.
  [[nodiscard]] virtual Result<IdsView> make_room(std::int64_t slots) = 0;

  /// Makes a request. Errors  kPrecondition: the number has one that was admitted.
  [[nodiscard]] virtual Status request(const FileRequest& op) = 0;
  /// Looks up all but its last token, and locks what it hit (PX-86).
  /// Errors  kPrecondition: it is admitted already.
  [[nodiscard]] virtual Result<RadixHit> admit(std::int64_t request) = 0;
  /// Takes slots for new tokens, behind `append`, which joins its output (PX-86).
  /// Errors  kPrecondition: it is not admitted; as evict.
  [[nodiscard]] virtual Result<Extended> extend(std::int64_t request, std::int64_t tokens,
                                                TokensView append) = 0;
  /// Files what the request has (PX-87).
  /// Errors  kPrecondition: it has no row, or a longer one than tokens.
  [[nodiscard]] virtual Result<CheckpointReturns> checkpoint(std::int64_t request) = 0;
  /// Takes the lock of a request that has no row (PX-86). Errors  kPrecondition: not admitted, or
  /// it has a row.
  [[nodiscard]] virtual Status withdraw(std::int64_t request) = 0;
  /// Ends a request; `keep` files it first (PX-88). Errors  as checkpoint.
  [[nodiscard]] virtual Status finish(std::int64_t request, bool keep) = 0;
  /// Errors  kPrecondition: it has no row.
  [[nodiscard]] virtual Result<ShowRowReturns> row(std::int64_t request) const = 0;

  /// In the next call, takes these slots, or the pages that they are in, before other free ones. Of
  /// references; others may ignore it.
  virtual void prefer(IdsView /*slots*/) {}

  /// The events since the last time (PX-77).
  [[nodiscard]] virtual std::span<const Event> events() = 0;
  [[nodiscard]] virtual ShowTreeReturns state() const = 0;
  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// Makes a cache; the options are sound. Errors  kNotSupported, kOutOfMemory.
using MakeRadix = std::function<Result<std::unique_ptr<RadixCache>>(const RadixConfig& config,
                                                                    QuirkSet<Quirk> quirks)>;

/// The cache kind `prefix.radix`.
[[nodiscard]] const CacheKind& radix_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_radix_subject(std::string variant, std::string doc, MakeRadix make);

}  // namespace kvo::prefix

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_PREFIX_RADIX_OPERATIONS)
}  // namespace kvo
