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

/// The config of a case.
struct RadixConfig {
  Policy policy = Policy::kLru;
  std::optional<std::int64_t> slru_threshold = std::nullopt;
  std::int64_t page_size = 1;
  std::int64_t slots = 0;
  bool eagle = false;
  bool disable = false;
  bool events = false;
  bool need_sort = false;
};
KVO_DESCRIBE(RadixConfig, (policy, "what is evicted first"),
             (slru_threshold, "hits from which slru spares a node; absent: 2"),
             (page_size, "units of a page"), (slots, "of the pool, slot 0 not counted"),
             (eagle, "draft heads: units are pairs of tokens"),
             (disable, "whether nothing is kept"), (events, "whether events are kept"),
             (need_sort, "whether what is freed waits to be sorted in"))

/// What a cache is made with.
/// Errors  kNotSupported: sizes that make no sense or are beyond kMostUnits pages; eagle with
///         events; tlru, without kTlruAborts.
[[nodiscard]] Result<RadixOptions> options_of(const RadixConfig& config, QuirkSet<Quirk> quirks);

struct NodesOnly {
  Numbers nodes = {};
};
KVO_DESCRIBE(NodesOnly, (nodes, "nodes that were evicted, in order"))

struct SlotsOnly {
  Numbers slots = {};
};
KVO_DESCRIBE(SlotsOnly, (slots, "slots by number"))

struct Delta {
  std::int64_t delta = 0;
};
KVO_DESCRIBE(Delta, (delta, "by how much the evictable units change"))

struct FoundPrefix {
  std::int64_t length = 0;
  std::int64_t node = 0;
  Numbers slots = {};
};
KVO_DESCRIBE(FoundPrefix, (length, "units"), (node, "the last node"), (slots, "one a unit"))

struct MatchTokens {
  static constexpr std::string_view kName = "match";
  static constexpr std::string_view kDoc = "The longest prefix that is held (PX-64).";
  using Returns = FoundPrefix;
  Tokens tokens = {};
  std::optional<std::string> extra = std::nullopt;
  std::optional<std::string> salt = std::nullopt;
  std::optional<std::int64_t> limit = std::nullopt;
};
KVO_DESCRIBE(MatchTokens, (tokens, "what is looked up"),
             (extra, "namespace; empty is one of its own"),
             (salt, "namespace; empty or absent: none"), (limit, "tokens that count"))

struct TouchTokens {
  static constexpr std::string_view kName = "touch";
  static constexpr std::string_view kDoc = "A match without an answer (PX-64).";
  using Returns = Nothing;
  Tokens tokens = {};
  std::optional<std::string> extra = std::nullopt;
  std::optional<std::string> salt = std::nullopt;
  std::optional<std::int64_t> limit = std::nullopt;
};
KVO_DESCRIBE(TouchTokens, (tokens, "what is looked up"),
             (extra, "namespace; empty is one of its own"),
             (salt, "namespace; empty or absent: none"), (limit, "tokens that count"))

struct Insert {
  static constexpr std::string_view kName = "insert";
  static constexpr std::string_view kDoc = "Files tokens and their slots (PX-66).";
  struct Returns {
    std::int64_t length = 0;
    Nullable<std::int64_t> node = {};
  };
  Tokens tokens = {};
  std::optional<Numbers> slots = std::nullopt;
  std::optional<std::string> extra = std::nullopt;
  std::optional<std::string> salt = std::nullopt;
  std::optional<std::int64_t> priority = std::nullopt;
  std::optional<std::int64_t> inserted = std::nullopt;
};
KVO_DESCRIBE(Insert, (tokens, "what is filed"), (slots, "one a unit; absent: the tokens"),
             (extra, "namespace; empty is one of its own"),
             (salt, "namespace; empty or absent: none"),
             (priority, "the higher is spared; absent: 0"),
             (inserted, "units that this is no hit of; absent: 0"))
KVO_DESCRIBE(Insert::Returns, (length, "units that were there before"),
             (node, "the last node; null: nothing is kept"))

struct EvictUnits {
  static constexpr std::string_view kName = "evict";
  static constexpr std::string_view kDoc = "Evicts leaves until so much has gone (PX-70).";
  struct Returns {
    std::int64_t tokens = 0;
    Numbers nodes = {};
  };
  std::int64_t tokens = 0;
};
KVO_DESCRIBE(EvictUnits, (tokens, "units; 0 or less: nothing"))
KVO_DESCRIBE(EvictUnits::Returns, (tokens, "units that went"), (nodes, "in order"))

