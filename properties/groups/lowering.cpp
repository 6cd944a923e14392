// Requests as operations of groups.blocks: a model of full attention and states, and one of full
// attention and windows; properties/prefix/lowering.hpp has the policy.
//
// A turn's tokens go through `split` where there are states, one chunk after the other, each in a
// step of its own. The table is read after each chunk, and rows are written where it says. Drafts
// are left out: a state of a draft has no place here.
#include "properties/prefix/lowering.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "properties/contract_parts.hpp"
#include "reference/groups/operations.hpp"

namespace kvo::groups {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::Turn;

constexpr std::string_view kVetoed = "prefix of one group not held by all";
constexpr std::string_view kInside = "prompt hit inside a block";

/// A state's block is of policy.block_size, as that of windows; full attention has half of it
/// beside states, and keys a quarter.
Config hybrid_config(const LoweringInput& input, bool has_states) {
  const std::int64_t size = std::max<std::int64_t>(input.policy.block_size, 4);
  const std::int64_t longest = input.longest_sequence() + 1;
  Config config{.hash_block = has_states ? size / 4 : size, .max_model_len = longest};
  config.hash_block = size % config.hash_block == 0 ? config.hash_block : size;
  const std::int64_t full = size % (2 * config.hash_block) == 0 ? 2 * config.hash_block : size;
  config.groups.push_back({.block_size = full});
  if (has_states) {
    config.groups.push_back({.kind = GroupKind::kMamba, .block_size = size});
  } else {
    for (const std::int64_t part : {8, 3})
      config.groups.push_back(
          {.kind = GroupKind::kSlidingWindow, .block_size = full, .window = longest / part + 2});
  }
  const std::int64_t count = std::ssize(config.groups);
  const std::int64_t least = count * (replay::scaled(longest, full) + 4) + 4;
  const bool ample = prefix::drawn(input, 2) == 1;
  config.num_blocks =
      std::max(least, count * replay::scaled(prefix::pool_tokens(input, ample), full));
  config.num_blocks = std::min(config.num_blocks, prefix::kMostPlaces / size);
  if (prefix::drawn(input, 3) != 2) config.retention = Nullable<std::int64_t>(0);
  config.junction = prefix::drawn(input, 4) == 1;
  config.events = prefix::drawn(input, 3) == 1;
  config.max_scheduled = 1;  // a chunk may end inside a block rather than wait
  return config;
}

class HybridStream final : public prefix::PrefixStream {
 public:
  HybridStream(const LoweringInput& input, bool has_states)
      : PrefixStream(input.without_drafts(),
                     has_states ? "states: " : "windows: ", places(input, has_states)),
        config_(hybrid_config(input, has_states)),
        has_states_(has_states),
        tables_(static_cast<std::size_t>(input.schedule.max_running)),
        done_(static_cast<std::size_t>(input.schedule.max_running)) {}

 protected:
  void make(std::int64_t slot) override { emit(MakeRequest{number(slot), text(slot).tokens()}); }

  void look_up(std::int64_t slot) override {
    Match match{number(slot)};
    if (text(slot).size() > at(slot).prompt) match.max_length = at(slot).prompt - 1;
    emit_then(match, [this, slot](const Observation& seen) {
      hits_.clear();
      if (seen.error) return;
      const auto& hit = seen.as<MatchReturns>();
      if (hit.boundary > 0) reach(kVetoed);
      if (hit.length % config_.groups.back().block_size != 0) reach(kInside);
      if (!found(slot, hit.length)) return;
      hits_ = hit.blocks;
      emit(prefix::SetRequest{.request = number(slot), .boundary = hit.boundary});
    });
  }

  void ask(std::int64_t slot, const Turn& turn) override {
    const Running& own = at(slot);
    if (decodes(slot) && text(slot).size() == own.rows) decode(slot, 1);
    chunk(slot, turn.append - done_[static_cast<std::size_t>(slot)]);
  }

  // What the tables must be, with -1 for a block that has other rows than the request's.
  void look(std::int64_t slot) override {
    Tables tables = tables_[static_cast<std::size_t>(slot)];
    for (std::size_t g = 0; g < tables.size(); ++g) {
      if (is_state(config_.groups[g])) continue;
      const std::int64_t size = config_.groups[g].block_size;
      for (std::int64_t position = 0; position < at(slot).rows; ++position) {
        const auto i = static_cast<std::size_t>(position / size);
        if (i >= tables[g].size()) break;
        std::int64_t& block = tables[g][i];
        if (block > 0 && !placed().holds(place(block, position, size), text(slot).tag(position)))
          block = -1;
      }
    }
    emit(ShowTables{number(slot)}, {std::move(tables)});
    emit(prefix::CachedTokens{number(slot)});
    emit(prefix::ShowUsage{});
  }

  void leave(std::int64_t slot) override {
    tables_[static_cast<std::size_t>(slot)].clear();
    done_[static_cast<std::size_t>(slot)] = 0;
    emit(Finalize{number(slot)});
    emit(prefix::FreeRequest{number(slot)});
    const Running& own = at(slot);
    if (own.preempted && own.let_in)
      emit(prefix::SetRequest{.request = number(slot),
                              .computed = 0,
                              .status = RequestStatus::kPreempted,
                              .preemptions = ++preemptions_[own.request]});
    if (config_.events) emit(TakeEvents{});
    if (has_states_) {
      emit(TakeOffloads{});
      emit(TakeFresh{});
    }
  }

