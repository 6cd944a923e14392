// Requests as operations of cells.kv and cells.iswa: a slot is a sequence, all share one stream.
//
// Policy. One decode a step, with what every running sequence appends. A sequence that ends leaves
// its tokens in its slot; the next one keeps what of its prompt they or another slot's begin with,
// in whole blocks of the trace, by seq_rm or seq_cp, if no window has taken what it needs. A
// sequence that outgrows its context gives up half of what lies behind its first eighth, and the
// rest moves down (seq_rm, seq_add); one that shares what would move, or that cannot be moved, is
// given up. A full cache first loses the tokens of slots that run nothing, then preempts the last
// sequence of the batch.
//
// Contents. Rows tell by tags which token they are of, in the order of all that was decoded. So the
// lowering knows the tag of each position of a slot: every look compares tables and rows, and a row
// that is of another token, or a key that is turned to another position, is expected to be -1.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/prompt_tokens.hpp"
#include "reference/cells/operations.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::cells {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::Request;
using replay::Step;
using replay::Turn;

constexpr std::string_view kNoRoom = "cache full, and room made";
constexpr std::string_view kContextShifted = "context shifted";
constexpr std::string_view kNoShift = "context full, and given up";
constexpr std::string_view kCopied = "prefix copied from another sequence";
constexpr std::string_view kPrefixKept = "prefix of the slot kept";
constexpr std::string_view kWindowTookIt = "prefix found, but out of the window in part";

// ReplaySizes that follow from the longest sequence of a case.
struct ReplaySizes {
  std::int64_t context;  ///< most tokens of a sequence
  std::int64_t cells;
  std::int64_t ubatch;
  std::int32_t window;

  explicit ReplaySizes(const LoweringInput& input) {
    constexpr std::int64_t kContextPercent = 60;
    constexpr std::int64_t kMostCells = 8192;
    constexpr std::array<std::int64_t, 4> kUbatches{64, 16, 512, 7};
    const std::int64_t chunk = std::max(input.schedule.chunk_tokens, input.schedule.draft_tokens);
    context = std::clamp(input.longest_sequence() * kContextPercent / 100, 4 * chunk,
                         std::max(4 * chunk, kMostCells - chunk));
    cells = std::clamp(context * input.schedule.max_running * input.policy.pool_percent / 100,
                       context + chunk, std::max(context + chunk, kMostCells));
    ubatch = kUbatches.at(input.seed % kUbatches.size());
    window = static_cast<std::int32_t>(std::max<std::int64_t>(2, context / 8));
  }
};

LoweringInput with_few_slots(LoweringInput input) {
  constexpr std::int64_t kMostSequences = 256;
  input.schedule.max_running = std::min(input.schedule.max_running, kMostSequences);
  return input;
}

class CellsStream final : public replay::LoweredOps {
 public:
  CellsStream(const LoweringInput& input, bool windowed)
      : LoweredOps(input),
        sizes_(input),
        windowed_(windowed),
        requests_(input.requests),
        hits_(input, replay::PromptTokens(input.requests, input.schedule.scale).block()),
        slots_(static_cast<std::size_t>(input.schedule.max_running)) {
    emit(New{});
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    visit_op(Ops(), op, [&](const auto& operation) { follow(operation, seen, labels); });
  }

  [[nodiscard]] std::vector<Figure> figures() const override {
    std::vector<Figure> all = hits_.figures("");
    all.push_back({"context shifts", shifts_});
    all.push_back({"preemptions", preemptions_});
    return all;
  }

 protected:
  // Begins and context shifts one by one; then all that is appended as one batch, which stays in
  // the step until the decode has succeeded.
  void lower(Step& step) override {
    if (!step.begins.empty()) {
      const std::int64_t slot = step.begins.front();
      step.begins.pop_front();
      return begin(slot);
    }
    for (const Turn& turn : step.turns) {
      if (!turn.end) continue;
      at(turn.slot).running = false;
      look_due_ |= turn.read;
    }
    std::erase_if(step.turns, [](const Turn& turn) { return turn.end; });
    for (const Turn& turn : step.turns)
      if (at(turn.slot).length() + turn.append > sizes_.context) return shift(turn.slot);
    if (std::exchange(look_due_, false)) return look();
    if (!step.turns.empty()) decode(step);
  }