struct Lock {
  static constexpr std::string_view kName = "lock";
  static constexpr std::string_view kDoc = "Protects a node and all above it (PX-73).";
  using Returns = Delta;
  std::int64_t node = 0;
};
KVO_DESCRIBE(Lock, (node, "number of the node"))

struct Unlock {
  static constexpr std::string_view kName = "unlock";
  static constexpr std::string_view kDoc = "Takes a lock back (PX-73).";
  using Returns = Delta;
  std::int64_t node = 0;
};
KVO_DESCRIBE(Unlock, (node, "number of the node"))

struct ResetTree {
  static constexpr std::string_view kName = "reset";
  static constexpr std::string_view kDoc = "Forgets the tree, not the slots (PX-75).";
  using Returns = Nothing;
};
KVO_DESCRIBE(ResetTree)

struct AllSlots {
  static constexpr std::string_view kName = "all_slots";
  static constexpr std::string_view kDoc = "The slots of all nodes, depth first (PX-77).";
  using Returns = SlotsOnly;
};
KVO_DESCRIBE(AllSlots)

struct AllocSlots {
  static constexpr std::string_view kName = "alloc";
  static constexpr std::string_view kDoc = "Takes slots (PX-80, PX-81).";
  using Returns = SlotsOnly;
  std::int64_t count = 0;
};
KVO_DESCRIBE(AllocSlots, (count, "slots; what is no whole page is dropped"))

struct AllocExtend {
  static constexpr std::string_view kName = "alloc_extend";
  static constexpr std::string_view kDoc = "Takes slots behind rows that end in a page (PX-81).";
  using Returns = SlotsOnly;
  Numbers prefix_lens = {};
  Numbers seq_lens = {};
  Numbers last_slots = {};
};
KVO_DESCRIBE(AllocExtend, (prefix_lens, "tokens that each request has"),
             (seq_lens, "tokens that it is to have"), (last_slots, "its last slot; -1: none"))

struct AllocDecode {
  static constexpr std::string_view kName = "alloc_decode";
  static constexpr std::string_view kDoc = "Takes one slot for each request (PX-81).";
  using Returns = SlotsOnly;
  Numbers seq_lens = {};
  Numbers last_slots = {};
};
KVO_DESCRIBE(AllocDecode, (seq_lens, "tokens of each request, the new one included"),
             (last_slots, "its last slot; -1: none"))

struct FreeSlots {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Gives slots back (PX-80, PX-81).";
  using Returns = Nothing;
  Numbers slots = {};
};
KVO_DESCRIBE(FreeSlots, (slots, "slots by number"))

struct FreeSegment {
  static constexpr std::string_view kName = "free_segment";
  static constexpr std::string_view kDoc = "Gives a part of a row back (PX-80, PX-81).";
  using Returns = Nothing;
  Numbers slots = {};
  std::int64_t start = 0;
};
KVO_DESCRIBE(FreeSegment, (slots, "slots by number, in order of the row"),
             (start, "where they begin in the row"))

struct GroupBegin {
  static constexpr std::string_view kName = "group_begin";
  static constexpr std::string_view kDoc = "Holds back what is freed (PX-82).";
  using Returns = Nothing;
};
KVO_DESCRIBE(GroupBegin)

struct GroupEnd {
  static constexpr std::string_view kName = "group_end";
  static constexpr std::string_view kDoc = "Frees what was held back (PX-82).";
  using Returns = Nothing;
};
KVO_DESCRIBE(GroupEnd)

struct ClearSlots {
  static constexpr std::string_view kName = "clear";
  static constexpr std::string_view kDoc = "All slots are free, as at the start (PX-80).";
  using Returns = Nothing;
};
KVO_DESCRIBE(ClearSlots)

struct MakeRoom {
  static constexpr std::string_view kName = "make_room";
  static constexpr std::string_view kDoc = "Evicts what is missing to so many free slots (PX-83).";
  using Returns = NodesOnly;
  std::int64_t tokens = 0;
};
KVO_DESCRIBE(MakeRoom, (tokens, "slots that are to be free"))

struct FileRequest {
  static constexpr std::string_view kName = "request";
  static constexpr std::string_view kDoc = "Makes a request (PX-86).";
  using Returns = Nothing;
  std::int64_t request = 0;
  Tokens tokens = {};
  std::optional<std::string> extra = std::nullopt;
  std::optional<std::string> salt = std::nullopt;
  std::optional<std::int64_t> priority = std::nullopt;
};
KVO_DESCRIBE(FileRequest, (request, "number of the request"), (tokens, "its prompt"),
             (extra, "namespace; empty is one of its own"),
             (salt, "namespace; empty or absent: none"),
             (priority, "the higher is spared; absent: 0"))