  void close() override {
    emit(ShowStatistics{});
    emit(ShowBlocks{});
  }

 private:
  static std::int64_t places(const LoweringInput& input, bool has_states) {
    const Config config = hybrid_config(input, has_states);
    return config.num_blocks * config.groups.back().block_size;
  }
  [[nodiscard]] std::int64_t place(std::int64_t block, std::int64_t position,
                                   std::int64_t size) const {
    return block * config_.groups.back().block_size + position % size;
  }

  // The next chunk of a turn that has so many tokens left.
  void chunk(std::int64_t slot, std::int64_t left) {
    if (!has_states_) return allocate(slot, left);
    Split split{.request = number(slot), .tokens = left};
    if (!at(slot).let_in && at(slot).hit > 0) split.hit_tokens = at(slot).hit;
    emit_then(split, [this, slot, left](const Observation& seen) {
      const std::int64_t tokens = seen.error ? 0 : seen.as<SplitReturns>().tokens;
      allocate(slot, tokens > 0 && tokens <= left ? tokens : left);
    });
  }

  void allocate(std::int64_t slot, std::int64_t tokens) {
    Allocate wanted{.request = number(slot), .tokens = tokens};
    if (!at(slot).let_in && at(slot).hit > 0) {
      wanted.hit_blocks = hits_;
      wanted.hit_tokens = at(slot).hit;
    }
    if (!at(slot).let_in && alone()) wanted.others_scheduled = false;
    emit(NextStep{});
    emit_then(std::move(wanted), [this, slot, tokens](const Observation& seen) {
      const bool fits = !seen.error;
      if (fits) evicted(std::ssize(seen.as<Allotment>().evicted));
      emit_then(ShowTables{number(slot)}, [this, slot, tokens, fits](const Observation& shown) {
        if (!shown.error)
          tables_[static_cast<std::size_t>(slot)] = shown.as<TablesReturns>().blocks;
        if (!fits) return refused(slot);
        write(slot, at(slot).rows, at(slot).rows + tokens);
        emit_then(TakeCopies{}, [this, slot, tokens](const Observation& copies) {
          if (!copies.error) copied(slot, copies.as<CopiesReturns>());
          computed(slot, tokens);
        });
      });
    });
  }

  // Rows of the tokens where the tables say.
  void write(std::int64_t slot, std::int64_t begin, std::int64_t end) {
    const Tables& tables = tables_[static_cast<std::size_t>(slot)];
    for (std::size_t g = 0; g < tables.size(); ++g) {
      const std::int64_t size = config_.groups[g].block_size;
      for (std::int64_t position = begin; position < end; ++position) {
        const auto i = static_cast<std::size_t>(position / size);
        if (is_state(config_.groups[g]) || i >= tables[g].size() || tables[g][i] <= 0) continue;
        placed().write(place(tables[g][i], position, size), text(slot).tag(position));
      }
    }
  }

  // A block that was hit in part is copied with the rows of the hit.
  void copied(std::int64_t slot, const CopiesReturns& copies) {
    const std::int64_t size = config_.groups[0].block_size;
    const std::int64_t hit = at(slot).let_in ? 0 : at(slot).hit;
    for (const Ids& copy : copies.copies)
      for (std::int64_t position = hit / size * size; position < hit && copy.size() == 2;
           ++position)
        if (placed().holds(place(copy[0], position, size), text(slot).tag(position)))
          placed().write(place(copy[1], position, size), text(slot).tag(position));
    if (!copies.retained.empty()) emit(prefix::Release{copies.retained});
  }

  void decode(std::int64_t slot, std::int64_t tokens) {
    const Tokens fresh = prompts().fresh(tokens);
    text(slot).add(fresh);
    emit(prefix::Append{number(slot), fresh});
  }

  void computed(std::int64_t slot, std::int64_t tokens) {
    Running& own = at(slot);
    const bool first = !std::exchange(own.let_in, true);
    if (first) emit(prefix::RecordHits{number(slot), own.hit});
    own.rows += tokens;
    emit(prefix::SetRequest{
        .request = number(slot),
        .computed = own.rows,
        .status = first ? std::optional(RequestStatus::kRunning) : std::nullopt});
    const auto turn = std::ranges::find(schedule().step().turns, slot, &Turn::slot);
    std::int64_t& done = done_[static_cast<std::size_t>(slot)];
    done += tokens;
    if (done < turn->append) return chunk(slot, turn->append - done);
    done = 0;
    const Turn whole = granted(slot);
    if (whole.read || first) look(slot);
  }

  Config config_;
  bool has_states_;
  std::vector<Tables> tables_;      ///< [slot], as last shown
  std::vector<std::int64_t> done_;  ///< [slot], tokens of the turn that are computed
  Tables hits_ = {};                ///< of the last lookup
  std::map<std::size_t, std::int64_t> preemptions_ = {};  ///< by request
};

}  // namespace

std::vector<Lowering> lowerings() {
  return {
      prefix::prefix_lowering<HybridStream, hybrid_config, true>(blocks_kind(), "states", 1.2e5, 8),
      prefix::prefix_lowering<HybridStream, hybrid_config, false>(blocks_kind(), "windows", 1.2e5,
                                                                  8)};
}

}  // namespace kvo::groups
