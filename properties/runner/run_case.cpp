#include "properties/runner/run_case.hpp"

#include <array>
#include <span>
#include <utility>

#include "reference/contract/describe/shrink.hpp"

namespace kvo {
namespace {

using One = std::array<const Subject*, 1>;

// What the baseline observes of a script; a subject without one is its own.
std::vector<traces::Step> recorded(const CasePlan& plan, const Subject& subject,
                                   const Script& script) {
  const One leading{plan.baseline != nullptr ? plan.baseline : &subject};
  Lockstep lockstep(nullptr, leading, plan.setup);
  std::vector<traces::Step> steps;
  for (const Op& op : script) steps.push_back({op, lockstep.step(op)});
  return steps;
}

// The simplest config with which the script still fails.
void shrink_config(CasePlan& plan, const std::function<bool()>& fails) {
  while (plan.setup.config && shrink_record(plan.setup.config, [&](Record simpler) {
           const Record before = std::exchange(plan.setup.config, std::move(simpler));
           if (fails()) return true;
           plan.setup.config = before;
           return false;
         })) {
  }
}

}  // namespace

Script script_until(const CasePlan& plan, std::uint64_t last) {
  const One leading{plan.baseline != nullptr ? plan.baseline : plan.subjects.front()};
  Lockstep lockstep(nullptr, leading, plan.setup);
  const auto ops = plan.ops();
  Labels unused;
  Script script;
  while (script.size() <= last) {
    auto op = ops->next();
    if (!op) break;
    script.push_back(*op);
    if (script.size() <= last) ops->saw(*op, lockstep.step(*op, ops->expected()), unused);
  }
  return script;
}

CaseResult run_case(const CasePlan& plan, const ShrinkOptions& shrink) {
  const auto ops = plan.ops();
  LawRun run = plan.law->run(plan, plan.baseline, plan.subjects, *ops);
  CaseResult result{.name = plan.name,
                    .kind = plan.kind->name(),
                    .law = plan.law->name(),
                    .operations = run.operations,
                    .labels = std::move(run.labels)};
  for (Judgement& judgement : run.judgements) {
    SubjectResult& subject = result.subjects.emplace_back(
        SubjectResult{judgement.subject->name(), judgement.verdict, judgement.evidence,
                      std::move(judgement.timings)});
    if (!judgement.verdict.failed()) continue;
    const std::uint64_t last =
        plan.law->needs_whole_script() ? run.operations - 1 : judgement.verdict.op_index;
    subject.repro = shrink_case(plan, *judgement.subject, script_until(plan, last), shrink);
  }
  return result;
}

Verdict run_script(const CasePlan& plan, const Subject& subject, const Script& script) {
  // A baseline that fails is judged without anybody to agree with.
  const bool itself = &subject == plan.baseline && !plan.law->judges_reference();
  ListedOps ops(script);
  const LawRun run = plan.law->run(plan, itself ? nullptr : plan.baseline, One{&subject}, ops);
  return run.judgements.back().verdict;
}

Repro shrink_case(const CasePlan& plan, const Subject& subject, Script script,
                  const ShrinkOptions& shrink) {
  CasePlan simpler = plan;
  std::uint64_t left = shrink.attempts;
  const auto fails = [&](const Script& candidate) {
    return shrink.judge(simpler, subject, candidate).failed();
  };
  // A fault that only a stream's expectation shows is the baseline's too: the script stays whole.
  if (shrink.attempts > 0 && fails(script)) {
    script = shrink_script(std::move(script), fails, shrink.attempts,
                           simplest_queries(plan.kind->operations));
    shrink_config(simpler, [&] { return left > 0 && left-- > 0 && fails(script); });
  }
  return {
      .script = {.header = {.kind = plan.kind,
                            .system = "kvoracle",
                            .version = (plan.baseline != nullptr ? *plan.baseline : subject).name(),
                            .name = plan.name,
                            .note = plan.note,
                            .profile = plan.setup.profile,
                            .law = std::string(plan.law->name()),
                            .config = simpler.setup.config},
                 .steps = recorded(simpler, subject, script)},
      .verdict = shrink.judge(simpler, subject, script)};
}

}  // namespace kvo
