// The kinds `cells.kv` and `cells.iswa`, and how operations reach a cache: one overload each.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reference/cells/operations.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::cells {
namespace {

constexpr std::size_t kMostStates = 4096;          // saved in a case
constexpr std::int64_t kMostSavedCells = 1 << 20;  // of all of them together

Error no_cache() {
  return fail(Code::kPrecondition, "no cache");
}

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

std::int64_t cells_of(const SavedState& state) {
  std::size_t cells = 0;
  for (const auto* half : {&state.base, &state.window})
    for (const SavedStream& stream : *half) cells += stream.size();
  return static_cast<std::int64_t>(cells);
}

class KvSession final : public DispatchSession<KvSession, Ops> {
 public:
  KvSession(MakeKv make, const KvOptions& options, bool real)
      : make_(std::move(make)), options_(options), real_(real) {}

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_ ? cache_->broken_invariant() : std::nullopt;
  }

  template <class T>
  [[nodiscard]] Result<KvCache*> cache_of(const T& /*op*/) const {
    if (!cache_) return no_cache();
    return cache_.get();
  }
  Result<New::Returns> operator()(const New& /*op*/) {
    if (const Status checked = check_options(options_); !checked) return checked.error();
    auto made = probe()([&] { return make_(options_); });
    if (!made) return made.error();
    cache_ = std::move(*made);
    states_.clear();
    return New::Returns{options_.size, options_.size_window, options_.streams(),
                        cache_->can_shift()};
  }
  Result<Decode::Returns> operator()(const Decode& op) {
    if (!cache_) return no_cache();
    if (op.abort_at && !real_) return refused("abort_at without real");
    const BatchSequences sequences(op.seqs);
    Batch batch = sequences.batch();
    if (op.pos.has_value()) batch.positions = *op.pos;
    batch.n_ubatch = op.n_ubatch;
    batch.causal = op.causal.value_or(true);
    batch.abort_at = op.abort_at;
    std::vector<ShownUbatch> ubatches;
    const SeeUbatch see = [&](const PlacedUbatch& ubatch) {
      if (real_) return;
      ShownUbatch shown = show(ubatch, cache_->is_pair());
      const HarnessWork work;
      ubatches.push_back(std::move(shown));
    };
    const Status done = probe()([&] { return cache_->decode(batch, see); });
    if (!done) return done.error();
    if (real_) return Decode::Returns{};
    return Decode::Returns{std::move(ubatches)};
  }
  Result<FindSlot::Returns> operator()(const FindSlot& op) {
    if (!cache_) return no_cache();
    const BatchSequences sequences(op.seqs);
    Batch batch = sequences.batch();
    batch.positions = op.pos;
    const Half half = op.swa.value_or(false) ? Half::kWindow : Half::kBase;
    auto slots = probe()([&] { return cache_->find_slot(batch, half, op.cont.value_or(false)); });
    if (!slots) return slots.error();
    return FindSlot::Returns{std::move(*slots)};
  }
  Result<StateSave::Returns> operator()(const StateSave& op) {
    if (!cache_) return no_cache();
    std::int64_t held = 0;
    for (const SavedState& state : states_) held += cells_of(state);
    if (states_.size() == kMostStates || held > kMostSavedCells)
      return refused("too many saved states");
    auto state = probe()([&] { return cache_->state_save(op.seq, op.partial.value_or(false)); });
    if (!state) return state.error();
    const std::int64_t bytes = bytes_of(*state, cache_->is_pair() ? 1 : 2);
    states_.push_back(std::move(*state));
    return StateSave::Returns{static_cast<std::int64_t>(states_.size()) - 1, bytes};
  }
  Status operator()(const StateLoad& op) {
    if (!cache_) return no_cache();
    const SavedState* state = find(op.handle);
    if (state == nullptr) return no_state(op.handle);
    return probe()([&] { return cache_->state_load(*state, op.seq, op.partial.value_or(false)); });
  }
  Status operator()(const StateEdit& op) {
    if (!cache_) return no_cache();
    SavedState* state = find(op.handle);
    if (state == nullptr) return no_state(op.handle);
    auto& streams = op.swa.value_or(false) ? state->window : state->base;
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
    if (!cache_) return no_cache();
    ShowRows::Returns shown{.streams = cache_->rows(Half::kBase)};
    if (cache_->is_pair()) shown.streams_swa = cache_->rows(Half::kWindow);
    return shown;
  }
  Result<ShowState::Returns> operator()(const ShowState& /*op*/) {
    if (!cache_) return no_cache();
    ShowState::Returns shown{.streams = cache_->tables(Half::kBase)};
    if (cache_->is_pair()) shown.streams_swa = cache_->tables(Half::kWindow);
    shown.seqs = sequences_shown([&](std::int64_t seq) {
      const auto extremes = cache_->seq_pos(seq);
      return extremes ? *extremes : Extremes();
    });
    return shown;
  }

 private:
  [[nodiscard]] SavedState* find(std::int64_t handle) {
    if (handle < 0 || handle >= std::ssize(states_)) return nullptr;
    return &states_[static_cast<std::size_t>(handle)];
  }
  static Error no_state(std::int64_t handle) {
    return refused(fmt::format("no saved state {}", handle));
  }

  MakeKv make_;
  KvOptions options_;
  bool real_;
  std::unique_ptr<KvCache> cache_;
  std::vector<SavedState> states_;  // [handle]
};

template <class Config>
KvOptions common_options(const Config& config) {
  return {.build = config.build.value_or(Build::kRelease),
          .size = config.size,
          .n_seq_max = config.n_seq_max.value_or(1),
          .unified = config.unified.value_or(true),
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

KvOptions kv_options(const KvConfig& config) {
  KvOptions options = common_options(config);
  options.n_pad = config.n_pad.value_or(1);
  return options;
}

KvOptions kv_options(const IswaConfig& config) {
  KvOptions options = common_options(config);
  options.size_window = window_cells(config, options);
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
  return {.kind = &kind,
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [&kind,
                   make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            const bool is_pair = &kind == &iswa_kind();
            KvOptions options = is_pair ? kv_options(setup.config_as<IswaConfig>())
                                        : kv_options(setup.config_as<KvConfig>());
            options.quirks = *quirks;
            const bool real = !is_pair && setup.config_as<KvConfig>().real.value_or(false);
            return std::make_unique<KvSession>(make, options, real);
          }};
}

}  // namespace kvo::cells

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CELLS_OPERATIONS)
}  // namespace kvo
