// Random cases for cells.kv and cells.iswa.
#include <algorithm>
#include <memory>
#include <utility>

#include "properties/cells/kv_script.hpp"
#include "properties/contract_parts.hpp"

namespace kvo::cells {
namespace {

GeneratedCase make_kv(const CaseTerms& terms, bool pair) {
  Draw draw(~terms.seed);
  KvCase drawn = draw_case(draw, pair, terms.scale);
  Setup setup{.profile = terms.profile, .config = drawn.config};
  return {std::move(setup), std::make_unique<KvScript>(terms, std::move(drawn))};
}

using States = std::vector<KvState>;

// All labels but some states.
std::vector<std::string_view> all_but(States others, const States& more) {
  others.insert(others.end(), more.begin(), more.end());
  std::vector<std::string_view> texts = label_texts_but<KvLabel>({});
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<KvState>>([&](auto one) {
    if (std::ranges::find(others, one.value) == others.end())
      texts.push_back(label_text(one.value));
  });
  return texts;
}

Generator generator(const CacheKind& kind, bool pair, const States& of_the_other) {
  using enum KvState;
  const States original_only{kAssertion,
                             kCopiedBeyondMost,
                             kUbatchTooLarge,
                             kRepeatedPosition,
                             kOverlappingSets,
                             kPurgedByARefusedBatch,
                             kHalvesOfDifferentSizesMove};
  const States documented_only{kPartCopyRefused, kSharedMoveRefused, kHalvesOfDifferentSizesStay};
  return {.kind = &kind,
          .make = [pair](const CaseTerms& terms) { return make_kv(terms, pair); },
          .original_labels = all_but(documented_only, of_the_other),
          .documented_labels = all_but(original_only, of_the_other),
          .lives_long = true};
}

}  // namespace

std::vector<Generator> kv_generators() {
  using enum KvState;
  return {generator(kv_kind(), false,
                    {kSearchedTheWindow, kWindowHalfRestored, kHalvesOfDifferentSizesMove,
                     kHalvesOfDifferentSizesStay}),
          generator(iswa_kind(), true, {kInterrupted})};
}

}  // namespace kvo::cells
