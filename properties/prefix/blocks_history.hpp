// properties/prefix/blocks_history.hpp: the history of a pool of blocks.
//
// Known are the tokens of all requests, the blocks that were handed out to them, and what was
// registered. The order in which blocks are handed out or evicted is not: what is shown is taken,
// if it may be. Judged
// keys      are equal exactly if namespace, tokens, and those that draft heads read are (PX-10).
// hits      begin with the first block, or with the first that the next token sees; each block
//           carries its key, which was put and not taken since; its rows are those of the prompt's
//           tokens; and no longer prefix is held (PX-20 to PX-24, PX-52, PX-57).
// slots     blocks that are handed out were free; those that lose a key are told, as many as the
//           tokens need; rows that a request computed are still its own at its next step.
// figures   each block is free or pinned, once; users are those that were counted in; keys are
//           those that were put; tables, usage, sums, and who follows the events say the same.
// Skipped   in profile original, what follows when a block was released more often than pinned
//           (PX-47), but for contradictions of `state` with itself, and the rows of requests that
//           adopted stale hits (PX-47). In both, what follows a refused `full_sequence` that may
//           have let blocks go (PX-26), and a release of blocks that are a table's; rows of
//           requests that are made anew under way (PX-42); which blocks of a window keep keys
//           (PX-54, PX-55) is learnt, as is which were handed out for loaded tokens (PX-27).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "properties/prefix/block_accounts.hpp"
#include "properties/prefix/contents.hpp"
#include "properties/runner/oracle.hpp"
#include "reference/prefix/blocks.hpp"

namespace kvo::prefix {

/// What is known of a request.
struct KnownRequest {
  std::vector<Content> prefixes = {};  ///< [tokens]
  Ids keys = {};                       ///< [block]
  bool skip_reading = false;
  std::int64_t computed = 0;
  std::int64_t in_flight = 0;
  std::int64_t preemptions = 0;
  Ids table = {};
  std::optional<std::int64_t> registered = std::nullopt;  ///< blocks; none: not tracked
  bool odd = false;  ///< rows of its table may be those of other tokens

  [[nodiscard]] std::int64_t tokens() const { return std::ssize(prefixes) - 1; }
};

/// What a key stands for.
struct KeyMeaning {
  Content content = kNoContent;
  std::int64_t block = 0;
};

class BlocksHistory final : public Oracle {
 public:
  BlocksHistory(BlocksConfig config, QuirkSet<Quirk> quirks)
      : config_(std::move(config)), quirks_(quirks), blocks_(config_.num_blocks) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override;
  [[nodiscard]] std::vector<std::string> explain(std::span<const Op> script,
                                                 const Observation& want,
                                                 const Observation& got) const override;

 private:
  // ---- Operations ----

  Words observe(const MakeRequest& op, const Observation& seen);
  Words observe(const Append& op, const Observation& seen);
  Words observe(const SetRequest& op, const Observation& seen);
  Words observe(const MatchBlocks& op, const Observation& seen);
  Words observe(const Allocate& op, const Observation& seen);
  Words observe(const CacheTokens& op, const Observation& seen);
  Words observe(const Skip& op, const Observation& seen);
  Words observe(const FreeRequest& op, const Observation& seen);
  Words observe(const Pop& op, const Observation& seen);
  Words observe(const Take& op, const Observation& seen);
  Words observe(const TouchBlocks& op, const Observation& seen);
  Words observe(const Release& op, const Observation& seen);
  Words observe(const EvictBlocks& op, const Observation& seen);
  Words observe(const ResetBlocks& op, const Observation& seen);
  Words observe(const LookUp& op, const Observation& seen);
  Words observe(const ShowTable& op, const Observation& seen);
  Words observe(const CachedTokens& op, const Observation& seen);
  Words observe(const ShowUsage& op, const Observation& seen);
  Words observe(const RecordHits& op, const Observation& seen);
  Words observe(const ShowStatistics& op, const Observation& seen);
  Words observe(const TakeEvents& op, const Observation& seen);
  Words observe(const ShowBlocks& op, const Observation& seen);

