// Requests as operations of cells.kv and cells.iswa: a slot is a sequence, all share one stream.
// BatchOps has the policy. Prefixes are shared by seq_rm or seq_cp, if no window has dropped their
// rows; contexts shift by seq_rm and seq_add. A sequence that shares what would move ends.
//
// Contents. Rows hold tags of their tokens, so that the tag of each position of a slot is known.
// Every look compares tables and rows. A row of another token, or a key that is rotated to another
// position, is expected to be -1.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "properties/replay/prompt_tokens.hpp"
#include "reference/cells/operations.hpp"

namespace kvo::cells {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::Step;
using replay::Turn;

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

LoweringInput with_few_slots(const LoweringInput& input) {
  constexpr std::int64_t kMostSequences = 256;
  return input.with_slots(kMostSequences);
}

class CellsStream final : public replay::BatchOps {
 public:
  CellsStream(const LoweringInput& given, bool windowed)
      : BatchOps(with_few_slots(given), ReplaySizes(with_few_slots(given)).context,
                 {.full = "cache full, and room made",
                  .refused = "context full, and given up",
                  .lost = "prefix found, but out of the window in part"}),
        sizes_(input()),
        windowed_(windowed),
        hits_(input(), replay::PromptTokens(input().requests, input().schedule.scale).block()) {
    emit(New{});
  }

  [[nodiscard]] std::vector<Figure> figures() const override {
    std::vector<Figure> figures = hits_.figures("");
    figures.push_back({"context shifts", shifts_});
    figures.push_back({"preemptions", preemptions()});
    return figures;
  }

 protected:
  void share(std::int64_t slot, std::int64_t source, std::int64_t tokens) override {
    const auto end = static_cast<std::int32_t>(tokens);
    if (source == slot) {
      emit(SeqRm{slot, end, -1});
    } else {
      clear(slot);
      emit(SeqCp{source, slot, 0, end});
    }
    const std::int64_t needed =
        windowed_ ? std::max<std::int64_t>(0, tokens - sizes_.window + 1) : 0;
    emit_then(SeqPos{slot}, [=, this](const Observation& seen) {
      if (seen.error) return resume(slot, false);
      const auto& extremes = seen.as<SeqPos::Returns>();
      resume(slot, extremes.max == tokens - 1 && extremes.min <= needed);
    });
  }
  void begun(std::int64_t slot, std::int64_t tokens) override {
    hits_.count(request_of(slot), tokens);
  }
  void drop(std::int64_t slot, std::int64_t begin) override {
    emit(SeqRm{slot, static_cast<std::int32_t>(begin), -1});
  }
  [[nodiscard]] bool movable(const Slot& slot, std::int64_t begin) const override {
    return slot.shared <= begin;
  }
  void shift(std::int64_t slot, std::int32_t begin, std::int32_t end) override {
    emit(SeqRm{slot, begin, end});
    emit_then(SeqAdd{slot, end, -1, begin - end}, [this, slot](const Observation& seen) {
      shifts_ += seen.error ? 0 : 1;
      shifted(slot, !seen.error);
    });
    at(slot).intact = 0;
  }
  bool prepare(Step& /*step*/) override {
    const bool due = take_read();
    if (due) look();
    return due;
  }
  void forward(const Step& step) override {
    Decode batch{.n_ubatch = sizes_.ubatch};
    std::vector<std::int32_t> positions;
    for (const Turn& turn : step.turns)
      for (std::int64_t i = 0; i < turn.append; ++i) {
        positions.push_back(static_cast<std::int32_t>(at(turn.slot).length() + i));
        batch.seqs.push_back({turn.slot});
      }
    // Every other pass leaves positions to the cache.
    if (++passes_ % 2 == 0) batch.pos = std::move(positions);
    emit_then(std::move(batch), [this](const Observation& seen) { stored(!seen.error); });
  }
  void settled(bool read) override {
    constexpr std::int64_t kLooksEvery = 8;
    if (read && ++reads_ % kLooksEvery == 0) look();
  }

