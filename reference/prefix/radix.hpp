// reference/prefix/radix.hpp: cache `radix`: a tree of token runs over a pool of slots.
//
// Words    unit       a token; with `pairs` (eagle) two neighbouring tokens (PX-78).
//          page       page_size units; keys and slots are whole pages.
//          node       a run of units below its parent, with a slot a unit; numbers count up and
//                     are never used again. The root holds nothing (PX-60).
//          row        the slots of a request: those that it matched, and its own behind them.
// Source   rules PX-60 to PX-88.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// What a cache is made with; checked by options_of (operations.hpp).
struct RadixOptions {
  Policy policy = Policy::kLru;
  std::int64_t slru_threshold = 2;  ///< hits from which a node is spared
  std::int64_t page_size = 1;       ///< units, at least 1
  std::int64_t slots = 0;           ///< of the pool, slot 0 not counted
  bool pairs = false;               ///< eagle: units are pairs of tokens
  bool disable = false;             ///< nothing is kept (PX-76)
  bool events = false;              ///< whether events are kept; not with pairs
  bool need_sort = false;           ///< what is freed waits to be sorted in (PX-80)
};

/// Where keys part at the root (PX-63).
struct Namespace {
  std::optional<std::string_view> extra = std::nullopt;  ///< empty is one of its own
  std::string_view salt = {};                            ///< empty: none
};

/// What is looked up (PX-64).
struct RadixLookup {
  TokensView tokens = {};
  Namespace space = {};
};

/// A prefix that is held.
struct RadixHit {
  std::int64_t length = 0;  ///< units
  std::int64_t node = 0;    ///< the last one
  IdsView slots = {};       ///< one a unit
};

/// What is inserted (PX-66).
struct Insertion {
  TokensView tokens = {};
  std::optional<IdsView> slots = std::nullopt;  ///< at least a unit's each; absent: the tokens
  Namespace space = {};
  std::int64_t priority = 0;
  std::int64_t inserted = 0;  ///< units whose nodes do not count this insert as a hit (PX-68)
};

struct Inserted {
  std::int64_t length = 0;                          ///< units that were there before
  std::optional<std::int64_t> node = std::nullopt;  ///< the last one; none where disabled
};

struct RadixEvicted {
  std::int64_t tokens = 0;  ///< units that went
  IdsView nodes = {};       ///< in order
};

/// A request as it is made (PX-86). Lists and words are the caller's.
struct RadixRequest {
  TokensView tokens = {};
  Namespace space = {};
  std::int64_t priority = 0;
};

/// What came of asking for slots for new tokens.
struct Extended {
  bool exhausted = false;  ///< the request is as before, but `nodes` are gone
  IdsView slots = {};      ///< the new ones
  IdsView nodes = {};      ///< evicted to make room
};

struct Checkpointed {
  std::int64_t node = 0;        ///< the one that is locked now
  std::int64_t protected_ = 0;  ///< units of the row that are the tree's
};

struct Row {
  IdsView slots = {};
  std::int64_t protected_ = 0;
  std::int64_t inserted = 0;
  std::int64_t node = 0;  ///< the one that is locked
};

struct NodeState {
  std::int64_t node = 0;
  std::int64_t parent = 0;
  Tokens tokens = {};  ///< with pairs one more than units
  Ids slots = {};
  std::int64_t lock = 0;
  std::int64_t hits = 0;
  std::int64_t priority = 0;
  std::optional<std::string> extra = std::nullopt;
  std::optional<std::string> salt = std::nullopt;
};

/// Tree and allocator.
struct RadixState {
  std::int64_t evictable = 0;    ///< units, a running sum (PX-77)
  std::int64_t protected_ = 0;   ///< units, a running sum
  std::int64_t total = 0;        ///< slots in the tree
  std::int64_t available = 0;    ///< slots in both lists
  Ids free;                      ///< slots; pages where a page has several
  Ids staged;                    ///< the same, freed and not sorted in yet
  std::vector<NodeState> nodes;  ///< by number, without the root
  Ids leaves;                    ///< those that may be evicted, the first to go first
};

/// A cache of the kind. Numbers of requests are in [0, kMostRequests), counts in [0, kMostTokens];
/// slots are of any number, for nobody checks them (PX-85). Depth of the tree is not bounded.
/// An error has changed nothing, but where `exhausted` says so.
class RadixCache {
 public:
  virtual ~RadixCache() = default;

  /// The longest prefix that is held; locks nothing (PX-84), but may split (PX-64, PX-65).
  /// Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<RadixHit> match(const RadixLookup& what) = 0;
  /// The same, without an answer. Errors  kOutOfMemory.
  [[nodiscard]] virtual Status touch(const RadixLookup& what) = 0;
  /// Files tokens and slots (PX-66 to PX-69, PX-74).
  /// Errors  kPrecondition: fewer slots than units.
  [[nodiscard]] virtual Result<Inserted> insert(const Insertion& what) = 0;
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
  [[nodiscard]] virtual Status request(std::int64_t request, const RadixRequest& what) = 0;
  /// Looks up all but its last token, and locks what it hit (PX-86).
  /// Errors  kPrecondition: it is admitted already.
  [[nodiscard]] virtual Result<RadixHit> admit(std::int64_t request) = 0;
  /// Takes slots for new tokens, behind `append`, which joins its output (PX-86).
  /// Errors  kPrecondition: it is not admitted; as evict.
  [[nodiscard]] virtual Result<Extended> extend(std::int64_t request, std::int64_t tokens,
                                                TokensView append) = 0;
  /// Files what the request has (PX-87).
  /// Errors  kPrecondition: it has no row, or a longer one than tokens.
  [[nodiscard]] virtual Result<Checkpointed> checkpoint(std::int64_t request) = 0;
  /// Takes the lock of a request that has no row (PX-86). Errors  kPrecondition: not admitted, or
  /// it has a row.
  [[nodiscard]] virtual Status withdraw(std::int64_t request) = 0;
  /// Ends a request; `keep` files it first (PX-88). Errors  as checkpoint.
  [[nodiscard]] virtual Status finish(std::int64_t request, bool keep) = 0;
  /// Errors  kPrecondition: it has no row.
  [[nodiscard]] virtual Result<Row> row(std::int64_t request) const = 0;

  /// The events since the last time (PX-77).
  [[nodiscard]] virtual std::span<const Event> take_events() = 0;
  [[nodiscard]] virtual RadixState state() const = 0;
  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// Makes a cache; the options are sound. Errors  kNotSupported, kOutOfMemory.
using MakeRadix = std::function<Result<std::unique_ptr<RadixCache>>(const RadixOptions& options,
                                                                    QuirkSet<Quirk> quirks)>;

}  // namespace kvo::prefix