 private:
  struct Slot {
    std::size_t request = 0;  ///< index among those of the case, of the one that came last
    bool running = false;
    bool shifted = false;                 ///< since it began
    std::int64_t prompt = 0;              ///< tokens of the request that came last
    std::int64_t shared = 0;              ///< tokens from the start that others may own, too
    std::vector<std::int64_t> tags = {};  ///< of its rows, by position
    std::vector<std::uint64_t> ids = {};  ///< of that prompt's blocks
    [[nodiscard]] std::int64_t length() const { return std::ssize(tags); }
  };

  // ---- What became of an operation: one overload each ----

  void follow(const SeqPos& asked, const Observation& seen, Labels& labels) {
    if (std::exchange(common_, 0) == 0) return;
    if (seen.error) return clear(asked.seq);
    const auto& extremes = seen.as<SeqPos::Returns>();
    Slot& own = at(asked.seq);
    const std::int64_t needed =
        windowed_ ? std::max<std::int64_t>(0, own.length() - sizes_.window + 1) : 0;
    if (extremes.max != own.length() - 1 || extremes.min > needed) {
      labels.insert(kWindowTookIt);
      hits_.count(own.request, 0);
      return clear(asked.seq);
    }
    labels.insert(copied_ ? kCopied : kPrefixKept);
    hits_.count(own.request, own.length());
    schedule().skip(asked.seq, own.length());
  }
  void follow(const SeqAdd& moved, const Observation& seen, Labels& labels) {
    labels.insert(seen.error ? kNoShift : kContextShifted);
    if (!seen.error) {
      ++shifts_;
      return;
    }
    clear(moved.seq);
    schedule().give_up(moved.seq);
  }
  void follow(const Decode& /*op*/, const Observation& seen, Labels& labels) {
    if (seen.error)
      make_room(labels);
    else
      settle();
  }
  void follow(const ShowState& /*op*/, const Observation& seen, Labels& /*labels*/) {
    if (!seen.error) state_ = seen.as<ShowState::Returns>();
  }
  // The rows once more, with -1 where a cell has another one than its position's.
  void follow(const ShowRows& /*op*/, const Observation& seen, Labels& /*labels*/) {
    if (seen.error || std::exchange(judged_, false)) return;
    ShowRows::Returns rows = seen.as<ShowRows::Returns>();
    bool foreign = judge(state_.streams, rows.streams);
    if (rows.streams_swa && state_.streams_swa)
      foreign |= judge(*state_.streams_swa, *rows.streams_swa);
    if (!foreign) return;
    judged_ = true;
    emit(ShowRows{}, std::move(rows));
  }
  // What the schedule does not depend on, or what is not emitted.
  static void follow(const OneOf<New, FindSlot, SeqRm, SeqCp, SeqKeep, SeqDiv, CanShift, Clear,
                                 UpdatePending, StateSave, StateLoad, StateEdit> auto& /*op*/,
                     const Observation& /*seen*/, Labels& /*labels*/) {}

  Slot& at(std::int64_t slot) { return slots_[static_cast<std::size_t>(slot)]; }

  // True where a row was marked.
  bool judge(const std::vector<ShownTable>& tables, std::vector<StreamRows>& streams) {
    bool foreign = false;
    for (std::size_t stream = 0; stream < std::min(tables.size(), streams.size()); ++stream)
      for (const ShownCell& cell : tables[stream].cells)
        for (const std::int64_t seq : cell.seqs) foreign |= !is_of(cell, seq, streams[stream]);
    return foreign;
  }
  bool is_of(const ShownCell& cell, std::int64_t seq, StreamRows& rows) {
    const auto index = static_cast<std::size_t>(cell.cell);
    if (index >= rows.k.size() || seq >= std::ssize(slots_)) return true;
    const std::vector<std::int64_t>& tags = at(seq).tags;
    const std::int64_t tag =
        cell.pos < std::ssize(tags) ? tags[static_cast<std::size_t>(cell.pos)] : -1;
    if (rows.k[index] == tag && rows.v[index] == tag && rows.rot[index] == cell.pos - cell.shift)
      return true;
    rows.k[index] = rows.v[index] = rows.rot[index] = -1;
    return false;
  }

