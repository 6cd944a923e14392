#include "properties/conform.hpp"

namespace kvo {

traces::TraceResult<std::optional<CaseResult>> conform_next(traces::LogReader& log,
                                                            const ChooseSubjects& choose,
                                                            Profile profile,
                                                            const LockstepOptions& options) {
  const auto header = log.next_case();
  if (!header) return header.error();
  if (!*header) return std::optional<CaseResult>();
  const traces::CaseHeader& found = **header;
  CaseResult result{.name = found.name, .kind = found.kind->name()};
  const auto subjects = choose(*found.kind);
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
