// The kinds `cells.kv` and `cells.iswa`. Their session shows batches and saves states.
#include "reference/cells/session.hpp"

#include <algorithm>
#include <cmath>

#include "reference/cells/operations.hpp"

namespace kvo::cells {
namespace {

ShownUbatch::Visible visible_cells(std::span<const float> mask, std::size_t cells) {
  ShownUbatch::Visible visible;
  for (std::size_t begin = 0; begin < mask.size(); begin += cells) {
    auto& seen = visible.emplace_back();
    for (std::size_t cell = 0; cell < cells; ++cell)
      if (std::isfinite(mask[begin + cell])) seen.push_back(static_cast<std::int32_t>(cell));
  }
  return visible;
}

// Called amid a decode: what is allocated here is not the cache's.
void show_half(const PlacedUbatch& ubatch, Half half, std::int64_t& n_kv,
               std::optional<Tensor>& mask, std::optional<ShownUbatch::Visible>& visible) {
  n_kv = ubatch.n_kv(half);
  Tensor entries;
  {
    const HarnessWork work;
    entries = make_tensor({static_cast<std::int64_t>(ubatch.rows().size()), n_kv});
  }
  ubatch.mask(half, entries.floats());
  const HarnessWork work;
  if (n_kv > ShownUbatch::kMostMaskCells)
    visible = visible_cells(entries.floats(), static_cast<std::size_t>(n_kv));
  else
    mask = std::move(entries);
}

ShownUbatch show(const PlacedUbatch& ubatch, bool is_pair) {
  const auto list = [](std::span<const std::int32_t> numbers) {
    const HarnessWork work;
    return std::vector<std::int32_t>(numbers.begin(), numbers.end());
  };
  ShownUbatch shown{.rows = list(ubatch.rows()), .slots = list(ubatch.slots(Half::kBase))};
  show_half(ubatch, Half::kBase, shown.n_kv, shown.mask, shown.visible);
  if (!is_pair) return shown;
  shown.slots_swa = list(ubatch.slots(Half::kWindow));
  show_half(ubatch, Half::kWindow, shown.n_kv_swa.emplace(), shown.mask_swa, shown.visible_swa);
  return shown;
}

class KvSession final : public OneCacheSession<KvSession, Ops, KvCache, KvOptions> {
 public:
  using OneCacheSession::OneCacheSession;

  Result<New::Returns> operator()(const New& /*op*/) {
    if (const Status made = make_cache(); !made) return made.error();
    states_.clear();
    return New::Returns{options().size, options().size_window, options().streams(),
                        cache().can_shift()};
  }
  Result<Decode::Returns> operator()(const Decode& op) {
    if (op.abort_at && !options().real) return refused("abort_at without real");
    const BatchSequences sequences(op.seqs);
    Batch batch = sequences.batch();
    if (op.pos.has_value()) batch.positions = *op.pos;
    batch.n_ubatch = op.n_ubatch;
    batch.causal = op.causal.value_or(true);
    batch.abort_at = op.abort_at;
    std::vector<ShownUbatch> ubatches;
    const SeeUbatch see = [&](const PlacedUbatch& ubatch) {
      if (options().real) return;
      ShownUbatch shown = show(ubatch, cache().is_pair());
      const HarnessWork work;
      ubatches.push_back(std::move(shown));
    };
    const Status done = probe()([&] { return cache().decode(batch, see); });
    if (!done) return done.error();
    if (options().real) return Decode::Returns{};
    return Decode::Returns{std::move(ubatches)};
  }
  Result<FindSlot::Returns> operator()(const FindSlot& op) {
    const BatchSequences sequences(op.seqs);
    Batch batch = sequences.batch();
    batch.positions = op.pos;
    const Half half = op.swa.value_or(false) ? Half::kWindow : Half::kBase;
    auto slots = probe()([&] { return cache().find_slot(batch, half, op.cont.value_or(false)); });
    if (!slots) return slots.error();
    return FindSlot::Returns{std::move(*slots)};
  }
  Result<StateSave::Returns> operator()(const StateSave& op) {
    if (const Status space = states_.has_space(); !space) return space.error();
    auto state = probe()([&] { return cache().state_save(op.seq, op.partial.value_or(false)); });
    if (!state) return state.error();
    const std::int64_t bytes = bytes_of(*state, cache().is_pair() ? 1 : 2);
    return StateSave::Returns{states_.add(std::move(*state)), bytes};
  }
  Status operator()(const StateLoad& op) {
    const auto state = states_.find(op.handle);
    if (!state) return state.error();
    return probe()([&] { return cache().state_load(**state, op.seq, op.partial.value_or(false)); });
  }
  Status operator()(const StateEdit& op) {
    const auto state = states_.find(op.handle);
    if (!state) return state.error();
    auto& streams = op.swa.value_or(false) ? (*state)->window : (*state)->base;
    if (op.stream < 0 || op.stream >= std::ssize(streams))
      return refused(fmt::format("stream {}", op.stream));
    SavedStream& cells = streams[static_cast<std::size_t>(op.stream)];
    const std::int64_t count = op.cells.value_or(std::ssize(cells));
    if (count < 0 || count > kMostCells) return refused(fmt::format("cells {}", count));
    if (op.cell && (*op.cell < 0 || *op.cell >= count))
      return refused(fmt::format("cell {} of {}", *op.cell, count));
    if (op.seqs && op.seqs->size() > static_cast<std::size_t>(kSequences))
      return refused(fmt::format("{} owners", op.seqs->size()));
    cells.resize(static_cast<std::size_t>(count));
    if (!op.cell) return {};
    SavedCell& cell = cells[static_cast<std::size_t>(*op.cell)];
    if (op.pos) cell.pos = *op.pos;
    if (op.seqs) cell.seqs = *op.seqs;
    return {};
  }
  Result<ShowRows::Returns> operator()(const ShowRows& /*op*/) {
    ShowRows::Returns shown{.streams = cache().rows(Half::kBase)};
    if (cache().is_pair()) shown.streams_swa = cache().rows(Half::kWindow);
    return shown;
  }
  Result<ShowState::Returns> operator()(const ShowState& /*op*/) {
    ShowState::Returns shown{.streams = cache().tables(Half::kBase)};
    if (cache().is_pair()) shown.streams_swa = cache().tables(Half::kWindow);
    shown.seqs = sequences_shown([&](std::int64_t seq) {
      const auto extremes = cache().seq_pos(seq);
      return extremes ? *extremes : Extremes();
    });
    return shown;
  }