  // Tokens of the request's prompt that a slot begins with, in whole blocks, but for the last.
  [[nodiscard]] std::int64_t shared_tokens(const Slot& held, const Request& request,
                                           std::int64_t prompt) const {
    const auto [ours, theirs] = std::ranges::mismatch(request.block_ids, held.ids);
    const auto blocks = ours - request.block_ids.begin();
    if (blocks == 0 || held.shifted) return 0;
    const std::int64_t tokens = prompt * blocks / std::ssize(request.block_ids);
    return std::max<std::int64_t>(0, std::min({tokens, held.prompt, held.length(), prompt - 1}));
  }

  void begin(std::int64_t slot) {
    Slot& own = at(slot);
    const Request& request = schedule().running(slot);
    const std::int64_t prompt = replay::scaled(request.input_tokens, schedule().policy().scale);
    own.request = static_cast<std::size_t>(&request - requests_.data());
    std::int64_t source = slot;
    common_ = 0;
    for (std::int64_t other = 0; other < std::ssize(slots_); ++other) {
      const std::int64_t shared = shared_tokens(at(other), request, prompt);
      if (shared < common_ || shared == 0 || (shared == common_ && other != slot)) continue;
      common_ = shared;
      source = other;
    }
    own.running = true;
    own.ids = request.block_ids;
    own.prompt = prompt;
    copied_ = source != slot;
    if (common_ == 0 || copied_) clear(slot);
    own.shifted = false;
    if (common_ == 0) return hits_.count(own.request, 0);
    const auto end = static_cast<std::int32_t>(common_);
    const auto kept = static_cast<std::ptrdiff_t>(common_);
    if (copied_) {
      Slot& other = at(source);
      emit(SeqCp{source, slot, 0, end});
      own.tags.assign(other.tags.begin(), other.tags.begin() + kept);
      own.shared = common_;
      other.shared = std::max(other.shared, common_);
    } else {
      emit(SeqRm{slot, end, -1});
      own.tags.resize(static_cast<std::size_t>(kept));
    }
    emit(SeqPos{slot});
  }

  void shift(std::int64_t slot) {
    Slot& own = at(slot);
    const std::int64_t kept = sizes_.context / 8;
    const std::int64_t dropped = (own.length() - kept) / 2;
    const std::int64_t moved = kept + dropped;
    if (own.shared > moved || dropped == 0) {
      clear(slot);
      schedule().give_up(slot);
      return;
    }
    const auto [from, to] =
        std::pair(static_cast<std::int32_t>(kept), static_cast<std::int32_t>(moved));
    emit(SeqRm{slot, from, to});
    emit(SeqAdd{slot, to, -1, static_cast<std::int32_t>(-dropped)});
    own.tags.erase(own.tags.begin() + from, own.tags.begin() + to);
    own.shared = std::min(own.shared, kept);
    own.shifted = true;
  }

  void decode(const Step& step) {
    Decode batch{.n_ubatch = sizes_.ubatch};
    std::vector<std::int32_t> positions;
    for (const Turn& turn : step.turns)
      for (std::int64_t i = 0; i < turn.append; ++i) {
        positions.push_back(static_cast<std::int32_t>(at(turn.slot).length() + i));
        batch.seqs.push_back({turn.slot});
      }
    // Every other pass leaves positions to the cache.
    if (++passes_ % 2 == 0) batch.pos = std::move(positions);
    emit(std::move(batch));
  }

  // The decode failed, and is given again with fewer tokens in its way.
  void make_room(Labels& labels) {
    labels.insert(kNoRoom);
    const auto idle = std::ranges::find_if(
        slots_, [](const Slot& slot) { return !slot.running && slot.length() > 0; });
    if (idle != slots_.end()) return clear(idle - slots_.begin());
    const std::int64_t victim = schedule().step().turns.back().slot;
    ++preemptions_;
    preempt(victim, labels);
    clear(victim);
  }

