// The metamorphic laws of contract `cells`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <utility>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/cells/operations.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::cells {
namespace {

bool has_rows(const CacheKind& kind) {
  return &kind == &kv_kind() || &kind == &iswa_kind();
}

KvOptions options_of(const Drawn& drawn) {
  const auto quirks = quirks_of<Quirk>(drawn.setup, kQuirkRows);
  return kv_options(drawn.kind, drawn.setup, quirks ? *quirks : QuirkSet<Quirk>());
}

// ---- a_b_a ----

// Whether a batch that is refused leaves nothing behind. In profile original it purges what lies
// behind a window (rehearsal_purges), and mixes up the heads of streams (heads_of_other_streams).
bool refusing_leaves_nothing(const KvOptions& options) {
  const bool purges = options.quirks.has(Quirk::kRehearsalPurges) && !options.size_window &&
                      options.window.type != WindowType::kNone;
  return !purges && (options.unified || !options.quirks.has(Quirk::kHeadsOfOtherStreams));
}

// A batch of more tokens than there are cells. Where no cell can be had twice, some of its ubatches
// fit; behind a window they might all, so there it is one.
Op too_many_tokens(const KvOptions& options, std::size_t at) {
  const bool reuses = !options.size_window && options.window.type != WindowType::kNone;
  const auto tokens = static_cast<std::size_t>(options.size + 1);
  return Op::of(
      Decode{.seqs = std::vector(tokens, std::vector<std::int64_t>{0}),
             .n_ubatch = reuses ? options.size + 1 : 1 + static_cast<std::int64_t>(at % 3)});
}

// After each batch a slot is looked for, and another batch is refused.
Variation refused_between(const Drawn& drawn) {
  constexpr std::int64_t kMostCells = 64;  // it costs their square
  const KvOptions options = options_of(drawn);
  Variation variation;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    variation.pair(at, drawn.script[at]);
    const auto* decode = drawn.script[at].as<Decode>();
    if (decode == nullptr || !drawn.succeeded(at) || options.size > kMostCells) continue;
    any = true;
    variation.insert(Op::of(FindSlot{.pos = {0}, .seqs = {{0}}}));
    if (refusing_leaves_nothing(options)) variation.insert(too_many_tokens(options, at));
  }
  return any ? variation : Variation();
}

const MetamorphicLaw& back_again() {
  static const MetamorphicLaw kLaw("a_b_a", "what is added and taken back again leaves no trace",
                                   kLongScript,
                                   {.how = "with a refused batch inserted",
                                    .applies = has_rows,
                                    .transformation = refused_between});
  return kLaw;
}

// ---- saved_and_loaded_again ----

using Placeless = std::vector<ShownTable>;

// Tables whose cells are in order of their tokens, without what a saved state does not hold: which
// cells they were, pending shifts, and owners that no batch may name (LC-70, LC-72).
Placeless without_places(Placeless tables, std::int64_t n_seq_max) {
  for (ShownTable& table : tables) {
    table.used_min = table.used_end = 0;
    table.has_shift = false;
    for (ShownCell& cell : table.cells) {
      cell.cell = cell.shift = 0;
      std::erase_if(cell.seqs, [&](std::int32_t seq) { return seq >= n_seq_max; });
    }
    std::ranges::sort(table.cells, {},
                      [](const ShownCell& cell) { return std::pair(cell.pos, cell.seqs); });
  }
  return tables;
}

Observation without_places(const Observation& seen, std::int64_t n_seq_max) {
  if (seen.error) return error_only(seen);
  ShowState::Returns shown = seen.as<ShowState::Returns>();
  shown.streams = without_places(std::move(shown.streams), n_seq_max);
  if (shown.streams_swa) shown.streams_swa = without_places(*shown.streams_swa, n_seq_max);
  std::erase_if(shown.seqs, [&](const ShownSequence& seq) { return seq.seq >= n_seq_max; });
  return {.returns = Record::of(std::move(shown))};
}

// Positions below 0 are not loaded (LC-80).
bool may_be_loaded(const ShowState::Returns& shown) {
  const auto is_sound = [](const ShownTable& table) {
    return std::ranges::all_of(table.cells, [](const ShownCell& cell) { return cell.pos >= 0; });
  };
  return std::ranges::all_of(shown.streams, is_sound) &&
         std::ranges::all_of(shown.streams_swa.value_or(Placeless()), is_sound);
}

// Before the last look everything is saved, cleared, and loaded.
Variation saved_and_loaded(const Drawn& drawn) {
  const KvOptions options = options_of(drawn);
  std::size_t last = drawn.script.size();
  std::int64_t handles = 0;
  std::int64_t handles_before = 0;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (op.as<New>() != nullptr && drawn.succeeded(at)) handles = 0;
    if (op.as<StateSave>() != nullptr && drawn.succeeded(at)) ++handles;
    if (op.as<ShowState>() == nullptr || !drawn.succeeded(at) ||
        !may_be_loaded(drawn.seen[at].as<ShowState::Returns>()))
      continue;
    last = at;
    handles_before = handles;
  }
  if (last == drawn.script.size()) return {};
  Variation variation;
  for (std::size_t at = 0; at < last; ++at) variation.pair(at, drawn.script[at]);
  variation.insert(Op::of(StateSave{.seq = -1}));
  variation.insert(Op::of(Clear{.data = true}));
  variation.insert(Op::of(StateLoad{.handle = handles_before, .seq = -1}));
  variation.pair(last, drawn.script[last], [most = options.n_seq_max](const Observation& seen) {
    return without_places(seen, most);
  });
  return variation;
}

const MetamorphicLaw& loaded_again() {
  static const MetamorphicLaw kLaw("saved_and_loaded_again",
                                   "what is saved, cleared and loaded is there again", kLongScript,
                                   {.how = "with a save, a clear and a load inserted",
                                    .applies = has_rows,
                                    .transformation = saved_and_loaded});
  return kLaw;
}

}  // namespace

std::vector<const Law*> laws() {
  return {&back_again(), &loaded_again()};
}

}  // namespace kvo::cells
