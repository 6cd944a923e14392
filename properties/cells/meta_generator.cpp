// Random cases for cells.meta.
#include <memory>

#include "properties/cells/meta_script.hpp"
#include "properties/contract_parts.hpp"

namespace kvo::cells {
namespace {

GeneratedCase make_meta(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  std::int64_t size = draw.size(1, 12);
  if (terms.scale == Scale::kLarge) size = draw.edge(16, 4'097);
  if (terms.scale == Scale::kLong) size = draw.between(1, 3);
  MetaConfig config{.size = size};
  if (draw.percent(25)) config.build = draw.percent(70) ? Build::kDebug : Build::kRelease;
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<MetaScript>(terms, size)};
}

}  // namespace

Generator meta_generator() {
  return script_generator<MetaLabel>(meta_kind(), make_meta,
                                     {MetaLabel::kOwnerlessKept, MetaLabel::kShiftedCopied}, {});
}

}  // namespace kvo::cells
