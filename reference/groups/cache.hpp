// reference/groups/cache.hpp: cache `blocks` of contract `groups`: one pool of blocks for groups of
// layers that do not all remember the same.
//
// Words    as of reference/prefix/blocks.hpp, and
//          group   layers that share one block table; a request has one table for each group.
//          unit    hash_block tokens: a request has one key for each.
//          state   what a mamba layer knows after so many tokens; a block holds one.
//          tail    a block that is hit, or has a key, only up to a unit inside it.
// Errors   of every operation: kOutOfRange: a request or block of a number that there cannot be;
//          kPrecondition: a count below 0 or beyond kMostTokens, a request never made; and what
//          setup answers, where that is an error.
// Source   rules GR-1 to GR-61, and PX-10 to PX-57 of contract `prefix`.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/groups/quirks.hpp"
#include "reference/prefix/blocks.hpp"

namespace kvo::groups {

using prefix::BlocksOnly;
using prefix::BlocksStatistics;
using prefix::Count;
using prefix::Event;
using prefix::EventKind;
using prefix::Ids;
using prefix::IdsView;
using prefix::Key;
using prefix::kMostTokens;
using prefix::kMostUnits;
using prefix::RequestNumber;
using prefix::RequestStatus;
using prefix::Tokens;
using prefix::TokensView;

/// What a layer of a group remembers (GR-2).
enum class GroupKind : std::uint8_t {
  kFull,
  kMla,
  kSlidingWindow,
  kSlidingWindowMla,
  kChunkedLocal,
  kRswa,
  kMamba,
  kRing,
};
BOOST_DESCRIBE_ENUM(GroupKind, kFull, kMla, kSlidingWindow, kSlidingWindowMla, kChunkedLocal, kRswa,
                    kMamba, kRing)

/// When a mamba group has a block for a state.
enum class StateMode : std::uint8_t { kAlign, kNone };
BOOST_DESCRIBE_ENUM(StateMode, kAlign, kNone)

/// A group of a case.
KVO_RECORD(Group, (GroupKind, kind, "what its layers remember", GroupKind::kFull),
           (std::int64_t, block_size, "tokens of a block", 1),
           (std::int64_t, window, "positions that a token sees, itself included; of windows, rswa",
            0, may_be_absent),
           (std::int64_t, retained, "tokens that a window holds beyond it", 0, may_be_absent),
           (std::int64_t, chunk, "positions of a chunk; of chunked_local", 0, may_be_absent),
           (StateMode, mode, "of mamba: align or none", StateMode::kAlign, may_be_absent),
           (std::int64_t, speculative, "of mamba: spare blocks for drafts", 0, may_be_absent),
           (std::int64_t, checkpoints, "of mamba: states inside a chunk, 0 or 1", 0, may_be_absent),
           (std::int64_t, checkpoint_alignment, "tokens from a chunk's start to its checkpoint", 0,
            may_be_absent),
           (bool, replay, "of sliding_window_mla: whether no block is shared", false,
            may_be_absent),
           (bool, draft, "whether draft heads read its blocks", false, may_be_absent))

/// What a group does, by its kind (GR-2). @{
[[nodiscard]] inline bool is_full(const Group& group) {
  return group.kind == GroupKind::kFull || group.kind == GroupKind::kMla ||
         group.kind == GroupKind::kRswa;
}
[[nodiscard]] inline bool is_window(const Group& group) {
  return group.kind == GroupKind::kSlidingWindow || group.kind == GroupKind::kSlidingWindowMla;
}
[[nodiscard]] inline bool is_state(const Group& group) {
  return group.kind == GroupKind::kMamba;
}
[[nodiscard]] inline bool is_aligned_state(const Group& group) {
  return is_state(group) && group.mode == StateMode::kAlign;
}
/// Whether its blocks can be shared.
[[nodiscard]] inline bool is_cacheable(const Group& group) {
  return group.kind != GroupKind::kRing && !group.replay;
}
/// @}

/// The config of a case.
KVO_RECORD(Config, (std::int64_t, num_blocks, "blocks, the null block included", 1),
           (std::vector<Group>, groups, "in order"),
           (std::int64_t, hash_block, "tokens of a key", 1),
           (bool, enable_caching, "whether blocks get keys", true),
           (std::int64_t, max_model_len, "tokens that a request may have"),
           (std::optional<std::int64_t>, max_in_flight,
            "tokens of one step; absent: max_model_len"),
           (bool, eagle, "draft heads: what they read must be held, too"),
           (std::int64_t, hash_lookahead, "tokens after a unit that its key also covers"),
           (std::int64_t, prefill_lookahead, "tokens that draft heads read ahead of a prompt"),
           (double, watermark, "part of the pool that admission leaves free"),
           (std::optional<Nullable<std::int64_t>>, retention,
            "tokens of a segment whose last blocks get keys; absent or null: all do"),
           (bool, junction, "whether a state is held where prompts parted"),
           (bool, events, "whether events are recorded"),
           (std::optional<std::int64_t>, max_scheduled, "tokens of a chunk; absent: max_model_len"),
           (std::optional<std::int64_t>, split_block,
            "tokens by which chunks are cut; absent: the scheduler's block"))

/// What a cache is made with; checked by options_of.
struct Options {
  std::int64_t num_blocks = 1;
  std::vector<Group> groups = {};  ///< at least one
  std::int64_t hash_block = 1;
  bool enable_caching = true;
  std::int64_t max_model_len = 0;
  std::int64_t max_in_flight = 0;
  bool eagle = false;
  std::int64_t hash_lookahead = 0;
  std::int64_t prefill_lookahead = 0;
  double watermark = 0;
  std::optional<std::int64_t> retention = std::nullopt;
  bool junction = false;
  bool events = false;
  std::int64_t max_scheduled = 0;
  std::optional<std::int64_t> split_block = std::nullopt;
};

/// Most groups of a case.
inline constexpr std::size_t kMostGroups = 64;
/// What a cache is made with.
/// Errors  kNotSupported: sizes that make no sense or are beyond kMostUnits and kMostTokens.
[[nodiscard]] Result<Options> options_of(const Config& config);

using GroupSets = std::vector<Ids>;
KVO_RECORD(SetupReturns, (std::int64_t, scheduler_block, "tokens that all block sizes divide"),
           (std::int64_t, alignment, "tokens that the length of a hit is a multiple of"),
           (bool, partial, "whether a hit may end inside a block"),
           (GroupSets, lookup, "groups that are looked up together, in order"),
           (Ids, drops, "groups that drop the end of a hit"),
           (bool, junction, "whether a state is held where prompts parted"),
           (std::vector<Nullable<std::int64_t>>, caps,
            "blocks that a request needs at most, by group"))
KVO_OPERATION(ShowSetup, setup, "What follows from the config (GR-5 to GR-9).", SetupReturns)

/// When a hit is announced.
enum class HitReport : std::uint8_t { kFull };
BOOST_DESCRIBE_ENUM(HitReport, kFull)

using Tables = std::vector<Ids>;  ///< [group]
KVO_OPERATION(MakeRequest, request, "Makes a request, or makes it anew (PX-42, GR-3).",
              prefix::KeysOnly, (RequestNumber, request), (Tokens, tokens, "its prompt"),
              (std::optional<std::string>, salt, "namespace; empty or absent: none"),
              (std::optional<std::string>, lora, "name of its adapter"),
              (std::optional<std::string>, lora_path,
               "path of the adapter; counts only with a name"),
              (std::optional<bool>, skip_reading, "whether it hits nothing"),
              (std::optional<HitReport>, report, "whether its hits are announced (GR-19)"))
KVO_RECORD(MatchReturns, (Tables, blocks, "hit blocks of each group, null blocks among them"),
           (std::int64_t, length, "tokens"),
           (std::int64_t, boundary, "tokens that some group holds; 0: no more than length"))
KVO_OPERATION(Match, match, "The longest prefix that all groups hold (GR-10 to GR-17).",
              MatchReturns, (RequestNumber, request),
              (std::optional<std::int64_t>, max_length,
               "tokens of the longest hit; absent: all but the last"))
KVO_RECORD(MatchConnectorReturns, (Tables, blocks, "hit blocks of each group"),
           (std::int64_t, length, "tokens"), (std::int64_t, boundary, "as of match"),
           (bool, diverged, "whether some group held less: its rows are loaded"))
KVO_OPERATION(MatchConnector, match_connector,
              "The same for an engine that loads rows from elsewhere (GR-18).",
              MatchConnectorReturns, (RequestNumber, request),
              (std::optional<std::int64_t>, max_length, "as of match"))
KVO_RECORD(SplitReturns, (std::int64_t, tokens, "tokens of the next chunk; 0: not now"))
KVO_OPERATION(Split, split, "How many tokens may be in one chunk (GR-48).", SplitReturns,
              (RequestNumber, request), (Count, tokens, "that are wanted"),
              (Maybe<Count>, hit_tokens, "length of the match"),
              (Maybe<Count>, external, "tokens that are loaded from elsewhere"))
KVO_RECORD(Allotment, (Tables, blocks, "blocks that were handed out, by group"),
           (Ids, evicted, "blocks that lost their keys thereby, in order"))
KVO_OPERATION(Allocate, allocate, "Hands out slots to a request (GR-30).", Allotment,
              (RequestNumber, request), (Count, tokens, "new tokens"),
              (std::optional<Tables>, hit_blocks, "blocks of a match that are adopted"),
              (Maybe<Count>, hit_tokens, "length of the match"),
              (Maybe<Count>, external, "tokens that are loaded from elsewhere"),
              (Maybe<Count>, lookahead, "places for draft tokens"),
              (std::optional<bool>, delay_caching, "whether no key is set yet"),
              (std::optional<bool>, full_sequence, "whether the whole sequence must fit"),
              (Maybe<Count>, reserved, "free blocks that others were promised"),
              (std::optional<bool>, others_scheduled,
               "whether the watermark counts; absent: it does"),
              (std::optional<Ids>, loaded_groups, "groups whose loaded blocks are not zeroed"))
KVO_OPERATION(Skip, skip, "Releases what the next token does not need (GR-31).", Nothing,
              (RequestNumber, request), (Count, computed, "tokens before the next"),
              (Maybe<Count>, prompt, "tokens of the prompt, for rswa"))
KVO_OPERATION(NextStep, step, "Begins a step: states of the last one are computed (GR-47).",
              Nothing)
KVO_RECORD(CopiesReturns, (Tables, copies, "pairs: from, to"),
           (Ids, retained, "blocks that the caller releases when it has copied"))
KVO_OPERATION(TakeCopies, copies, "The copies that the step needs (GR-38).", CopiesReturns)
KVO_RECORD(Offload, (std::optional<std::int64_t>, request, "absent: that of the operation"),
           (std::int64_t, group, "which"), (std::int64_t, block, "by number"),
           (std::int64_t, tokens, "that its state is of"))
KVO_RECORD(OffloadsReturns, (std::vector<Offload>, offloads, "in order"))
KVO_OPERATION(TakeOffloads, offloads, "States that may be stored elsewhere (GR-49).",
              OffloadsReturns)
KVO_OPERATION(Finalize, finalize, "The state at the end of a prompt, if it is left (GR-49).",
              OffloadsReturns, (RequestNumber, request))
KVO_OPERATION(TakeFresh, fresh, "Blocks that must be zeroed before use (GR-50).", BlocksOnly)
KVO_OPERATION(Zero, zero, "Adds a request's blocks to those that must be zeroed (GR-50).", Nothing,
              (RequestNumber, request), (Count, start, "tokens; whole blocks"))
KVO_RECORD(TablesReturns, (Tables, blocks, "by group"))
KVO_OPERATION(Clip, clip, "The tables up to so many tokens (GR-50).", TablesReturns,
              (RequestNumber, request), (Count, computed, "tokens"))
KVO_RECORD(LookUpReturns, (Nullable<Ids>, blocks, "one a group; null: one of them has none"))
KVO_OPERATION(LookUp, lookup, "The first block of each group that carries a key (GR-3).",
              LookUpReturns, (prefix::KeyNumber, key, "key by number"),
              (Ids, groups, "groups that are asked"))
KVO_OPERATION(ShowTables, table, "The blocks of a request (PX-43).", TablesReturns,
              (RequestNumber, request))
KVO_RECORD_WITH((static constexpr std::array<std::string_view, 1> kComparedIfShown{"vetoed"};),
                Statistics, (std::int64_t, requests, "requests, but for preempted ones"),
                (std::int64_t, queries, "tokens of these"),
                (std::int64_t, hits, "tokens of these that were hit"),
                (std::int64_t, preempted_requests, "requests that were preempted before"),
                (std::int64_t, preempted_queries, "tokens of these"),
                (std::int64_t, preempted_hits, "tokens of these that were hit"),
                (bool, reset, "whether a reset succeeded since the last time"),
                (std::optional<std::int64_t>, vetoed,
                 "tokens that some group held and another did not; only in profile documented"))
KVO_OPERATION(ShowStatistics, stats, "What was counted; counting begins anew (PX-41).", Statistics)

/// An event as logs show it.
KVO_RECORD(ShownEvent, (EventKind, kind, "stored, removed or cleared", EventKind::kCleared),
           (std::optional<std::int64_t>, group, "whose blocks they are"),
           (std::optional<Ids>, keys, "keys of the blocks"),
           (std::optional<Nullable<std::int64_t>>, parent,
            "key of the unit before the first; null: the start"),
           (std::optional<Tokens>, tokens,
            "of the blocks, and of those between them that got no key"),
           (std::optional<std::int64_t>, block_size, "tokens of a key"),
           (std::optional<std::string>, attention, "what the group's layers remember"),
           (std::optional<Nullable<std::int64_t>>, window, "of the group, or null"))
KVO_RECORD(TakeEventsReturns, (std::vector<ShownEvent>, events, "in order"))
KVO_OPERATION(TakeEvents, events, "The events since the last time (GR-27).", TakeEventsReturns)

KVO_RECORD(ShownHolders, (std::int64_t, key, "key by number"), (std::int64_t, group, "which"),
           (Ids, blocks, "that carry it, first come first"))
KVO_RECORD(ShowBlocksReturns, (std::int64_t, free, "length of the queue"),
           (Ids, queue, "free blocks, the next to be handed out first"),
           (Ids, refs, "users, by block"),
           (std::vector<Nullable<std::vector<Ids>>>, keys,
            "by block: pairs of key and group, the main one first; null: none"),
           (std::vector<Nullable<std::int64_t>>, ends,
            "by block: tokens that the main key stands for; null: none"),
           (std::vector<ShownHolders>, cached, "by key, then group"))
KVO_OPERATION(ShowBlocks, state, "The whole pool (PX-14 to PX-17, GR-4).", ShowBlocksReturns)

#define KVO_GROUPS_BLOCKS_OPERATIONS                                                              \
  groups::ShowSetup, groups::MakeRequest, prefix::Append, prefix::SetRequest, groups::Match,      \
      groups::MatchConnector, groups::Split, groups::Allocate, prefix::CacheTokens, groups::Skip, \
      prefix::FreeRequest, prefix::Pop, groups::NextStep, groups::TakeCopies,                     \
      groups::TakeOffloads, groups::Finalize, groups::TakeFresh, groups::Zero, groups::Clip,      \
      prefix::Take, prefix::TouchBlocks, prefix::Release, prefix::EvictBlocks,                    \
      prefix::ResetBlocks, groups::LookUp, groups::ShowTables, prefix::CachedTokens,              \
      prefix::ShowUsage, prefix::RecordHits, groups::ShowStatistics, groups::TakeEvents,          \
      groups::ShowBlocks
using BlocksOps = boost::mp11::mp_list<KVO_GROUPS_BLOCKS_OPERATIONS>;

/// A key for a group: what the index holds.
struct GroupKey {
  Key key = {};
  std::int64_t group = 0;
};
/// The blocks that carry a key for a group, in the order in which they got it.
struct Holders {
  GroupKey key = {};
  Ids blocks = {};
};
/// The whole pool.
struct BlocksState {
  Ids queue = {};                                      ///< front first
  Ids refs = {};                                       ///< [block], users
  std::vector<std::vector<GroupKey>> keys = {};        ///< [block], the main one first
  std::vector<std::optional<std::int64_t>> ends = {};  ///< [block], tokens of the main one
  std::vector<Holders> cached = {};                    ///< in any order
};

/// A cache of the kind. A method carries out the operation of its name. Numbers of requests are in
/// [0, kMostRequests), of blocks in [0, num_blocks) but where a method says otherwise, of groups
/// those of the options; counts are in [0, kMostTokens]. An error has changed nothing, but for
/// kExhausted of allocate.
class BlockCache : public prefix::PoolCache {
 public:
  /// GR-5 to GR-9.
  [[nodiscard]] virtual SetupReturns setup() const = 0;
  /// Makes a request, or makes it anew: tables and counts of the number stay (PX-42).
  /// Returns  its keys. Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<std::span<const Key>> request(const MakeRequest& op) = 0;

