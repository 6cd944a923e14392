#include "properties/campaign/quirk_attribution.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace kvo {
namespace {

using Names = std::vector<std::string>;

// A recorded case and the reference that replays it.
struct Recorded {
  const Subject& reference;
  const traces::Case& log;

  [[nodiscard]] std::span<const QuirkInfo> quirks() const { return log.header.kind->quirks; }
};

Verdict replayed(const Recorded& recorded, const Names& quirks) {
  const std::array<const Subject*, 1> reference{&recorded.reference};
  Lockstep lockstep(
      nullptr, reference,
      {.profile = Profile::kDocumented, .config = recorded.log.header.config, .quirks = quirks});
  for (const traces::Step& step : recorded.log.steps) {
    if (!lockstep.worthwhile(true)) break;
    lockstep.step(step.op, step.recorded ? &*step.recorded : nullptr);
    if (step.recorded && step.recorded->failed_with(Code::kPrecondition)) break;
  }
  return lockstep.participants().front().verdict;
}

// Whether a replay with these quirks comes further than `verdict`.
bool goes_further(const Recorded& recorded, const Names& quirks, const Verdict& verdict) {
  const Verdict with = replayed(recorded, quirks);
  return !with.failed() || with.op_index > verdict.op_index;
}

Names with(Names quirks, const std::string& name) {
  quirks.push_back(name);
  return quirks;
}

Names without(Names quirks, const std::string& name) {
  std::erase(quirks, name);
  return quirks;
}

// Quirks that explain the difference at which `verdict` was reached with the `known` ones: one of
// them alone, if any; else several, none of which could be spared, since what an earlier one did
// may not have shown yet.
Names more_quirks(const Recorded& recorded, const Names& known, const Verdict& verdict) {
  Names unknown;
  for (const QuirkInfo& quirk : recorded.quirks())
    if (std::ranges::find(known, quirk.name()) == known.end()) unknown.push_back(quirk.name());
  for (const std::string& name : unknown)
    if (goes_further(recorded, with(known, name), verdict)) return {name};
  Names all = known;
  all.insert(all.end(), unknown.begin(), unknown.end());
  if (!goes_further(recorded, all, verdict)) return {};
  Names needed = unknown;
  for (const std::string& name : unknown) {
    all = known;
    const Names fewer = without(needed, name);
    all.insert(all.end(), fewer.begin(), fewer.end());
    if (goes_further(recorded, all, verdict)) needed = fewer;
  }
  return needed;
}

}  // namespace

QuirkAttribution attribute_quirks(const Subject& reference, const traces::Case& log) {
  const Recorded recorded{reference, log};
  QuirkAttribution attribution;
  Names known;
  attribution.rest = replayed(recorded, known);
  while (attribution.rest.failed()) {
    const Names more = more_quirks(recorded, known, attribution.rest);
    if (more.empty()) break;
    for (const QuirkInfo& quirk : recorded.quirks())
      if (std::ranges::find(more, quirk.name()) != more.end())
        attribution.explained.push_back({std::string(quirk.rule), quirk.name(),
                                         attribution.rest.op_index, attribution.rest.op});
    known.insert(known.end(), more.begin(), more.end());
    attribution.rest = replayed(recorded, known);
  }
  return attribution;
}

}  // namespace kvo
