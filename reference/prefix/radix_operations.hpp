// reference/prefix/radix_operations.hpp: the operations of kind `prefix.radix`, described.
//
// Errors   of every operation: kOutOfRange: a request of a number that there cannot be;
//          kPrecondition: a count below 0 or beyond kMostTokens, a request never made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/prefix/blocks_operations.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

struct SlotNumbers {
  using Value = Numbers;
  static constexpr Domain kDomain{
      .least = 0, .most = kMostTokens - 1, .outside = Code::kOutOfRange};
};
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

/// What a cache is made with.
/// Errors  kNotSupported: sizes that make no sense or are beyond kMostUnits pages; eagle with
///         events; tlru, without kTlruAborts.
[[nodiscard]] Result<RadixOptions> options_of(const RadixConfig& config, QuirkSet<Quirk> quirks);

KVO_RECORD(NodesOnly, (Numbers, nodes, "nodes that were evicted, in order"))
KVO_RECORD(SlotsOnly, (Numbers, slots, "slots by number"))
KVO_RECORD(Delta, (std::int64_t, delta, "change of the evictable units"))
KVO_RECORD(FoundPrefix, (std::int64_t, length, "units"), (std::int64_t, node, "the last node"),
           (Numbers, slots, "one a unit"))
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
           (Nullable<std::int64_t>, node, "the last node; null: nothing is kept"))
KVO_OPERATION(Insert, insert, "Files tokens and their slots (PX-66).", InsertReturns,
              (Tokens, tokens, "what is filed"),
              (std::optional<Numbers>, slots, "one a unit; absent: the tokens"),
              (std::optional<std::string>, extra, "namespace; empty is one of its own"),
              (std::optional<std::string>, salt, "namespace; empty or absent: none"),
              (Priority, priority, "the higher is spared", 0, may_be_absent),
              (Count, inserted, "units that this insert does not count as hits", 0, may_be_absent))
KVO_RECORD(EvictUnitsReturns, (std::int64_t, tokens, "units that were freed"),
           (Numbers, nodes, "in order"))
KVO_OPERATION(EvictUnits, evict, "Evicts leaves until so many units are free (PX-70).",
              EvictUnitsReturns, (std::int64_t, tokens, "units; 0 or less: nothing"))
KVO_OPERATION(Lock, lock, "Protects a node and all above it (PX-73).", Delta,
              (std::int64_t, node, "number of the node"))
KVO_OPERATION(Unlock, unlock, "Releases a lock (PX-73).", Delta,
              (std::int64_t, node, "number of the node"))
KVO_OPERATION(ResetTree, reset, "Drops the tree, not the slots (PX-75).", Nothing)
KVO_OPERATION(AllSlots, all_slots, "The slots of all nodes, depth first (PX-77).", SlotsOnly)
KVO_OPERATION(AllocSlots, alloc, "Takes slots (PX-80, PX-81).", SlotsOnly,
              (Count, count, "slots; what is no whole page is dropped"))
KVO_OPERATION(AllocExtend, alloc_extend, "Takes slots after rows that end in a page (PX-81).",
              SlotsOnly, (Numbers, prefix_lens, "tokens that each request has"),
              (Numbers, seq_lens, "tokens that it is to have"),
              (Numbers, last_slots, "its last slot; -1: none"))
KVO_OPERATION(AllocDecode, alloc_decode, "Takes one slot for each request (PX-81).", SlotsOnly,
              (Numbers, seq_lens, "tokens of each request, the new one included"),
              (Numbers, last_slots, "its last slot; -1: none"))
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
KVO_RECORD(ExtendReturns, (std::optional<Numbers>, slots, "the new ones; absent with an error"),
           (Numbers, nodes, "evicted to make room, also for an error"))
KVO_OPERATION(Extend, extend, "Takes slots for a request's next tokens (PX-86).", ExtendReturns,
              (RequestNumber, request), (Count, tokens, "how many"),
              (Tokens, append, "output that joins the request first", Tokens(), may_be_absent))
KVO_RECORD(CheckpointReturns, (std::int64_t, node, "the node that is locked now"),
           (std::int64_t, protected_, "units of its row that are the tree's"))
KVO_OPERATION(Checkpoint, checkpoint, "Files what a request has so far (PX-87).", CheckpointReturns,
              (RequestNumber, request))
KVO_OPERATION(Withdraw, withdraw, "Withdraws a request that has no row (PX-86).", Nothing,
              (RequestNumber, request))
KVO_OPERATION(Finish, finish, "Ends a request (PX-88).", Nothing, (RequestNumber, request),
              (bool, keep, "whether its tokens are filed", true, may_be_absent))
KVO_RECORD(ShowRowReturns, (Numbers, slots, "slots by number"),
           (std::int64_t, protected_, "slots that are the tree's"),
           (std::int64_t, inserted, "units that it filed and counted"),
           (std::int64_t, node, "the node that is locked"))
KVO_OPERATION(ShowRow, row, "The slots of a request (PX-86).", ShowRowReturns,
              (RequestNumber, request))
KVO_RECORD(ShownNode, (std::int64_t, node, "number"),
           (std::int64_t, parent, "number of the node above"),
           (Tokens, tokens, "of its units; with pairs one more"), (Numbers, slots, "one a unit"),
           (std::int64_t, lock, "locks"), (std::int64_t, hits, "inserts that passed"),
           (std::int64_t, priority, "the higher is spared"),
           (Nullable<std::string>, extra, "namespace; null: none"),
           (Nullable<std::string>, salt, "namespace; null: none"))
KVO_RECORD(ShowTreeReturns, (std::int64_t, evictable, "units, a running sum"),
           (std::int64_t, protected_, "units, a running sum"),
           (std::int64_t, total, "slots in the tree"), (std::int64_t, available, "free slots"),
           (Numbers, free, "free slots, or pages, the next to be taken first"),
           (Numbers, staged, "slots, or pages, that are not sorted in yet"),
           (std::vector<ShownNode>, nodes, "by number, without the root"),
           (Numbers, leaves, "those that may be evicted, the first to go first"))
KVO_OPERATION(ShowTree, state, "Tree and free slots (PX-60, PX-77, PX-80).", ShowTreeReturns)

#define KVO_PREFIX_RADIX_OPERATIONS                                                             \
  prefix::MatchTokens, prefix::TouchTokens, prefix::Insert, prefix::EvictUnits, prefix::Lock,   \
      prefix::Unlock, prefix::ResetTree, prefix::AllSlots, prefix::AllocSlots,                  \
      prefix::AllocExtend, prefix::AllocDecode, prefix::FreeSlots, prefix::FreeSegment,         \
      prefix::GroupBegin, prefix::GroupEnd, prefix::ClearSlots, prefix::MakeRoom,               \
      prefix::FileRequest, prefix::Admit, prefix::Extend, prefix::Checkpoint, prefix::Withdraw, \
      prefix::Finish, prefix::ShowRow, prefix::ShowTree
using RadixOps = boost::mp11::mp_list<KVO_PREFIX_RADIX_OPERATIONS, TakeEvents>;

/// The cache kind `prefix.radix`.
[[nodiscard]] const CacheKind& radix_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_radix_subject(std::string variant, std::string doc, MakeRadix make);

}  // namespace kvo::prefix

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_PREFIX_RADIX_OPERATIONS)
}  // namespace kvo
