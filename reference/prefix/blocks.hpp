// reference/prefix/blocks.hpp: cache `blocks`: a pool of blocks that hits are found in by key.
//
// Words    block      place of block_size tokens; its number is its index. Block 0, the null block,
//                     stands in tables for blocks that are not needed (PX-15).
//          table      the blocks of a request, in order of its tokens.
//          queue      the free blocks, the next to be handed out first. Those with a key are held,
//                     too: they can be hit until they are handed out (PX-17).
//          tracked    of a request: between its first adopting or registering and its end.
// Errors   of every operation: kOutOfRange: a request or block of a number that there cannot be;
//          kPrecondition: a count below 0 or beyond kMostTokens, a request never made.
// Source   rules PX-10 to PX-57.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

enum class Attention : std::uint8_t { kFull, kSlidingWindow, kChunkedLocal };
BOOST_DESCRIBE_ENUM(Attention, kFull, kSlidingWindow, kChunkedLocal)

enum class RequestStatus : std::uint8_t { kWaiting, kRunning, kPreempted };
BOOST_DESCRIBE_ENUM(RequestStatus, kWaiting, kRunning, kPreempted)

using BlockNumber = HandleOf<"block">;
using KeyNumber = HandleOf<"key">;
using BlockNumbers = ListOf<BlockNumber>;
using ReturnedKeys = ListOf<KeyNumber>;

/// The config of a case.
KVO_RECORD(BlocksConfig, (std::int64_t, num_blocks, "blocks, the null block included", 1),
           (std::int64_t, block_size, "tokens of a block", 1),
           (Attention, attention, "what a token sees of those before it", Attention::kFull),
           (std::optional<std::int64_t>, window,
            "positions that a token sees, itself included; only sliding_window"),
           (std::optional<std::int64_t>, chunk, "positions of a chunk; only chunked_local"),
           (bool, enable_caching, "whether blocks get keys", true),
           (std::int64_t, max_model_len, "tokens that a request may have"),
           (std::optional<std::int64_t>, max_in_flight,
            "tokens of one step; absent: max_model_len"),
           (bool, eagle, "draft heads: the last hit block is dropped"),
           (std::int64_t, hash_lookahead, "tokens after a block that its key also covers"),
           (double, watermark, "part of the pool that admission leaves free"),
           (std::optional<Nullable<std::int64_t>>, retention,
            "tokens of a segment whose last blocks get keys; absent or null: all do"),
           (bool, events, "whether events are kept"))

/// What a cache is made with; checked by options_of.
struct BlocksOptions {
  std::int64_t num_blocks = 1;  ///< the null block included, at least 1
  std::int64_t block_size = 1;  ///< tokens, at least 1
  Attention attention = Attention::kFull;
  std::int64_t window = 1;  ///< positions that a token sees, itself included; at least 1 (PX-50)
  std::int64_t chunk = 1;   ///< positions of a chunk, at least 1 (PX-50)
  bool enable_caching = true;
  std::int64_t max_model_len = 0;   ///< tokens that a request may have
  std::int64_t max_in_flight = 0;   ///< tokens of one step, for the admission cap (PX-56)
  bool eagle = false;               ///< draft heads: the last hit block is dropped (PX-22)
  std::int64_t hash_lookahead = 0;  ///< tokens behind a block that its key holds, too (PX-13)
  double watermark = 0;             ///< part of the pool that admission leaves free (PX-26)
  /// Tokens of a segment, a multiple of block_size; absent: every block gets a key (PX-55).
  std::optional<std::int64_t> retention = std::nullopt;
  bool events = false;  ///< whether events are kept
};

/// What a cache is made with.
/// Errors  kNotSupported: sizes that make no sense or are beyond kMostUnits and kMostTokens; eagle
///         with chunks, without kDraftsInChunks.
[[nodiscard]] Result<BlocksOptions> options_of(const BlocksConfig& config, QuirkSet<Quirk> quirks);

KVO_RECORD(KeysOnly, (ReturnedKeys, keys, "keys, numbered in order of appearance"))
KVO_RECORD(BlocksOnly, (BlockNumbers, blocks, "blocks by number"))
KVO_RECORD(AllottedBlocks, (BlockNumbers, blocks, "blocks that were handed out"),
           (Ids, evicted, "blocks that lost a key thereby, in order"))

/// An event as logs show it.
KVO_RECORD(ShownEvent, (EventKind, kind, "stored, removed or cleared", EventKind::kCleared),
           (std::optional<Ids>, keys, "keys of the units"),
           (std::optional<Nullable<std::int64_t>>, parent,
            "key of the unit before the first; null: the start"),
           (std::optional<Tokens>, tokens,
            "of the units, and of those between them that got no key"),
           (std::optional<std::int64_t>, block_size, "tokens of a unit"))
