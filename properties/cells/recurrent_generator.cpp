// Random cases for cells.recurrent.
#include <memory>

#include "properties/cells/recurrent_script.hpp"
#include "properties/contract_parts.hpp"

namespace kvo::cells {
namespace {

GeneratedCase make_recurrent(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  RecurrentConfig config{.n_seq_max = draw.between(1, 5)};
  if (draw.percent(50)) config.n_rs_seq = draw.between(0, 3);
  if (terms.scale == Scale::kLarge) {
    config.n_seq_max = draw.percent(20) ? kSequences : draw.edge(4, kSequences);
    if (draw.percent(50)) config.n_rs_seq = draw.edge(2, 17);
  }
  if (terms.scale == Scale::kLong) config = {.n_seq_max = draw.between(1, 2)};
  if (draw.percent(10)) config.build = draw.percent(50) ? Build::kDebug : Build::kRelease;
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<RecurrentScript>(terms, config)};
}

}  // namespace

Generator recurrent_generator() {
  using enum RecurrentLabel;
  return script_generator<RecurrentLabel>(recurrent_kind(), make_recurrent,
                                          {kStepTooLarge, kOlderKept, kBelowZero},
                                          {kSharedStateStays, kAnyRemoved, kOlderRefused});
}

}  // namespace kvo::cells
