// Requests as operations of prefix.blocks: match, allocate with what was hit, chunks of the prompt,
// decoded tokens one by one, drafts, free; properties/prefix/lowering.hpp has the policy.
//
// Drafts get places, and keys only once they were accepted. Eagle, the watermark, admission of
// whole sequences and events differ from case to case. The table of each request is followed by
// what allocate answers; windows let blocks go by PX-51.
#include <algorithm>
#include <array>
#include <utility>

#include "properties/prefix/lowering.hpp"
#include "reference/prefix/blocks.hpp"

namespace kvo::prefix {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::Turn;

constexpr std::string_view kBehindWindow = "blocks behind the window let go";
constexpr std::int64_t kLookahead = 2;  // tokens that draft heads ask for

BlocksConfig blocks_config(const LoweringInput& input, bool windowed) {
  constexpr std::array<double, 3> kWatermarks{0, 0.01, 0.05};
  constexpr std::int64_t kWindows = 4;  // in the longest sequence
  BlocksConfig config{.block_size = input.policy.block_size};
  const std::int64_t longest = input.longest_sequence() + kLookahead + 1;
  // One case in two is short of blocks; what preempts there is rare in the others.
  const bool ample = windowed ? drawn(input, 2) == 0 : drawn(input, 2) == 1;
  config.watermark = kWatermarks.at(drawn(input, kWatermarks.size()));
  const std::int64_t least = replay::scaled(longest, config.block_size) + 2;
  config.num_blocks = std::max(
      least + static_cast<std::int64_t>(static_cast<double>(least) * 2 * config.watermark) + 1,
      replay::scaled(pool_tokens(input, ample), config.block_size));
  config.num_blocks =
      std::clamp<std::int64_t>(config.num_blocks, 2, kMostPlaces / config.block_size);
  config.max_model_len = std::min(longest, kMostTokens);
  config.eagle = drawn(input, 4) == 2;
  config.events = drawn(input, 3) == 1;
  if (windowed) {
    config.attention = Attention::kSlidingWindow;
    config.window = longest / kWindows + 2;
    config.max_in_flight = input.schedule.chunk_tokens;
  }
  return config;
}

class BlocksStream final : public PrefixStream {
 public:
  BlocksStream(const LoweringInput& input, bool windowed)
      : PrefixStream(input, windowed ? "window: " : "full: ", places(input, windowed)),
        config_(blocks_config(input, windowed)),
        whole_sequences_(drawn(input, 4) == 3),
        tables_(static_cast<std::size_t>(input.schedule.max_running)),
        users_(static_cast<std::size_t>(config_.num_blocks)) {}

 protected:
  void make(std::int64_t slot) override { emit(MakeRequest{number(slot), text(slot).tokens()}); }

  // A token that was decoded and has no row yet is known, but the schedule computes it later.
  void look_up(std::int64_t slot) override {
    MatchBlocks match{number(slot)};
    if (text(slot).size() > at(slot).prompt) match.max_length = at(slot).prompt - 1;
    emit_then(match, [this, slot](const Observation& seen) {
      hits_.clear();
      if (seen.error) return;
      const auto& hit = seen.as<MatchBlocks::Returns>();
      if (hit.length == config_.block_size * std::ssize(hit.blocks) && found(slot, hit.length))
        hits_ = hit.blocks;
    });
  }

  void ask(std::int64_t slot, const Turn& turn) override {
    const Running& own = at(slot);
    if (decodes(slot) && text(slot).size() == own.rows) decode(slot, 1);
    Allocate wanted{number(slot), turn.append};
    if (!own.let_in) {
      if (own.hit > 0) {
        wanted.hit_blocks = hits_;
        wanted.hit_tokens = own.hit;
      }
      if (whole_sequences_) wanted.full_sequence = true;
      if (alone()) wanted.others_scheduled = false;
    }
    if (config_.eagle) wanted.lookahead = kLookahead;
    const bool hit = wanted.hit_blocks.has_value();
    emit_then(std::move(wanted),
              [this, slot, hit](const Observation& seen) { allocated(slot, hit, seen); });
  }

  // What the table must be, with -1 for a block that has other rows than the request's.
  void look(std::int64_t slot) override {
    const Running& own = at(slot);
    Ids table = tables_[static_cast<std::size_t>(slot)];
    const std::int64_t blocks = replay::scaled(own.rows, config_.block_size);
    if (std::ssize(table) < blocks) table.resize(static_cast<std::size_t>(blocks), -1);
    for (std::int64_t position = 0; position < own.rows; ++position) {
      std::int64_t& block = table[static_cast<std::size_t>(position / config_.block_size)];
      const std::uint64_t tag = text(slot).tag(position);
      if (block > 0 && !placed().holds(place(block, position), tag)) block = -1;
    }
    emit(ShowTable{number(slot)}, {std::move(table)});
    emit(CachedTokens{number(slot)});
    emit(ShowUsage{}, {usage()});
  }

  void leave(std::int64_t slot) override {
    Ids& table = tables_[static_cast<std::size_t>(slot)];
    for (const std::int64_t block : table) use(block, -1);
    table.clear();
    emit(FreeRequest{number(slot)});
    const Running& own = at(slot);
    if (own.preempted && own.let_in)
      emit(SetRequest{.request = number(slot),
                      .computed = 0,
                      .status = RequestStatus::kPreempted,
                      .preemptions = ++preemptions_[own.request]});
    if (config_.events) emit(TakeEvents{});
  }