  /// Once track is lost: only whether the pool contradicts itself.
  template <class T>
  Words look(const T& /*op*/, const Observation& seen) {
    if constexpr (std::is_same_v<T, ShowBlocks>)
      if (!seen.error)
        return judged(wrong_pool(seen.as<ShowBlocks::Returns>(), config_.num_blocks));
    return skip();
  }
  Words lose_track() {
    lost_ = true;
    return skip();
  }

  // ---- Definitions ----

  [[nodiscard]] std::int64_t floor_blocks(std::int64_t tokens) const {
    return tokens / config_.block_size;
  }
  [[nodiscard]] std::int64_t ceil_blocks(std::int64_t tokens) const {
    return (tokens + config_.block_size - 1) / config_.block_size;
  }
  /// PX-50: tokens that the one behind so many does not see.
  [[nodiscard]] std::int64_t skipped(std::int64_t tokens) const {
    if (config_.attention == Attention::kSlidingWindow)
      return std::max<std::int64_t>(0, tokens - config_.window.value_or(1) + 1);
    if (config_.attention == Attention::kChunkedLocal)
      return tokens / config_.chunk.value_or(1) * config_.chunk.value_or(1);
    return 0;
  }
  [[nodiscard]] std::int64_t run_needed() const {
    return ceil_blocks(config_.window.value_or(1) - 1) + (config_.eagle ? 1 : 0);
  }
  /// Whether a window leaves blocks without keys, by rules that are not followed (PX-54, PX-55).
  [[nodiscard]] bool keys_are_sparse() const {
    return config_.attention == Attention::kSlidingWindow &&
           ((config_.retention && config_.retention->has_value()) || run_needed() == 0);
  }

  /// "block 1 (key 0, a user)"
  [[nodiscard]] std::string block_text(std::int64_t block) const;

  // ---- What follows ----

  [[nodiscard]] KnownRequest* find(std::int64_t request) {
    const auto found = requests_.find(request);
    return found != requests_.end() ? &found->second : nullptr;
  }
  [[nodiscard]] Words wrong_keys(KnownRequest& known, std::int64_t first, const Ids& shown);
  /// Blocks that a lookup finds of those whose keys `carried` says, null blocks in front included.
  template <class Carried>
  [[nodiscard]] std::int64_t found_blocks(const KnownRequest& known, std::int64_t most,
                                          std::int64_t begin, const Carried& carried) const;
  [[nodiscard]] Words wrong_hit(const KnownRequest& known, const MatchBlocks::Returns& hit,
                                std::int64_t most);
  [[nodiscard]] Words wrong_rows(const KnownRequest& known, std::int64_t block, std::int64_t place,
                                 std::int64_t end);
  [[nodiscard]] bool lets_go(const KnownRequest& known, std::int64_t tokens) const;
  void let_go(KnownRequest& known, std::int64_t tokens);
  /// Adopts hits. Returns  blocks that are handed out unseen; words for one that may not be hit.
  [[nodiscard]] std::int64_t adopt(KnownRequest& known, const Allocate& op, std::int64_t computed,
                                   Words& words);
  [[nodiscard]] Words wrong_own_rows(const KnownRequest& known, std::int64_t end);
  void write(KnownRequest& known, std::int64_t end);
  /// False where track is lost.
  [[nodiscard]] bool register_blocks(KnownRequest& known, std::int64_t tokens);
  void release(KnownRequest& known);
  [[nodiscard]] Words wrong_table(KnownRequest& known, const Ids& shown, std::int64_t first);
  [[nodiscard]] Words wrong_event(const ShownEvent& event);

  BlocksConfig config_;
  QuirkSet<Quirk> quirks_;
  BlockAccounts blocks_;
  Contents contents_ = {};
  std::map<std::int64_t, KnownRequest> requests_ = {};
  std::vector<KeyMeaning> keys_ = {};                         ///< [number]
  std::unordered_map<Content, std::int64_t> numbers_ = {};    ///< of keys
  std::map<std::int64_t, std::int64_t> by_hand_ = {};         ///< [block], users that are nobody's
  std::unordered_map<std::int64_t, std::int64_t> told_ = {};  ///< [key], by events
  BlocksStatistics sums_ = {};
  bool lost_ = false;
};

}  // namespace kvo::prefix