struct Admit {
  static constexpr std::string_view kName = "admit";
  static constexpr std::string_view kDoc = "Looks a request up and locks what it hit (PX-86).";
  using Returns = FoundPrefix;
  std::int64_t request = 0;
};
KVO_DESCRIBE(Admit, (request, "number of the request"))

struct Extend {
  static constexpr std::string_view kName = "extend";
  static constexpr std::string_view kDoc = "Takes slots for a request's next tokens (PX-86).";
  struct Returns {
    std::optional<Numbers> slots = std::nullopt;
    Numbers nodes = {};
  };
  std::int64_t request = 0;
  std::int64_t tokens = 0;
  std::optional<Tokens> append = std::nullopt;
};
KVO_DESCRIBE(Extend, (request, "number of the request"), (tokens, "how many"),
             (append, "output that joins the request first"))
KVO_DESCRIBE(Extend::Returns, (slots, "the new ones; absent with an error"),
             (nodes, "evicted to make room, also for an error"))

struct Checkpoint {
  static constexpr std::string_view kName = "checkpoint";
  static constexpr std::string_view kDoc = "Files what a request has so far (PX-87).";
  struct Returns {
    std::int64_t node = 0;
    std::int64_t protected_ = 0;
  };
  std::int64_t request = 0;
};
KVO_DESCRIBE(Checkpoint, (request, "number of the request"))

struct Withdraw {
  static constexpr std::string_view kName = "withdraw";
  static constexpr std::string_view kDoc = "Gives up a request that has no row (PX-86).";
  using Returns = Nothing;
  std::int64_t request = 0;
};
KVO_DESCRIBE(Withdraw, (request, "number of the request"))

struct Finish {
  static constexpr std::string_view kName = "finish";
  static constexpr std::string_view kDoc = "Ends a request (PX-88).";
  using Returns = Nothing;
  std::int64_t request = 0;
  std::optional<bool> keep = std::nullopt;
};
KVO_DESCRIBE(Finish, (request, "number of the request"),
             (keep, "whether its tokens are filed; absent: they are"))
KVO_DESCRIBE(Checkpoint::Returns, (node, "the node that is locked now"),
             (protected_, "units of its row that are the tree's"))

struct ShowRow {
  static constexpr std::string_view kName = "row";
  static constexpr std::string_view kDoc = "The slots of a request (PX-86).";
  struct Returns {
    Numbers slots = {};
    std::int64_t protected_ = 0;
    std::int64_t inserted = 0;
    std::int64_t node = 0;
  };
  std::int64_t request = 0;
};
KVO_DESCRIBE(ShowRow, (request, "number of the request"))
KVO_DESCRIBE(ShowRow::Returns, (slots, "slots by number"),
             (protected_, "slots that are the tree's"),
             (inserted, "units that it filed and counted"), (node, "the node that is locked"))

struct ShownNode {
  std::int64_t node = 0;
  std::int64_t parent = 0;
  Tokens tokens = {};
  Numbers slots = {};
  std::int64_t lock = 0;
  std::int64_t hits = 0;
  std::int64_t priority = 0;
  Nullable<std::string> extra = {};
  Nullable<std::string> salt = {};
};
KVO_DESCRIBE(ShownNode, (node, "number"), (parent, "number of the node above"),
             (tokens, "of its units; with pairs one more"), (slots, "one a unit"), (lock, "locks"),
             (hits, "inserts that passed"), (priority, "the higher is spared"),
             (extra, "namespace; null: none"), (salt, "namespace; null: none"))

struct ShowTree {
  static constexpr std::string_view kName = "state";
  static constexpr std::string_view kDoc = "Tree and free slots (PX-60, PX-77, PX-80).";
  struct Returns {
    std::int64_t evictable = 0;
    std::int64_t protected_ = 0;
    std::int64_t total = 0;
    std::int64_t available = 0;
    Numbers free = {};
    Numbers staged = {};
    std::vector<ShownNode> nodes = {};
    Numbers leaves = {};
  };
};
KVO_DESCRIBE(ShowTree)
KVO_DESCRIBE(ShowTree::Returns, (evictable, "units, a running sum"),
             (protected_, "units, a running sum"), (total, "slots in the tree"),
             (available, "free slots"), (free, "free slots, or pages, the next to be taken first"),
             (staged, "slots, or pages, that are not sorted in yet"),
             (nodes, "by number, without the root"),
             (leaves, "those that may be evicted, the first to go first"))

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
