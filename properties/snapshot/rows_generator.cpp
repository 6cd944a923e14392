// Random cases for snapshot.kv and snapshot.rotating.
#include <memory>
#include <vector>

#include "properties/snapshot/contract.hpp"
#include "properties/snapshot/rows_script.hpp"

namespace kvo::snapshot {
namespace {

DrawnStorage some_storage(std::uint64_t seed, RowsConfig& config) {
  Draw draw = storage_draw(seed);
  if (!draw.percent(25)) return {};
  const DrawnStorage drawn{draw_narrow_storage(draw), draw.percent(60)};
  set_storage(draw, config.rows, drawn.format);
  if (draw.percent(3)) config.rows.group = draw.one_of({0, 1, 48, 256});  // mostly no format
  return drawn;
}

GeneratedCase make_kv(const CaseTerms& terms) {
  RowsConfig config;
  const DrawnStorage storage = some_storage(terms.seed, config);
  const bool plain = storage.format.type == StorageType::kF32;
  return {.setup = {.profile = terms.profile, .config = plain ? Record() : Record::of(config)},
          .ops = std::make_unique<RowsScript>(terms.seed, 0, storage, terms.scale)};
}

GeneratedCase make_rotating(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  std::int64_t window = draw.percent(20) ? draw.between(1, 2) : draw.size(1, kMostWindow);
  if (draw.percent(1)) window = draw.size(kMostWindow + 1, kLongestWindow);
  if (draw.percent(1)) window = kLongestWindow - draw.between(0, 1);
  if (terms.scale == Scale::kLarge) window = draw.edge(8, 513);
  if (terms.scale == Scale::kLong) window = draw.between(1, 5);
  RowsConfig config{.max_size = window};
  const DrawnStorage storage = some_storage(terms.seed, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<RowsScript>(terms.seed, window, storage, terms.scale)};
}

using L = RowsLabel;

}  // namespace

std::vector<Generator> rows_generators() {
  const auto kv =
      label_texts_but({L::kRingWrapped, L::kChunkOnAWrappedRing, L::kFirstChunkBeyondTheWindow,
                       L::kForeignWindow, L::kLongRingWrapped});
  const auto rotating =
      label_texts_but({L::kSplitInside, L::kMergeRefused, L::kGrownBeyondAStep, L::kSplitAgain,
                       L::kMergedAgain, L::kMergedHalvesRestored, L::kMergedOfTwoShapes});
  return {with_storage_labels({.kind = &kv_kind(),
                               .make = make_kv,
                               .original_labels = kv,
                               .documented_labels = kv,
                               .lives_long = true}),
          with_storage_labels({.kind = &rotating_kind(),
                               .make = make_rotating,
                               .original_labels = rotating,
                               .documented_labels = rotating,
                               .lives_long = true})};
}

std::vector<Generator> generators() {
  std::vector<Generator> all = rows_generators();
  all.push_back(recurrent_generator());
  all.push_back(trie_generator());
  return all;
}

}  // namespace kvo::snapshot