  void close() override {
    emit(ShowStatistics{}, statistics_);
    emit(ShowBlocks{});
  }

 private:
  static std::int64_t places(const LoweringInput& input, bool windowed) {
    const BlocksConfig config = blocks_config(input, windowed);
    return config.num_blocks * config.block_size;
  }

  // A refusal may have freed blocks (PX-26), but not where the whole sequence was asked for.
  void allocated(std::int64_t slot, bool hit, const Observation& seen) {
    const bool first = !at(slot).let_in;
    if (!first || !seen.error) free_skipped(slot);
    if (seen.error) return refused(slot);
    const auto& result = seen.as<Allocate::Returns>();
    Ids& table = tables_[static_cast<std::size_t>(slot)];
    if (first && hit) adopt(slot);
    for (const std::int64_t block : result.blocks) use(block, 1);
    table.insert(table.end(), result.blocks.begin(), result.blocks.end());
    evicted(std::ssize(result.evicted));
    settle(slot, granted(slot), first);
  }

  // ---- Tables ----

  [[nodiscard]] std::int64_t place(std::int64_t block, std::int64_t position) const {
    return block * config_.block_size + position % config_.block_size;
  }
  // Blocks that nobody needs at that many tokens (PX-50, PX-51).
  [[nodiscard]] std::int64_t skipped_blocks(std::int64_t tokens) const {
    if (!config_.window) return 0;
    return std::max<std::int64_t>(0, tokens - *config_.window + 1) / config_.block_size;
  }
  void use(std::int64_t block, std::int64_t change) {
    if (block <= 0 || block >= std::ssize(users_)) return;
    std::int64_t& users = users_[static_cast<std::size_t>(block)];
    used_ += users == 0 ? 1 : 0;
    users += change;
    used_ -= users == 0 ? 1 : 0;
  }
  // Free blocks over all but the null block (PX-44).
  [[nodiscard]] double usage() const {
    const auto blocks = static_cast<double>(config_.num_blocks - 1);
    return 1 - static_cast<double>(config_.num_blocks - 1 - used_) / blocks;
  }
  void free_skipped(std::int64_t slot) {
    Ids& table = tables_[static_cast<std::size_t>(slot)];
    const std::int64_t end = std::min(skipped_blocks(at(slot).rows), std::ssize(table));
    for (std::int64_t i = 0; i < end; ++i) {
      std::int64_t& block = table[static_cast<std::size_t>(i)];
      if (block == 0) continue;
      use(block, -1);
      block = 0;
      reach(kBehindWindow);
    }
  }
  void adopt(std::int64_t slot) {
    for (const std::int64_t block : hits_) use(block, 1);
    tables_[static_cast<std::size_t>(slot)] = hits_;
    free_skipped(slot);
  }

  // ---- Rows ----

  void decode(std::int64_t slot, std::int64_t tokens) {
    const Tokens fresh = prompts().fresh(tokens);
    text(slot).add(fresh);
    emit(Append{number(slot), fresh});
  }

  // The turn has its places: rows are written, of drafts those that were rejected, too.
  void settle(std::int64_t slot, const Turn& turn, bool first) {
    Running& own = at(slot);
    const std::int64_t end = own.rows + turn.append - turn.rejected;
    const bool decoding = decodes(slot);
    if (first) record(slot);
    if (decoding && end > text(slot).size()) decode(slot, end - text(slot).size());
    const Ids& table = tables_[static_cast<std::size_t>(slot)];
    for (std::int64_t position = own.rows; position < own.rows + turn.append; ++position) {
      const std::int64_t index = position / config_.block_size;
      if (index >= std::ssize(table)) break;
      const std::int64_t to = place(table[static_cast<std::size_t>(index)], position);
      if (position < end)
        placed().write(to, text(slot).tag(position));
      else
        placed().spoil(to);
    }
    own.rows = end;
    emit(SetRequest{.request = number(slot),
                    .computed = end,
                    .status = first ? std::optional(RequestStatus::kRunning) : std::nullopt});
    if (turn.read || first) look(slot);
  }

  void record(std::int64_t slot) {
    const Running& own = at(slot);
    emit(RecordHits{number(slot), own.hit});
    const bool again = preemptions_.contains(own.request);
    (again ? statistics_.preempted_requests : statistics_.requests) += 1;
    (again ? statistics_.preempted_queries : statistics_.queries) += text(slot).size();
    (again ? statistics_.preempted_hits : statistics_.hits) += own.hit;
  }

  BlocksConfig config_;
  bool whole_sequences_;
  std::vector<Ids> tables_;                               ///< [slot]
  std::vector<std::int64_t> users_;                       ///< [block]
  std::int64_t used_ = 0;                                 ///< blocks with users
  Ids hits_ = {};                                         ///< of the last lookup
  std::map<std::size_t, std::int64_t> preemptions_ = {};  ///< by request
  BlocksStatistics statistics_ = {};
};

}  // namespace

std::vector<Lowering> blocks_lowerings() {
  return {prefix_lowering<BlocksStream, blocks_config, false>(blocks_kind(), "full", 1.2e5, 16),
          prefix_lowering<BlocksStream, blocks_config, true>(blocks_kind(), "window", 1.2e5, 4)};
}

}  // namespace kvo::prefix