  /// The longest prefix that all groups hold, of at most max_length tokens; absent: all but the
  /// last token (GR-10 to GR-17, GR-19). max_length may be below 0.
  /// Errors  kPrecondition: with kNoPromptAborts max_length below 0 of full attention; with
  ///         kLooksBeyondKeys a block is looked at that has no key yet; with kSetupAborts draft
  ///         heads or other block sizes with chunks; with kReportsAllBlocks a block that is
  ///         announced has no key.
  [[nodiscard]] virtual Result<MatchReturns> match(std::int64_t request,
                                                   std::optional<std::int64_t> max_length) = 0;
  /// The same, where what some group lacks can be loaded (GR-18). Errors  as match.
  [[nodiscard]] virtual Result<MatchConnectorReturns> match_connector(
      std::int64_t request, std::optional<std::int64_t> max_length) = 0;
  /// Tokens of the next chunk (GR-48). Errors  kPrecondition: never made.
  [[nodiscard]] virtual Result<std::int64_t> split(const Split& op) const = 0;
  /// Hands out slots (GR-30 to GR-37, GR-40 to GR-46).
  /// Errors  kPrecondition: no tokens at all; hits that the request may not have (GR-34), for
  ///         other groups than there are, longer than hit_tokens, or without kStaleHitsAdopted
  ///         blocks that do not carry its keys; a block that would get a key is beyond the table,
  ///         or has a key for more tokens (GR-24); a spare block is shared (GR-42); the pool ends
  ///         half-way (GR-60); the front of the queue has a count other than 0;
  ///         kExhausted: not enough free blocks. Blocks that no token needs are released even so,
  ///         unless the check of full_sequence failed first.
  [[nodiscard]] virtual Result<Allotment> allocate(const Allocate& op) = 0;
  /// Releases what is not needed after that many computed tokens (GR-31, GR-32, GR-40).
  /// Errors  kPrecondition: never made; without kCountsBelowZero a block has no user.
  [[nodiscard]] virtual Status skip(std::int64_t request, std::int64_t computed,
                                    std::optional<std::int64_t> prompt) = 0;
  /// As free, but for the release. Returns  the tables, each without leading null blocks.
  /// Errors  kOutOfMemory.
  [[nodiscard]] virtual Result<Ids> pop(std::int64_t request) = 0;

