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

/// What a cache is made with.
/// Errors  kNotSupported: sizes that make no sense or are beyond kMostUnits and kMostTokens; eagle
///         with chunks, without kDraftsInChunks.
[[nodiscard]] Result<BlocksOptions> options_of(const BlocksConfig& config, QuirkSet<Quirk> quirks);

KVO_RECORD(KeysOnly, (Numbers, keys, "keys, numbered in the order in which the case saw them"))
KVO_RECORD(BlocksOnly, (Numbers, blocks, "blocks by number"))
KVO_RECORD(AllottedBlocks, (Numbers, blocks, "blocks that were handed out"),
           (Numbers, evicted, "blocks that lost a key thereby, in order"))

/// An event as logs show it.
KVO_RECORD(ShownEvent, (EventKind, kind, "stored, removed or cleared", EventKind::kCleared),
           (std::optional<Numbers>, keys, "keys of the units"),
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
KVO_RECORD(MatchBlocksReturns, (Numbers, blocks, "hit blocks, null blocks among them"),
           (std::int64_t, length, "tokens"))
KVO_OPERATION(MatchBlocks, match, "The longest prefix that is held (PX-20 to PX-24).",
              MatchBlocksReturns, (RequestNumber, request),
              (std::optional<std::int64_t>, max_length,
               "tokens of the longest hit; absent: all but the last"))
KVO_OPERATION(Allocate, allocate, "Hands out slots to a request (PX-25).", AllottedBlocks,
              (RequestNumber, request), (Count, tokens, "new tokens"),
              (std::optional<Numbers>, hit_blocks, "blocks of a match that are adopted"),
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
              (Numbers, blocks, "blocks by number"))
KVO_OPERATION(Release, release, "Releases blocks in the order given (PX-34).", Nothing,
              (Numbers, blocks, "blocks by number"))
KVO_RECORD(EvictBlocksReturns, (Numbers, evicted, "those that carried a key"))
KVO_OPERATION(EvictBlocks, evict, "Takes the keys of blocks off (PX-36).", EvictBlocksReturns,
              (Numbers, blocks, "blocks by number"))
KVO_RECORD(ResetBlocksReturns, (bool, done, "whether it did"))
KVO_OPERATION(ResetBlocks, reset, "Takes all keys off, if no block is in use (PX-37).",
              ResetBlocksReturns)
KVO_RECORD(LookUpReturns, (Nullable<std::int64_t>, block, "block by number; null: none"))
KVO_OPERATION(LookUp, lookup, "The first block that carries a key (PX-16).", LookUpReturns,
              (std::int64_t, key, "key by number; one that was never seen is carried by no block"))
KVO_OPERATION(ShowTable, table, "The blocks of a request (PX-43).", BlocksOnly,
              (RequestNumber, request))
KVO_RECORD(CachedTokensReturns, (std::int64_t, tokens, "tokens from its start"))
KVO_OPERATION(CachedTokens, cached_tokens, "The longest prefix that its keys stand for (PX-39).",
              CachedTokensReturns, (RequestNumber, request))
KVO_RECORD(ShowUsageReturns, (double, usage, "from 0 to 1"))
KVO_OPERATION(ShowUsage, usage, "The part of the pool that is in use (PX-44).", ShowUsageReturns)
KVO_OPERATION(RecordHits, record, "Counts a request and what it hit (PX-41).", Nothing,
              (RequestNumber, request), (Count, hits, "tokens"))
KVO_OPERATION(ShowStatistics, stats, "What was counted; counting begins anew (PX-41).",
              BlocksStatistics)

KVO_DESCRIBE(BlocksStatistics, (requests, "requests, but for preempted ones"),
             (queries, "tokens of these"), (hits, "tokens of these that were hit"),
             (preempted_requests, "requests that were preempted before"),
             (preempted_queries, "tokens of these"),
             (preempted_hits, "tokens of these that were hit"),
             (reset, "whether a reset succeeded since the last time"))

KVO_RECORD(TakeEventsReturns, (std::vector<ShownEvent>, events, "in order"))
KVO_OPERATION(TakeEvents, events, "The events since the last time (PX-40, PX-77).",
              TakeEventsReturns)
KVO_RECORD(ShownHolders, (std::int64_t, key, "key by number"),
           (Numbers, blocks, "that carry it, first come first"))
KVO_RECORD(ShowBlocksReturns, (std::int64_t, free, "length of the queue"),
           (Numbers, queue, "free blocks, the next to be handed out first"),
           (Numbers, refs, "users, by block"),
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

/// The cache kind `prefix.blocks`.
[[nodiscard]] const CacheKind& blocks_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_blocks_subject(std::string variant, std::string doc, MakeBlocks make);

}  // namespace kvo::prefix

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_PREFIX_BLOCKS_OPERATIONS)
}  // namespace kvo