 private:
  NumberedCells<SavedState> states_;
};

template <class Config>
KvOptions common_options(const Config& config, QuirkSet<Quirk> quirks) {
  return {.quirks = quirks,
          .build = config.build.value_or(Build::kRelease),
          .size = config.size,
          .n_seq_max = config.n_seq_max.value_or(1),
          .unified = config.unified.value_or(true) || config.n_seq_max.value_or(1) == 1,  // LC-48
          .window = {config.swa_type.value_or(WindowType::kNone), config.n_swa.value_or(0)},
          .alibi = config.alibi.value_or(false),
          .non_causal = config.non_causal.value_or(NonCausal::kAll)};
}

// LC-67. Sizes that are out of range are left to check_options.
std::int64_t window_cells(const IswaConfig& config, const KvOptions& options) {
  if (config.size_swa) return *config.size_swa;
  if (config.swa_full.value_or(false)) return options.size;
  const std::int64_t n_ubatch =
      std::clamp<std::int64_t>(config.n_ubatch.value_or(0), 0, kMostCells);
  const std::int64_t sequences =
      options.unified ? std::clamp<std::int64_t>(options.n_seq_max, 1, kSequences) : 1;
  const std::int64_t wanted = std::min(options.size, options.window.size * sequences + n_ubatch);
  constexpr std::int64_t kMultiple = 256;
  return wanted < 1 ? wanted
                    : (std::min(wanted, kMostCells) + kMultiple - 1) / kMultiple * kMultiple;
}

}  // namespace

BatchSequences::BatchSequences(const std::vector<std::vector<std::int64_t>>& lists) {
  for (const std::vector<std::int64_t>& list : lists) {
    sequences_.insert(sequences_.end(), list.begin(), list.end());
    ends_.push_back(sequences_.size());
  }
}

KvOptions kv_options(const CacheKind& kind, const Setup& setup, QuirkSet<Quirk> quirks) {
  if (&kind == &iswa_kind()) {
    const auto& config = setup.config_as<IswaConfig>();
    KvOptions options = common_options(config, quirks);
    options.size_window = window_cells(config, options);
    return options;
  }
  const auto& config = setup.config_as<KvConfig>();
  KvOptions options = common_options(config, quirks);
  options.n_pad = config.n_pad.value_or(1);
  options.real = config.real.value_or(false);
  return options;
}

const CacheKind& kv_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kKvQuirks);
  static const CacheKind kKind{.contract = "cells",
                               .cache = "kv",
                               .doc = "cells that sequences share, with rows (llama.cpp KV cache)",
                               .operations = op_kinds(Ops()),
                               .config = &type_of<KvConfig>(),
                               .quirks = kRows};
  return kKind;
}

const CacheKind& iswa_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kIswaQuirks);
  static const CacheKind kKind{
      .contract = "cells",
      .cache = "iswa",
      .doc = "two of them, one with a sliding window (llama.cpp KV cache for such layers)",
      .operations = op_kinds(Ops()),
      .config = &type_of<IswaConfig>(),
      .quirks = kRows};
  return kKind;
}

Subject make_subject(const CacheKind& kind, std::string variant, std::string doc, MakeKv make) {
  return subject_of<KvSession>(kind, std::move(variant), std::move(doc), std::move(make),
                               [&kind](const Setup& setup, QuirkSet<Quirk> quirks) {
                                 return kv_options(kind, setup, quirks);
                               });
}

}  // namespace kvo::cells

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CELLS_OPERATIONS)
}  // namespace kvo
