// Random cases for snapshot.kv and snapshot.rotating.
#include <memory>
#include <vector>

#include "properties/snapshot/contract.hpp"
#include "properties/snapshot/rows_script.hpp"

namespace kvo::snapshot {
namespace {

GeneratedCase make_kv(const CaseTerms& terms) {
  return {.setup = {.profile = terms.profile},
          .ops = std::make_unique<RowsScript>(terms.seed, 0, terms.scale)};
}

GeneratedCase make_rotating(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  std::int64_t window = draw.percent(20) ? draw.between(1, 2) : draw.size(1, kMostWindow);
  if (draw.percent(1)) window = draw.size(kMostWindow + 1, kLongestWindow);
  if (draw.percent(1)) window = kLongestWindow - draw.between(0, 1);
  if (terms.scale == Scale::kLarge) window = draw.edge(8, 513);
  if (terms.scale == Scale::kLong) window = draw.between(1, 5);
  return {.setup = {.profile = terms.profile, .config = Record::of(RowsConfig{.max_size = window})},
          .ops = std::make_unique<RowsScript>(terms.seed, window, terms.scale)};
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
  return {{.kind = &kv_kind(),
           .make = make_kv,
           .original_labels = kv,
           .documented_labels = kv,
           .lives_long = true},
          {.kind = &rotating_kind(),
           .make = make_rotating,
           .original_labels = rotating,
           .documented_labels = rotating,
           .lives_long = true}};
}

std::vector<Generator> generators() {
  std::vector<Generator> all = rows_generators();
  all.push_back(recurrent_generator());
  all.push_back(trie_generator());
  return all;
}

}  // namespace kvo::snapshot
