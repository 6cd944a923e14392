#include "properties/runner/law.hpp"

#include <algorithm>
#include <utility>

#include "properties/runner/run_case.hpp"

namespace kvo {
namespace {

std::unique_ptr<Oracle> history_of_lookups(const CasePlan& plan) {
  if (!plan.lookup_figures || plan.history == nullptr) return nullptr;
  auto history = plan.history(*plan.kind, plan.setup);
  if (history != nullptr && !history->keep_lookups()) history.reset();
  return history;
}

}  // namespace

std::vector<ScriptLine> lines_of(const std::vector<Op>& script, const Verdict& verdict) {
  const std::size_t end = std::min<std::size_t>(
      script.size(), std::max<std::size_t>(verdict.op_index + 1, kMostScriptLines));
  const std::size_t begin = end - std::min(end, kMostScriptLines);
  std::vector<ScriptLine> lines;
  if (begin > 0) lines.push_back({.text = "(" + std::to_string(begin) + " operations before)"});
  for (std::size_t i = begin; i < end; ++i)
    lines.push_back(
        {.mark = i == verdict.op_index ? ">" : "", .op_index = i, .text = op_text(script[i])});
  return lines;
}

std::vector<ScriptLine> Law::shown(const CasePlan& /*plan*/, const Subject& /*subject*/,
                                   const std::vector<Op>& script, const Verdict& verdict) const {
  return lines_of(script, verdict);
}

Judgement judgement_of(const Lockstep::Participant& participant) {
  return {.subject = participant.subject,
          .verdict = participant.verdict,
          .evidence = participant.evidence,
          .timings = participant.timings};
}

LawRun LockstepLaw::run(const CasePlan& plan, const Subject* baseline,
                        std::span<const Subject* const> subjects, OpStream& ops) const {
  LockstepOptions options = plan.options;
  if (terms_.oracle != nullptr) options.oracle = terms_.oracle;
  options.compare = terms_.compare;
  Lockstep lockstep(baseline, subjects, plan.setup, options);
  LawRun result;
  constexpr std::size_t kBatch = 64;
  const bool batches = std::ranges::any_of(subjects, &Subject::takes_batches);
  const auto history = history_of_lookups(plan);
  std::size_t expected = 0;  // operations that subjects were told of and that were not run yet
  while (lockstep.worthwhile()) {
    if (batches && expected == 0) {
      const auto known = ops.ahead(kBatch);
      lockstep.expect(known);
      expected = known.size();
    }
    expected -= expected > 0 ? 1 : 0;
    const auto op = ops.next();
    if (!op) break;
    const Observation& seen = lockstep.step(*op, ops.expected());
    if (history) (void)history->check(*op, seen);
    ops.observe(*op, seen, result.labels);
  }
  lockstep.end();
  result.operations = lockstep.operations();
  result.figures = ops.figures();
  if (history)
    for (Figure& figure : lookup_figures(history->lookups(), *plan.lookup_figures))
      result.figures.push_back(std::move(figure));
  if (baseline != nullptr && std::ranges::find(subjects, baseline) == subjects.end())
    result.judgements.push_back(judgement_of(*lockstep.baseline()));
  for (const Lockstep::Participant& participant : lockstep.participants()) {
    Judgement& judgement = result.judgements.emplace_back(judgement_of(participant));
    // Without a baseline the first one leads: the others are compared with it.
    const bool leads = baseline == nullptr && subjects.size() > 1 &&
                       &participant == &lockstep.participants().front();
    const Evidence& evidence = judgement.evidence;
    const bool idle = evidence.rows_judged == 0 && (!options.compare || evidence.compared == 0);
    if (!leads && idle && judgement.verdict.outcome == Outcome::kAgrees)
      judgement.verdict = {.outcome = Outcome::kVacuous, .reason = "nothing was judged"};
  }
  return result;
}

const Law& agreement() {
  static const LockstepLaw kLaw("agreement", "what is observed is what the baseline observes", 0,
                                {});
  return kLaw;
}

}  // namespace kvo
