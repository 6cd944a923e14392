// reference/prefix/blocks.hpp: cache `blocks`: a pool of blocks that hits are found in by key.
//
// Words    block      place of block_size tokens; its number is its index. Block 0, the null block,
//                     stands in tables for blocks that are not needed (PX-15).
//          table      the blocks of a request, in order of its tokens.
//          queue      the free blocks, the next to be handed out first. Those with a key are held,
//                     too: they can be hit until they are handed out (PX-17).
//          tracked    of a request: between its first adopting or registering and its end.
// Source   rules PX-10 to PX-57.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

enum class Attention : std::uint8_t { kFull, kSlidingWindow, kChunkedLocal };
BOOST_DESCRIBE_ENUM(Attention, kFull, kSlidingWindow, kChunkedLocal)

enum class RequestStatus : std::uint8_t { kWaiting, kRunning, kPreempted };
BOOST_DESCRIBE_ENUM(RequestStatus, kWaiting, kRunning, kPreempted)

/// What a cache is made with; checked by options_of (operations.hpp).
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

/// A request as it is made (PX-42). Lists and words are the caller's.
struct BlocksRequest {
  TokensView tokens = {};
  std::string_view salt = {};                 ///< empty: none (PX-12)
  std::optional<std::string_view> lora = {};  ///< name of its adapter
  std::string_view lora_path = {};            ///< counts only with a name
  bool skip_reading = false;                  ///< hits nothing (PX-20)
};

/// What the scheduler changes of a request (PX-42); what is absent stays.
struct RequestChange {
  std::optional<std::int64_t> computed = std::nullopt;  ///< tokens whose rows are there
  std::optional<RequestStatus> status = std::nullopt;
  std::optional<std::int64_t> in_flight = std::nullopt;  ///< tokens of steps under way
  std::optional<std::int64_t> boundary = std::nullopt;   ///< token up to which blocks keep keys
  std::optional<std::int64_t> preemptions = std::nullopt;
};

/// What a lookup found.
struct BlocksHit {
  IdsView blocks = {};
  std::int64_t length = 0;  ///< tokens
};

/// Slots that a request asks for (PX-25).
struct Allotment {
  std::int64_t tokens = 0;       ///< new tokens
  IdsView hit_blocks = {};       ///< of a match, to be adopted
  std::int64_t hit_tokens = 0;   ///< block_size times their number
  std::int64_t external = 0;     ///< tokens that are loaded from elsewhere (PX-27)
  std::int64_t lookahead = 0;    ///< places for draft tokens
  bool delay_caching = false;    ///< registers nothing yet
  bool full_sequence = false;    ///< admits only if the whole sequence would fit (PX-26)
  std::int64_t reserved = 0;     ///< free blocks that others were promised
  bool others_scheduled = true;  ///< whether the watermark counts
};

/// Blocks that were handed out.
struct Allotted {
  IdsView blocks = {};
  IdsView evicted = {};  ///< those among all that were handed out which lost a key, in order
};

/// Sums of record() (PX-41).
struct BlocksStatistics {
  std::int64_t requests = 0;
  std::int64_t queries = 0;  ///< tokens
  std::int64_t hits = 0;     ///< tokens
  std::int64_t preempted_requests = 0;
  std::int64_t preempted_queries = 0;
  std::int64_t preempted_hits = 0;
  bool reset = false;  ///< whether a reset succeeded since the last ones
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

/// A cache of the kind. Numbers of requests are in [0, kMostRequests), of blocks in [0,
/// num_blocks) but where a method says otherwise; counts are in [0, kMostTokens].
/// An error has changed nothing, but for kExhausted of allocate.
class BlockCache {
 public:
  virtual ~BlockCache() = default;

