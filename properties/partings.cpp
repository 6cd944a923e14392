#include "properties/partings.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "properties/all_subjects.hpp"

namespace kvo {
namespace {

using Names = std::vector<std::string_view>;

Verdict replayed(const traces::Case& recorded, const Names& quirks) {
  const std::array<const Subject*, 1> reference{&reference_of(*recorded.header.kind)};
  Lockstep lockstep(
      reference,
      {.profile = Profile::kDocumented, .config = recorded.header.config, .quirks = quirks});
  for (const traces::Step& step : recorded.steps) {
    if (!lockstep.worthwhile(true)) break;
    lockstep.step(step.op, step.recorded ? &*step.recorded : nullptr);
    if (step.recorded && step.recorded->failed_with(Code::kPrecondition)) break;
  }
  return lockstep.participants().front().verdict;
}

// Whether a replay with these quirks comes further than `verdict`.
bool goes_further(const traces::Case& recorded, const Names& quirks, const Verdict& verdict) {
  const Verdict with = replayed(recorded, quirks);
  return !with.failed() || with.op_index > verdict.op_index;
}

Names with(Names quirks, std::string_view name) {
  quirks.push_back(name);
  return quirks;
}

Names without(Names quirks, std::string_view name) {
  std::erase(quirks, name);
  return quirks;
}

// Quirks that explain the difference at which `verdict` was reached with the `known` ones: one of
// them alone, if any; else several, none of which could be spared, since what an earlier one did
// may not have shown yet.
Names more_quirks(const traces::Case& recorded, const Names& known, const Verdict& verdict) {
  Names unknown;
  for (const QuirkInfo& quirk : recorded.header.kind->quirks)
    if (std::ranges::find(known, quirk.name) == known.end()) unknown.push_back(quirk.name);
  for (const std::string_view name : unknown)
    if (goes_further(recorded, with(known, name), verdict)) return {name};
  Names all = known;
  all.insert(all.end(), unknown.begin(), unknown.end());
  if (!goes_further(recorded, all, verdict)) return {};
  Names needed = unknown;
  for (const std::string_view name : unknown) {
    all = known;
    const Names fewer = without(needed, name);
    all.insert(all.end(), fewer.begin(), fewer.end());
    if (goes_further(recorded, all, verdict)) needed = fewer;
  }
  return needed;
}

}  // namespace

Explanation explain(const traces::Case& recorded) {
  Explanation explanation;
  Names known;
  explanation.rest = replayed(recorded, known);
  while (explanation.rest.failed()) {
    const Names more = more_quirks(recorded, known, explanation.rest);
    if (more.empty()) break;
    for (const QuirkInfo& quirk : recorded.header.kind->quirks)
      if (std::ranges::find(more, quirk.name) != more.end())
        explanation.partings.push_back({explanation.rest.op_index, explanation.rest.op, quirk});
    known.insert(known.end(), more.begin(), more.end());
    explanation.rest = replayed(recorded, known);
  }
  return explanation;
}

}  // namespace kvo