  virtual void step() = 0;                               ///< GR-47
  [[nodiscard]] virtual CopiesReturns copies() = 0;      ///< GR-38
  [[nodiscard]] virtual OffloadsReturns offloads() = 0;  ///< GR-49
  /// GR-49. Errors  kPrecondition: never made.
  [[nodiscard]] virtual Result<OffloadsReturns> finalize(std::int64_t request) = 0;
  [[nodiscard]] virtual Ids fresh() = 0;  ///< GR-50
  /// GR-50. Errors  kPrecondition: never made, or start is inside a block.
  [[nodiscard]] virtual Status zero(std::int64_t request, std::int64_t start) = 0;
  [[nodiscard]] virtual Tables clip(std::int64_t request, std::int64_t computed) const = 0;

  /// Hands out blocks to no request (PX-38).
  /// Errors  kExhausted: fewer are free; kPrecondition: one of them has a count other than 0.
  [[nodiscard]] virtual Result<prefix::AllottedBlocks> take(std::int64_t count) = 0;
  /// Takes all keys of each off (PX-36), of any numbers. Returns  the blocks that carried one.
  /// Errors  kOutOfRange, with kEvictTakesAnyNumber kPrecondition: no such block.
  [[nodiscard]] virtual Result<Ids> evict(IdsView blocks) = 0;

