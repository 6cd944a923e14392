#include "properties/run_case.hpp"

#include <array>
#include <span>
#include <utility>

namespace kvo {
namespace {

// The operations of a plan up to and including `last`, seen through the judge alone.
Script script_until(const CasePlan& plan, std::uint64_t last) {
  const std::array<const Subject*, 1> judge{plan.subjects.front()};
  Lockstep lockstep(judge, plan.setup);
  const auto ops = plan.ops();
  Labels unused;
  Script script;
  while (script.size() <= last) {
    auto op = ops->next();
    if (!op) break;
    ops->saw(*op, lockstep.step(*op, ops->expected()), unused);
    script.push_back(std::move(*op));
  }
  return script;
}

}  // namespace

CaseResult run_case(const CasePlan& plan, const ShrinkOptions& shrink) {
  CaseResult result{.name = plan.name, .kind = plan.kind->name()};
  Lockstep lockstep(plan.subjects, plan.setup, plan.options);
  const auto ops = plan.ops();
  while (lockstep.worthwhile(false)) {
    const auto op = ops->next();
    if (!op) break;
    ops->saw(*op, lockstep.step(*op, ops->expected()), result.labels);
  }
  result.operations = lockstep.operations();
  // Where the reference is judged by itself, one row is enough.
  const bool judged_itself = plan.subjects.size() > 1 && plan.subjects[0] == plan.subjects[1];
  for (const Lockstep::Participant& participant :
       std::span(lockstep.participants()).subspan(judged_itself ? 1 : 0)) {
    SubjectResult& subject = result.subjects.emplace_back(
        SubjectResult{participant.subject->name(), participant.verdict, participant.timings});
    if (participant.verdict.failed())
      subject.repro = shrink_case(plan, *participant.subject,
                                  script_until(plan, participant.verdict.op_index), shrink);
  }
  return result;
}

Verdict run_script(const CasePlan& plan, const Subject& subject, const Script& script) {
  const std::array<const Subject*, 2> pair{plan.subjects.front(), &subject};
  Lockstep lockstep(pair, plan.setup, plan.options);
  for (const Op& op : script) {
    if (!lockstep.worthwhile(false)) break;
    lockstep.step(op);
  }
  return lockstep.participants()[1].verdict;
}

Repro shrink_case(const CasePlan& plan, const Subject& subject, Script script,
                  const ShrinkOptions& shrink) {
  const auto fails = [&](const Script& candidate) {
    if (shrink.alive) shrink.alive();
    return run_script(plan, subject, candidate).failed();
  };
  // A fault that only a stream's expectation shows is the judge's too: the script stays whole.
  if (shrink.attempts > 0 && fails(script))
    script = shrink_script(std::move(script), fails, shrink.attempts,
                           simplest_queries(plan.kind->operations));
  Repro repro{.script = {.header = {.kind = plan.kind,
                                    .system = "kvoracle",
                                    .version = plan.subjects.front()->name(),
                                    .name = plan.name,
                                    .note = plan.note,
                                    .config = plan.setup.config}},
              .verdict = run_script(plan, subject, script)};
  const std::array<const Subject*, 1> judge{plan.subjects.front()};
  Lockstep lockstep(judge, plan.setup);
  for (const Op& op : script) repro.script.steps.push_back({op, lockstep.step(op)});
  return repro;
}

}  // namespace kvo