KVO_OPERATION(MakeRequest, request, "Makes a request, or makes it anew (PX-42, PX-10).", KeysOnly,
              (RequestNumber, request), (Tokens, tokens, "its prompt"),
              (std::optional<std::string>, salt, "namespace; empty or absent: none"),
              (std::optional<std::string>, lora, "name of its adapter"),
              (std::optional<std::string>, lora_path,
               "path of the adapter; counts only with a name"),
              (std::optional<bool>, skip_reading, "whether it hits nothing"))
KVO_OPERATION(Append, append, "Adds output tokens to a request (PX-11).", KeysOnly,
              (RequestNumber, request), (Tokens, tokens, "output"))
KVO_OPERATION(SetRequest, set, "Changes what a scheduler would (PX-42).", Nothing,
              (RequestNumber, request), (Maybe<Count>, computed, "tokens that have rows"),
              (std::optional<RequestStatus>, status, "waiting, running or preempted"),
              (Maybe<Count>, in_flight, "tokens of steps under way"),
              (Maybe<Count>, boundary, "token up to which blocks keep keys"),
              (Maybe<Count>, preemptions, "times that it was preempted"))
KVO_RECORD(MatchBlocksReturns, (BlockNumbers, blocks, "hit blocks, null blocks among them"),
           (std::int64_t, length, "tokens"))
KVO_OPERATION(MatchBlocks, match, "The longest prefix that is held (PX-20 to PX-24).",
              MatchBlocksReturns, (RequestNumber, request),
              (std::optional<std::int64_t>, max_length,
               "tokens of the longest hit; absent: all but the last"))
KVO_OPERATION(Allocate, allocate, "Hands out slots to a request (PX-25).", AllottedBlocks,
              (RequestNumber, request), (Count, tokens, "new tokens"),
              (Maybe<BlockNumbers>, hit_blocks, "blocks of a match that are adopted"),
              (Maybe<Count>, hit_tokens, "block_size times their number"),
              (Maybe<Count>, external, "tokens that are loaded from elsewhere"),
              (Maybe<Count>, lookahead, "places for draft tokens"),
              (std::optional<bool>, delay_caching, "whether no key is set yet"),
              (std::optional<bool>, full_sequence, "whether the whole sequence must fit"),
              (Maybe<Count>, reserved, "free blocks that others were promised"),
              (std::optional<bool>, others_scheduled,
               "whether the watermark counts; absent: it does"))
KVO_OPERATION(CacheTokens, cache, "Sets the keys of a request's first blocks (PX-30).", Nothing,
              (RequestNumber, request), (Count, tokens, "tokens from its start"))
KVO_OPERATION(Skip, skip, "Releases the blocks that left the window (PX-51).", Nothing,
              (RequestNumber, request), (Count, computed, "tokens before the next"))
KVO_OPERATION(FreeRequest, free, "Releases a request's blocks (PX-33).", Nothing,
              (RequestNumber, request))
KVO_OPERATION(Pop, pop, "Takes a request's blocks from it, pinned (PX-33).", BlocksOnly,
              (RequestNumber, request))
KVO_OPERATION(Take, take, "Hands out blocks to no request (PX-38).", AllottedBlocks,
              (Count, count, "how many"))
KVO_OPERATION(TouchBlocks, touch, "Pins blocks (PX-29).", Nothing,
              (BlockNumbers, blocks, "blocks by number"))
KVO_OPERATION(Release, release, "Releases blocks in the order given (PX-34).", Nothing,
              (BlockNumbers, blocks, "blocks by number"))
KVO_RECORD(EvictBlocksReturns, (Ids, evicted, "those that carried a key"))
KVO_OPERATION(EvictBlocks, evict, "Takes the keys of blocks off (PX-36).", EvictBlocksReturns,
              (BlockNumbers, blocks, "blocks by number"))
KVO_RECORD(ResetBlocksReturns, (bool, done, "whether it did"))
KVO_OPERATION(ResetBlocks, reset, "Takes all keys off, if no block is in use (PX-37).",
              ResetBlocksReturns)
KVO_RECORD(LookUpReturns, (OrNull<BlockNumber>, block, "block by number; null: none"))
KVO_OPERATION(LookUp, lookup, "The first block that carries a key (PX-16).", LookUpReturns,
              (KeyNumber, key, "key by number; one that was never seen is carried by no block"))
KVO_OPERATION(ShowTable, table, "The blocks of a request (PX-43).", BlocksOnly,
              (RequestNumber, request))
KVO_RECORD(CachedTokensReturns, (std::int64_t, tokens, "tokens from its start"))
KVO_OPERATION(CachedTokens, cached_tokens, "The longest prefix that its keys stand for (PX-39).",
              CachedTokensReturns, (RequestNumber, request))