  /// The first block that carries the key for the group.
  [[nodiscard]] virtual std::optional<std::int64_t> lookup(const Key& key,
                                                           std::int64_t group) const = 0;
  /// The blocks of a request by group, empty where there are none.
  [[nodiscard]] virtual Tables table(std::int64_t request) const = 0;

  /// The sums, which begin anew.
  [[nodiscard]] virtual Statistics stats() = 0;
  /// The events since the last time (GR-27).
  [[nodiscard]] virtual std::span<const Event> events() = 0;

  [[nodiscard]] virtual BlocksState state() const = 0;
};

/// Makes a cache. Errors  kOutOfMemory; kPrecondition, or without kSetupAborts kNotSupported: what
/// setup answers (GR-8, GR-9).
using MakeBlocks = std::function<Result<std::unique_ptr<BlockCache>>(const Options& options,
                                                                     QuirkSet<Quirk> quirks)>;

/// The cache kind `groups.blocks`.
[[nodiscard]] const CacheKind& blocks_kind();

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_blocks_subject(std::string variant, std::string doc, MakeBlocks make);

}  // namespace kvo::groups

namespace kvo {
KVO_DECLARE_OPERATIONS(groups::ShowSetup, groups::MakeRequest, groups::Match,
                       groups::MatchConnector, groups::Split, groups::Allocate, groups::Skip,
                       groups::NextStep, groups::TakeCopies, groups::TakeOffloads, groups::Finalize,
                       groups::TakeFresh, groups::Zero, groups::Clip, groups::LookUp,
                       groups::ShowTables, groups::ShowStatistics, groups::TakeEvents,
                       groups::ShowBlocks)
}  // namespace kvo