  // The decode has succeeded: its rows have the next tags, and what was rejected is taken back.
  void settle() {
    constexpr std::int64_t kLooksEvery = 8;
    Step& step = schedule().step();
    bool read = false;
    for (const Turn& turn : step.turns) {
      Slot& own = at(turn.slot);
      for (std::int64_t i = 0; i < turn.append; ++i) own.tags.push_back(++tags_);
      read |= turn.read;
      if (turn.rejected == 0) continue;
      own.tags.resize(own.tags.size() - static_cast<std::size_t>(turn.rejected));
      emit(SeqRm{turn.slot, static_cast<std::int32_t>(own.length()), -1});
    }
    step.turns.clear();
    if (read && ++reads_ % kLooksEvery == 0) look();
  }

  void look() {
    emit(ShowState{});
    emit(ShowRows{});
    if (windowed_) return;
    for (std::int64_t slot = 0; slot < std::ssize(slots_); ++slot)
      if (const std::int64_t length = at(slot).length(); length > 0)
        emit(SeqPos{slot}, {0, length - 1});
  }

  void clear(std::int64_t slot) {
    Slot& own = at(slot);
    if (own.length() > 0) emit(SeqRm{slot, -1, -1});
    own.tags.clear();
    own.shared = 0;
  }

  ReplaySizes sizes_;
  bool windowed_;
  std::span<const Request> requests_;
  replay::PrefixHits hits_;
  std::vector<Slot> slots_;
  std::int64_t common_ = 0;  ///< tokens that the sequence under way begins with
  bool copied_ = false;      ///< from another slot
  bool look_due_ = false;
  bool judged_ = false;  ///< the next rows are expected
  ShowState::Returns state_ = {};
  std::int64_t passes_ = 0;
  std::int64_t reads_ = 0;
  std::int64_t tags_ = 0;  ///< of the rows decoded so far

  std::int64_t shifts_ = 0;
  std::int64_t preemptions_ = 0;
};

Setup kv_setup(const LoweringInput& input) {
  const LoweringInput few = with_few_slots(input);
  const ReplaySizes sizes(few);
  return {.config = Record::of(
              KvConfig{.size = sizes.cells,
                       .n_seq_max = few.schedule.max_running,
                       .alibi = input.seed % 3 == 0 ? std::optional(true) : std::nullopt})};
}

// Halves of one size can be shifted (LC-68).
Setup iswa_setup(const LoweringInput& input) {
  const LoweringInput few = with_few_slots(input);
  const ReplaySizes sizes(few);
  return {.config = Record::of(
              IswaConfig{.size = sizes.cells,
                         .n_seq_max = few.schedule.max_running,
                         .n_swa = sizes.window,
                         .swa_type = WindowType::kStandard,
                         .n_ubatch = sizes.ubatch,
                         .swa_full = input.seed % 2 == 1 ? std::optional(true) : std::nullopt})};
}

template <bool kWindowed>
std::unique_ptr<OpStream> lower_cells(const LoweringInput& input) {
  return std::make_unique<CellsStream>(with_few_slots(input), kWindowed);
}

// A decode looks at all cells for each of its tokens.
double cells_cost(const LoweringInput& input) {
  constexpr std::size_t kMostRequests = 12'000;
  constexpr double kLooksARequest = 1e5;
  const double looks =
      static_cast<double>(replay::tokens_at(input.requests, input.schedule.scale)) *
      static_cast<double>(ReplaySizes(input).cells);
  return looks /
         (kLooksARequest * static_cast<double>(std::min(input.requests.size() + 1, kMostRequests)));
}

}  // namespace

std::vector<Lowering> lowerings() {
  return {
      {.kind = &kv_kind(), .setup = kv_setup, .lower = lower_cells<false>, .cost = cells_cost},
      {.kind = &iswa_kind(), .setup = iswa_setup, .lower = lower_cells<true>, .cost = cells_cost}};
}

}  // namespace kvo::cells