KVO_RECORD(ShowUsageReturns, (double, usage, "from 0 to 1"))
KVO_OPERATION(ShowUsage, usage, "The part of the pool that is in use (PX-44).", ShowUsageReturns)
KVO_OPERATION(RecordHits, record, "Counts a request and what it hit (PX-41).", Nothing,
              (RequestNumber, request), (Count, hits, "tokens"))
KVO_RECORD(BlocksStatistics, (std::int64_t, requests, "requests, but for preempted ones"),
           (std::int64_t, queries, "tokens of these"),
           (std::int64_t, hits, "tokens of these that were hit"),
           (std::int64_t, preempted_requests, "requests that were preempted before"),
           (std::int64_t, preempted_queries, "tokens of these"),
           (std::int64_t, preempted_hits, "tokens of these that were hit"),
           (bool, reset, "whether a reset succeeded since the last time"))
KVO_OPERATION(ShowStatistics, stats, "What was counted; counting begins anew (PX-41).",
              BlocksStatistics)

KVO_RECORD(TakeEventsReturns, (std::vector<ShownEvent>, events, "in order"))
KVO_OPERATION(TakeEvents, events, "The events since the last time (PX-40, PX-77).",
              TakeEventsReturns)
KVO_RECORD(ShownHolders, (std::int64_t, key, "key by number"),
           (Ids, blocks, "that carry it, first come first"))
KVO_RECORD(ShowBlocksReturns, (std::int64_t, free, "length of the queue"),
           (Ids, queue, "free blocks, the next to be handed out first"),
           (Ids, refs, "users, by block"),
           (std::vector<Nullable<std::int64_t>>, keys, "by block; null: none"),
           (std::vector<ShownHolders>, cached, "by key"))
KVO_OPERATION(ShowBlocks, state, "The whole pool (PX-14 to PX-17).", ShowBlocksReturns)

#define KVO_PREFIX_BLOCKS_OPERATIONS                                                              \
  prefix::MakeRequest, prefix::Append, prefix::SetRequest, prefix::MatchBlocks, prefix::Allocate, \
      prefix::CacheTokens, prefix::Skip, prefix::FreeRequest, prefix::Pop, prefix::Take,          \
      prefix::TouchBlocks, prefix::Release, prefix::EvictBlocks, prefix::ResetBlocks,             \
      prefix::LookUp, prefix::ShowTable, prefix::CachedTokens, prefix::ShowUsage,                 \
      prefix::RecordHits, prefix::ShowStatistics, prefix::TakeEvents, prefix::ShowBlocks
using BlocksOps = boost::mp11::mp_list<KVO_PREFIX_BLOCKS_OPERATIONS>;

/// The blocks that a lookup found; MatchBlocksReturns with views.
struct BlocksHit {
  IdsView blocks = {};
  std::int64_t length = 0;  ///< tokens
};

/// AllottedBlocks with views.
struct Allotted {
  IdsView blocks = {};
  IdsView evicted = {};
};

/// The blocks that carry a key, in the order in which they got it (PX-16).
struct Holders {
  Key key = {};
  Ids blocks = {};
};

/// The whole pool.
struct BlocksState {
  Ids queue;                             ///< front first (PX-14)
  Ids refs;                              ///< [block], users
  std::vector<std::optional<Key>> keys;  ///< [block]
  std::vector<Holders> cached;           ///< keys that blocks carry, in any order
};

/// The hits that an allotment adopts.
[[nodiscard]] inline IdsView hits_of(const Allocate& op) {
  return op.hit_blocks ? IdsView(*op.hit_blocks) : IdsView();
}

/// What every cache over one pool of blocks offers, whatever it looks up. A method carries out the
/// operation of its name. An error has changed nothing.
class PoolCache {
 public:
  virtual ~PoolCache() = default;

  /// Adds output tokens. Returns  the keys that came with them (PX-11).
  /// Errors  kPrecondition: never made.
  [[nodiscard]] virtual Result<std::span<const Key>> append(std::int64_t request,
                                                            TokensView tokens) = 0;
  /// Errors  kPrecondition: never made.
  [[nodiscard]] virtual Status set(const SetRequest& op) = 0;
  /// Registers the blocks of the first tokens (PX-30; GR-20 to GR-26, GR-46).
  /// Errors  kPrecondition: a block that has a key now is beyond the table's end; in contract
  /// groups
  ///         as allocate.
  [[nodiscard]] virtual Status cache(std::int64_t request, std::int64_t tokens) = 0;
  /// Releases the blocks (PX-33, GR-39); nothing for a request without any, or never made.
  /// Errors  without kCountsBelowZero kPrecondition: a block has no user.
  [[nodiscard]] virtual Status free(std::int64_t request) = 0;