  /// Makes a request, or makes it anew: table and tracking of the number stay (PX-42).
  /// Returns  its keys (PX-10 to PX-13). Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<std::span<const Key>> request(std::int64_t request,
                                                             const BlocksRequest& what) = 0;
  /// Adds output tokens. Returns  the keys that came with them (PX-11).
  /// Errors  kPrecondition: never made.
  [[nodiscard]] virtual Result<std::span<const Key>> append(std::int64_t request,
                                                            TokensView tokens) = 0;
  /// Errors  kPrecondition: never made.
  [[nodiscard]] virtual Status set(std::int64_t request, const RequestChange& change) = 0;

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
  ///         kExhausted: too few are free; what lay behind the window is let go all the same, but
  ///         not where full_sequence found it.
  [[nodiscard]] virtual Result<Allotted> allocate(std::int64_t request,
                                                  const Allotment& allotment) = 0;
  /// Registers the blocks of the first tokens (PX-30).
  /// Errors  kPrecondition: a block that has a key now lies behind the table's end.
  [[nodiscard]] virtual Status cache(std::int64_t request, std::int64_t tokens) = 0;
  /// Lets go what lies behind the window at that many computed tokens (PX-51).
  /// Errors  kPrecondition: never made; without kCountsBelowZero a block has no user.
  [[nodiscard]] virtual Status skip(std::int64_t request, std::int64_t computed) = 0;
  /// Releases the table (PX-33); nothing for a request without one, or never made.
  /// Errors  without kCountsBelowZero kPrecondition: a block has no user.
  [[nodiscard]] virtual Status free(std::int64_t request) = 0;
  /// The same, but for the release. Returns  the table without leading null blocks.
  /// Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<IdsView> pop(std::int64_t request) = 0;

  /// Hands out blocks to nobody (PX-38).
  /// Errors  kExhausted: fewer are free; kPrecondition: one of them has a count other than 0.
  [[nodiscard]] virtual Result<Allotted> take(std::int64_t count) = 0;
  /// Pins each block (PX-29). Errors  kOutOfMemory.
  [[nodiscard]] virtual Status touch(IdsView blocks) = 0;
  /// Releases each block (PX-34).
  /// Errors  without kCountsBelowZero kPrecondition: more often than its count.
  [[nodiscard]] virtual Status release(IdsView blocks) = 0;
  /// Takes the keys off (PX-36), of any numbers. Returns  the blocks that carried one.
  /// Errors  kOutOfRange, with kEvictTakesAnyNumber kPrecondition: no such block.
  [[nodiscard]] virtual Result<IdsView> evict(IdsView blocks) = 0;
  /// Takes all keys off, if no block is in use. Returns  whether it did (PX-37).
  /// Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<bool> reset() = 0;

  /// The first block that carries the key (PX-16).
  [[nodiscard]] virtual std::optional<std::int64_t> lookup(const Key& key) const = 0;
  /// The blocks of a request, empty where there are none (PX-43).
  [[nodiscard]] virtual IdsView table(std::int64_t request) const = 0;
  /// Tokens of the longest prefix that a key of its blocks stands for (PX-39).
  [[nodiscard]] virtual std::int64_t cached_tokens(std::int64_t request) const = 0;
  /// Length of the queue.
  [[nodiscard]] virtual std::int64_t free_blocks() const = 0;

  /// Counts a request and the tokens that it hit (PX-41). Errors  kPrecondition: never made.
  [[nodiscard]] virtual Status record(std::int64_t request, std::int64_t hits) = 0;
  /// The sums, which begin anew.
  [[nodiscard]] virtual BlocksStatistics take_statistics() = 0;
  /// The events since the last time (PX-40).
  [[nodiscard]] virtual std::span<const Event> take_events() = 0;

  [[nodiscard]] virtual BlocksState state() const = 0;
  /// Nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

/// Makes a cache; the options are sound. Errors  kNotSupported, kOutOfMemory.
using MakeBlocks = std::function<Result<std::unique_ptr<BlockCache>>(const BlocksOptions& options,
                                                                     QuirkSet<Quirk> quirks)>;

}  // namespace kvo::prefix
