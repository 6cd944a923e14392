#include "properties/conform.hpp"

#include <utility>

#include "properties/all_subjects.hpp"

namespace kvo {
namespace {

// What the subjects observe is judged by the reference, what it observes by the log's quirks.
CaseResult conform_documented(const traces::Case& recorded, std::vector<const Subject*> subjects,
                              const LockstepOptions& options) {
  const CacheKind& kind = *recorded.header.kind;
  CaseResult result{.name = recorded.header.name, .kind = kind.name()};
  const Subject& reference = reference_of(kind);
  const bool shown = !subjects.empty() && subjects.front() == &reference;
  if (!shown) subjects.insert(subjects.begin(), &reference);
  Explanation explanation = explain(recorded);
  Lockstep lockstep(subjects, {.profile = Profile::kDocumented, .config = recorded.header.config},
                    options);
  for (const traces::Step& step : recorded.steps) lockstep.step(step.op);
  result.operations = lockstep.operations();
  for (const Lockstep::Participant& participant : lockstep.participants()) {
    const bool judge = participant.subject == &reference;
    if (judge && !shown && !explanation.rest.failed()) continue;
    result.subjects.push_back({participant.subject->name(),
                               judge ? explanation.rest : participant.verdict,
                               participant.timings});
  }
  result.partings = std::move(explanation.partings);
  return result;
}

traces::TraceResult<traces::Case> rest_of_case(traces::LogReader& log, traces::CaseHeader header) {
  traces::Case read{std::move(header)};
  while (true) {
    auto step = log.next_step();
    if (!step) return step.error();
    if (!*step) return read;
    read.steps.push_back(std::move(**step));
  }
}

}  // namespace

traces::TraceResult<std::optional<CaseResult>> conform_next(traces::LogReader& log,
                                                            const ChooseSubjects& choose,
                                                            Profile profile,
                                                            const LockstepOptions& options) {
  const auto header = log.next_case();
  if (!header) return header.error();
  if (!*header) return std::optional<CaseResult>();
  const traces::CaseHeader& found = **header;
  const auto subjects = choose(*found.kind);
  if (profile == Profile::kDocumented && !found.kind->quirks.empty()) {
    const auto recorded = rest_of_case(log, found);
    if (!recorded) return recorded.error();
    return std::optional<CaseResult>(conform_documented(*recorded, subjects, options));
  }
  CaseResult result{.name = found.name, .kind = found.kind->name()};
  Lockstep lockstep(subjects, {.profile = profile, .config = found.config}, options);
  while (true) {
    const auto step = log.next_step();
    if (!step) return step.error();
    if (!*step) break;
    const auto& recorded = (*step)->recorded;
    if (lockstep.worthwhile(true)) lockstep.step((*step)->op, recorded ? &*recorded : nullptr);
    if (recorded && recorded->failed_with(Code::kPrecondition)) break;
  }
  result.operations = lockstep.operations();
  for (const Lockstep::Participant& participant : lockstep.participants())
    result.subjects.push_back(
        {participant.subject->name(), participant.verdict, participant.timings});
  return std::optional<CaseResult>(std::move(result));
}

}  // namespace kvo