  /// Pins each block (PX-29). Errors  kOutOfMemory.
  [[nodiscard]] virtual Status touch(IdsView blocks) = 0;
  /// Releases each block (PX-34).
  /// Errors  without kCountsBelowZero kPrecondition: more often than its count.
  [[nodiscard]] virtual Status release(IdsView blocks) = 0;
  /// Takes all keys off, if no block is in use. Returns  whether it did (PX-37).
  /// Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<bool> reset() = 0;

  /// Tokens of the longest prefix that keys of its blocks stand for (PX-39), in contract groups for
  /// all groups (GR-21).
  [[nodiscard]] virtual std::int64_t cached_tokens(std::int64_t request) const = 0;
  /// Length of the queue.
  [[nodiscard]] virtual std::int64_t free_blocks() const = 0;
  /// Counts a request and the tokens that it hit (PX-41). Errors  kPrecondition: never made.
  [[nodiscard]] virtual Status record(std::int64_t request, std::int64_t hits) = 0;

  /// Where the next call may choose, prefers these blocks: of the free ones that are handed out, in
  /// this order, and of those that carry a key. Of references; others may ignore it.
  virtual void prefer(Ids /*blocks*/) {}
  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// A cache of the kind. A method carries out the operation of its name. Numbers of requests are in
/// [0, kMostRequests), of blocks in [0, num_blocks) but where a method says otherwise; counts are
/// in [0, kMostTokens]. An error has changed nothing, but for kExhausted of allocate.
class BlockCache : public PoolCache {
 public:
  /// Makes a request, or makes it anew: table and tracking of the number stay (PX-42).
  /// Returns  its keys (PX-10 to PX-13). Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<std::span<const Key>> request(const MakeRequest& op) = 0;

  /// The longest prefix that is held, of at most max_length tokens; absent: all but the last token
  /// (PX-6, PX-20 to PX-24, PX-52, PX-57). Changes nothing. max_length may be below 0.
  /// Errors  kPrecondition: with kNoPromptAborts max_length below 0 under full attention; with
  ///         kLooksBeyondKeys a block is looked at that has no key yet; eagle with chunks.
  [[nodiscard]] virtual Result<BlocksHit> match(std::int64_t request,
                                                std::optional<std::int64_t> max_length) = 0;
  /// Hands out slots (PX-25 to PX-31, PX-51, PX-53 to PX-56).
  /// Errors  kPrecondition: no tokens at all; hits that do not fit hit_tokens, that the request
  ///         may not have (PX-28), or without kStaleHitsAdopted that do not carry its keys; a block
  ///         that would get a key lies behind the table; the front of the queue has a count other
  ///         than 0 (PX-38);
  ///         kExhausted: not enough free blocks. Blocks that left the window are released even so,
  ///         unless the check of full_sequence failed first.
  [[nodiscard]] virtual Result<Allotted> allocate(const Allocate& op) = 0;
  /// Lets go what lies behind the window at that many computed tokens (PX-51).
  /// Errors  kPrecondition: never made; without kCountsBelowZero a block has no user.
  [[nodiscard]] virtual Status skip(std::int64_t request, std::int64_t computed) = 0;
  /// As free, but for the release. Returns  the table without leading null blocks.
  /// Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<IdsView> pop(std::int64_t request) = 0;

  /// Hands out blocks to nobody (PX-38).
  /// Errors  kExhausted: fewer are free; kPrecondition: one of them has a count other than 0.
  [[nodiscard]] virtual Result<Allotted> take(std::int64_t count) = 0;
  /// Takes the keys off (PX-36), of any numbers. Returns  the blocks that carried one.
  /// Errors  kOutOfRange, with kEvictTakesAnyNumber kPrecondition: no such block.
  [[nodiscard]] virtual Result<IdsView> evict(IdsView blocks) = 0;

  /// The first block that carries the key (PX-16).
  [[nodiscard]] virtual std::optional<std::int64_t> lookup(const Key& key) const = 0;
  /// The blocks of a request, empty where there are none (PX-43).
  [[nodiscard]] virtual IdsView table(std::int64_t request) const = 0;

  /// The sums, which begin anew.
  [[nodiscard]] virtual BlocksStatistics stats() = 0;
  /// The events since the last time (PX-40).
  [[nodiscard]] virtual std::span<const Event> events() = 0;

  [[nodiscard]] virtual BlocksState state() const = 0;
};

/// Makes a cache; the options are sound. Errors  kNotSupported, kOutOfMemory.
using MakeBlocks = std::function<Result<std::unique_ptr<BlockCache>>(const BlocksOptions& options,
                                                                     QuirkSet<Quirk> quirks)>;

/// The cache kind `prefix.blocks`.
[[nodiscard]] const CacheKind& blocks_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_blocks_subject(std::string variant, std::string doc, MakeBlocks make);

}  // namespace kvo::prefix

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_PREFIX_BLOCKS_OPERATIONS)
}  // namespace kvo