 private:
  // True where a row was marked.
  bool judge(const std::vector<ShownTable>& tables, std::vector<StreamRows>& streams) const {
    bool foreign = false;
    for (std::size_t stream = 0; stream < std::min(tables.size(), streams.size()); ++stream)
      for (const ShownCell& cell : tables[stream].cells)
        for (const std::int64_t seq : cell.seqs) foreign |= !is_of(cell, seq, streams[stream]);
    return foreign;
  }
  bool is_of(const ShownCell& cell, std::int64_t seq, StreamRows& rows) const {
    const auto index = static_cast<std::size_t>(cell.cell);
    if (index >= rows.k.size() || seq >= std::ssize(all())) return true;
    const std::vector<std::int64_t>& tags = all()[static_cast<std::size_t>(seq)].tags;
    const std::int64_t tag =
        cell.pos < std::ssize(tags) ? tags[static_cast<std::size_t>(cell.pos)] : -1;
    if (rows.k[index] == tag && rows.v[index] == tag && rows.rot[index] == cell.pos - cell.shift)
      return true;
    rows.k[index] = rows.v[index] = rows.rot[index] = -1;
    return false;
  }

  void look() {
    emit_then(ShowState{}, [this](const Observation& seen) {
      if (!seen.error) state_ = seen.as<ShowState::Returns>();
    });
    // If a cell has another row than its position's, the rows once more, with -1 there.
    emit_then(ShowRows{}, [this](const Observation& seen) {
      if (seen.error) return;
      ShowRows::Returns rows = seen.as<ShowRows::Returns>();
      bool foreign = judge(state_.streams, rows.streams);
      if (rows.streams_swa && state_.streams_swa)
        foreign |= judge(*state_.streams_swa, *rows.streams_swa);
      if (foreign) emit(ShowRows{}, std::move(rows));
    });
    if (windowed_) return;
    for (std::int64_t slot = 0; slot < slots(); ++slot)
      if (const std::int64_t length = at(slot).length(); length > 0)
        emit(SeqPos{slot}, {0, length - 1});
  }

  ReplaySizes sizes_;
  bool windowed_;
  replay::PrefixHits hits_;
  ShowState::Returns state_ = {};
  std::int64_t passes_ = 0;
  std::int64_t reads_ = 0;
  std::int64_t shifts_ = 0;
};

KvConfig kv_config(const LoweringInput& given) {
  const LoweringInput input = with_few_slots(given);
  return {.size = ReplaySizes(input).cells,
          .n_seq_max = input.schedule.max_running,
          .alibi = input.seed % 3 == 0 ? std::optional(true) : std::nullopt};
}

// Halves of one size can be shifted (LC-68).
IswaConfig iswa_config(const LoweringInput& given) {
  const LoweringInput input = with_few_slots(given);
  const ReplaySizes sizes(input);
  return {.size = sizes.cells,
          .n_seq_max = input.schedule.max_running,
          .n_swa = sizes.window,
          .swa_type = WindowType::kStandard,
          .n_ubatch = sizes.ubatch,
          .swa_full = input.seed % 2 == 1 ? std::optional(true) : std::nullopt};
}

// A decode reads all cells for each of its tokens.
double cells_cost(const LoweringInput& input) {
  constexpr std::size_t kMostRequests = 12'000;
  constexpr double kReadsARequest = 1e5;
  const double reads =
      static_cast<double>(input.tokens()) * static_cast<double>(ReplaySizes(input).cells);
  return reads /
         (kReadsARequest * static_cast<double>(std::min(input.requests.size() + 1, kMostRequests)));
}

}  // namespace

std::vector<Lowering> lowerings() {
  using replay::lower_by;
  using replay::setup_by;
  return {{&kv_kind(), setup_by<kv_config>, lower_by<CellsStream, false>, cells_cost},
          {&iswa_kind(), setup_by<iswa_config>, lower_by<CellsStream, true>, cells_cost}};
}

}  // namespace kvo::cells
