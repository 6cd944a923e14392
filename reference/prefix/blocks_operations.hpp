// reference/prefix/blocks_operations.hpp: the operations of kind `prefix.blocks`, described.
//
// Errors   of every operation: kOutOfRange: a request or block of a number that there cannot be;
//          kPrecondition: a count below 0 or beyond kMostTokens, a request never made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/prefix/blocks.hpp"

namespace kvo::prefix {

/// The config of a case.
struct BlocksConfig {
  std::int64_t num_blocks = 1;
  std::int64_t block_size = 1;
  Attention attention = Attention::kFull;
  std::optional<std::int64_t> window = std::nullopt;
  std::optional<std::int64_t> chunk = std::nullopt;
  bool enable_caching = true;
  std::int64_t max_model_len = 0;
  std::optional<std::int64_t> max_in_flight = std::nullopt;
  bool eagle = false;
  std::int64_t hash_lookahead = 0;
  double watermark = 0;
  std::optional<Nullable<std::int64_t>> retention = std::nullopt;
  bool events = false;
};
KVO_DESCRIBE(BlocksConfig, (num_blocks, "blocks, the null block included"),
             (block_size, "tokens of a block"), (attention, "what a token sees of those before it"),
             (window, "positions that a token sees, itself included; only sliding_window"),
             (chunk, "positions of a chunk; only chunked_local"),
             (enable_caching, "whether blocks get keys"),
             (max_model_len, "tokens that a request may have"),
             (max_in_flight, "tokens of one step; absent: max_model_len"),
             (eagle, "draft heads: the last hit block is dropped"),
             (hash_lookahead, "tokens behind a block that its key holds, too"),
             (watermark, "part of the pool that admission leaves free"),
             (retention, "tokens of a segment whose last blocks get keys; absent or null: all do"),
             (events, "whether events are kept"))

/// What a cache is made with.
/// Errors  kNotSupported: sizes that make no sense or are beyond kMostUnits and kMostTokens; eagle
///         with chunks, without kDraftsInChunks.
[[nodiscard]] Result<BlocksOptions> options_of(const BlocksConfig& config, QuirkSet<Quirk> quirks);

struct KeysOnly {
  Numbers keys = {};
};
KVO_DESCRIBE(KeysOnly, (keys, "keys, numbered in the order in which the case saw them"))

struct BlocksOnly {
  Numbers blocks = {};
};
KVO_DESCRIBE(BlocksOnly, (blocks, "blocks by number"))

struct AllottedBlocks {
  Numbers blocks = {};
  Numbers evicted = {};
};
KVO_DESCRIBE(AllottedBlocks, (blocks, "blocks that were handed out"),
             (evicted, "blocks that lost a key thereby, in order"))

/// An event as logs show it.
struct ShownEvent {
  EventKind kind = EventKind::kCleared;
  std::optional<Numbers> keys = std::nullopt;
  std::optional<Nullable<std::int64_t>> parent = std::nullopt;
  std::optional<Tokens> tokens = std::nullopt;
  std::optional<std::int64_t> block_size = std::nullopt;
};
KVO_DESCRIBE(ShownEvent, (kind, "stored, removed or cleared"), (keys, "keys of the units"),
             (parent, "key of the unit before the first; null: the start"),
             (tokens, "of the units, and of those between them that got no key"),
             (block_size, "tokens of a unit"))

struct MakeRequest {
  static constexpr std::string_view kName = "request";
  static constexpr std::string_view kDoc = "Makes a request, or makes it anew (PX-42, PX-10).";
  using Returns = KeysOnly;
  std::int64_t request = 0;
  Tokens tokens = {};
  std::optional<std::string> salt = std::nullopt;
  std::optional<std::string> lora = std::nullopt;
  std::optional<std::string> lora_path = std::nullopt;
  std::optional<bool> skip_reading = std::nullopt;
};
KVO_DESCRIBE(MakeRequest, (request, "number of the request"), (tokens, "its prompt"),
             (salt, "namespace; empty or absent: none"), (lora, "name of its adapter"),
             (lora_path, "where the adapter lies; counts only with a name"),
             (skip_reading, "whether it hits nothing"))

struct Append {
  static constexpr std::string_view kName = "append";
  static constexpr std::string_view kDoc = "Adds output tokens to a request (PX-11).";
  using Returns = KeysOnly;
  std::int64_t request = 0;
  Tokens tokens = {};
};
KVO_DESCRIBE(Append, (request, "number of the request"), (tokens, "output"))

struct SetRequest {
  static constexpr std::string_view kName = "set";
  static constexpr std::string_view kDoc = "Changes what a scheduler would (PX-42).";
  using Returns = Nothing;
  std::int64_t request = 0;
  std::optional<std::int64_t> computed = std::nullopt;
  std::optional<RequestStatus> status = std::nullopt;
  std::optional<std::int64_t> in_flight = std::nullopt;
  std::optional<std::int64_t> boundary = std::nullopt;
  std::optional<std::int64_t> preemptions = std::nullopt;
};
KVO_DESCRIBE(SetRequest, (request, "number of the request"), (computed, "tokens that have rows"),
             (status, "waiting, running or preempted"), (in_flight, "tokens of steps under way"),
             (boundary, "token up to which blocks keep keys"),
             (preemptions, "times that it was preempted"))

struct MatchBlocks {
  static constexpr std::string_view kName = "match";
  static constexpr std::string_view kDoc = "The longest prefix that is held (PX-20 to PX-24).";
  struct Returns {
    Numbers blocks = {};
    std::int64_t length = 0;
  };
  std::int64_t request = 0;
  std::optional<std::int64_t> max_length = std::nullopt;
};
KVO_DESCRIBE(MatchBlocks, (request, "number of the request"),
             (max_length, "tokens of the longest hit; absent: all but the last"))
KVO_DESCRIBE(MatchBlocks::Returns, (blocks, "hit blocks, null blocks among them"),
             (length, "tokens"))

struct Allocate {
  static constexpr std::string_view kName = "allocate";
  static constexpr std::string_view kDoc = "Hands out slots to a request (PX-25).";
  using Returns = AllottedBlocks;
  std::int64_t request = 0;
  std::int64_t tokens = 0;
  std::optional<Numbers> hit_blocks = std::nullopt;
  std::optional<std::int64_t> hit_tokens = std::nullopt;
  std::optional<std::int64_t> external = std::nullopt;
  std::optional<std::int64_t> lookahead = std::nullopt;
  std::optional<bool> delay_caching = std::nullopt;
  std::optional<bool> full_sequence = std::nullopt;
  std::optional<std::int64_t> reserved = std::nullopt;
  std::optional<bool> others_scheduled = std::nullopt;
};
KVO_DESCRIBE(Allocate, (request, "number of the request"), (tokens, "new tokens"),
             (hit_blocks, "blocks of a match that are adopted"),
             (hit_tokens, "block_size times their number"),
             (external, "tokens that are loaded from elsewhere"),
             (lookahead, "places for draft tokens"), (delay_caching, "whether no key is set yet"),
             (full_sequence, "whether the whole sequence must fit"),
             (reserved, "free blocks that others were promised"),
             (others_scheduled, "whether the watermark counts; absent: it does"))

struct CacheTokens {
  static constexpr std::string_view kName = "cache";
  static constexpr std::string_view kDoc = "Sets the keys of a request's first blocks (PX-30).";
  using Returns = Nothing;
  std::int64_t request = 0;
  std::int64_t tokens = 0;
};
KVO_DESCRIBE(CacheTokens, (request, "number of the request"), (tokens, "tokens from its start"))

struct Skip {
  static constexpr std::string_view kName = "skip";
  static constexpr std::string_view kDoc = "Lets go what lies behind the window (PX-51).";
  using Returns = Nothing;
  std::int64_t request = 0;
  std::int64_t computed = 0;
};
KVO_DESCRIBE(Skip, (request, "number of the request"), (computed, "tokens before the next"))

struct FreeRequest {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Releases a request's blocks (PX-33).";
  using Returns = Nothing;
  std::int64_t request = 0;
};
KVO_DESCRIBE(FreeRequest, (request, "number of the request"))

struct Pop {
  static constexpr std::string_view kName = "pop";
  static constexpr std::string_view kDoc = "Takes a request's blocks from it, pinned (PX-33).";
  using Returns = BlocksOnly;
  std::int64_t request = 0;
};
KVO_DESCRIBE(Pop, (request, "number of the request"))

struct Take {
  static constexpr std::string_view kName = "take";
  static constexpr std::string_view kDoc = "Hands out blocks to nobody (PX-38).";
  using Returns = AllottedBlocks;
  std::int64_t count = 0;
};
KVO_DESCRIBE(Take, (count, "how many"))

struct TouchBlocks {
  static constexpr std::string_view kName = "touch";
  static constexpr std::string_view kDoc = "Pins blocks (PX-29).";
  using Returns = Nothing;
  Numbers blocks = {};
};
KVO_DESCRIBE(TouchBlocks, (blocks, "blocks by number"))

struct Release {
  static constexpr std::string_view kName = "release";
  static constexpr std::string_view kDoc = "Releases blocks in the order given (PX-34).";
  using Returns = Nothing;
  Numbers blocks = {};
};
KVO_DESCRIBE(Release, (blocks, "blocks by number"))

struct EvictBlocks {
  static constexpr std::string_view kName = "evict";
  static constexpr std::string_view kDoc = "Takes the keys of blocks off (PX-36).";
  struct Returns {
    Numbers evicted = {};
  };
  Numbers blocks = {};
};
KVO_DESCRIBE(EvictBlocks, (blocks, "blocks by number"))
KVO_DESCRIBE(EvictBlocks::Returns, (evicted, "those that carried a key"))

struct ResetBlocks {
  static constexpr std::string_view kName = "reset";
  static constexpr std::string_view kDoc = "Takes all keys off, if no block is in use (PX-37).";
  struct Returns {
    bool done = false;
  };
};
KVO_DESCRIBE(ResetBlocks)
KVO_DESCRIBE(ResetBlocks::Returns, (done, "whether it did"))

struct LookUp {
  static constexpr std::string_view kName = "lookup";
  static constexpr std::string_view kDoc = "The first block that carries a key (PX-16).";
  struct Returns {
    Nullable<std::int64_t> block;
  };
  std::int64_t key = 0;
};
KVO_DESCRIBE(LookUp, (key, "key by number; one that was never seen is carried by no block"))
KVO_DESCRIBE(LookUp::Returns, (block, "block by number; null: none"))

struct ShowTable {
  static constexpr std::string_view kName = "table";
  static constexpr std::string_view kDoc = "The blocks of a request (PX-43).";
  using Returns = BlocksOnly;
  std::int64_t request = 0;
};
KVO_DESCRIBE(ShowTable, (request, "number of the request"))

struct CachedTokens {
  static constexpr std::string_view kName = "cached_tokens";
  static constexpr std::string_view kDoc = "The longest prefix that its keys stand for (PX-39).";
  struct Returns {
    std::int64_t tokens = 0;
  };
  std::int64_t request = 0;
};
KVO_DESCRIBE(CachedTokens, (request, "number of the request"))
KVO_DESCRIBE(CachedTokens::Returns, (tokens, "tokens from its start"))

struct ShowUsage {
  static constexpr std::string_view kName = "usage";
  static constexpr std::string_view kDoc = "The part of the pool that is in use (PX-44).";
  struct Returns {
    double usage = 0;
  };
};
KVO_DESCRIBE(ShowUsage)
KVO_DESCRIBE(ShowUsage::Returns, (usage, "from 0 to 1"))

struct RecordHits {
  static constexpr std::string_view kName = "record";
  static constexpr std::string_view kDoc = "Counts a request and what it hit (PX-41).";
  using Returns = Nothing;
  std::int64_t request = 0;
  std::int64_t hits = 0;
};
KVO_DESCRIBE(RecordHits, (request, "number of the request"), (hits, "tokens"))

struct ShowStatistics {
  static constexpr std::string_view kName = "stats";
  static constexpr std::string_view kDoc = "What was counted; counting begins anew (PX-41).";
  using Returns = BlocksStatistics;
};
KVO_DESCRIBE(ShowStatistics)
KVO_DESCRIBE(BlocksStatistics, (requests, "requests, but for preempted ones"),
             (queries, "tokens of these"), (hits, "tokens of these that were hit"),
             (preempted_requests, "requests that were preempted before"),
             (preempted_queries, "tokens of these"),
             (preempted_hits, "tokens of these that were hit"),
             (reset, "whether a reset succeeded since the last time"))

struct TakeEvents {
  static constexpr std::string_view kName = "events";
  static constexpr std::string_view kDoc = "The events since the last time (PX-40, PX-77).";
  struct Returns {
    std::vector<ShownEvent> events = {};
  };
};
KVO_DESCRIBE(TakeEvents)
KVO_DESCRIBE(TakeEvents::Returns, (events, "in order"))

struct ShownHolders {
  std::int64_t key = 0;
  Numbers blocks = {};
};
KVO_DESCRIBE(ShownHolders, (key, "key by number"), (blocks, "that carry it, first come first"))

struct ShowBlocks {
  static constexpr std::string_view kName = "state";
  static constexpr std::string_view kDoc = "The whole pool (PX-14 to PX-17).";
  struct Returns {
    std::int64_t free = 0;
    Numbers queue = {};
    Numbers refs = {};
    std::vector<Nullable<std::int64_t>> keys = {};
    std::vector<ShownHolders> cached = {};
  };
};
KVO_DESCRIBE(ShowBlocks)
KVO_DESCRIBE(ShowBlocks::Returns, (free, "length of the queue"),
             (queue, "free blocks, the next to be handed out first"), (refs, "users, by block"),
             (keys, "by block; null: none"), (cached, "by key"))

#define KVO_PREFIX_BLOCKS_OPERATIONS                                                              \
  prefix::MakeRequest, prefix::Append, prefix::SetRequest, prefix::MatchBlocks, prefix::Allocate, \
      prefix::CacheTokens, prefix::Skip, prefix::FreeRequest, prefix::Pop, prefix::Take,          \
      prefix::TouchBlocks, prefix::Release, prefix::EvictBlocks, prefix::ResetBlocks,             \
      prefix::LookUp, prefix::ShowTable, prefix::CachedTokens, prefix::ShowUsage,                 \
      prefix::RecordHits, prefix::ShowStatistics, prefix::TakeEvents, prefix::ShowBlocks
using BlocksOps = boost::mp11::mp_list<KVO_PREFIX_BLOCKS_OPERATIONS>;

/// The cache kind `prefix.blocks`.
[[nodiscard]] const CacheKind& blocks_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_blocks_subject(std::string variant, std::string doc, MakeBlocks make);

}  // namespace kvo::prefix

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_PREFIX_BLOCKS_OPERATIONS)
}  // namespace kvo
