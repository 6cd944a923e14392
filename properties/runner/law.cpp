#include "properties/runner/law.hpp"

#include <algorithm>
#include <utility>

#include "properties/runner/run_case.hpp"

namespace kvo {
namespace {

// What this law looks for, of all the evidence.
bool has_evidence(const Evidence& evidence, const LockstepOptions& options) {
  if (!options.compare) return evidence.judged > 0;
  return evidence.compared > 0 || evidence.judged > 0;
}

}  // namespace

Judgement judgement_of(const Lockstep::Participant& participant) {
  return {.subject = participant.subject,
          .verdict = participant.verdict,
          .evidence = participant.evidence,
          .timings = participant.timings};
}

bool LockstepLaw::applies_to(const CacheKind& kind) const {
  return terms_.oracle == nullptr || terms_.oracle(kind, {}) != nullptr;
}

bool LockstepLaw::judges_reference() const {
  return terms_.oracle != nullptr;
}

bool LockstepLaw::lives_long() const {
  return terms_.oracle == nullptr;
}

LawRun LockstepLaw::run(const CasePlan& plan, const Subject* baseline,
                        std::span<const Subject* const> subjects, OpStream& ops) const {
  LockstepOptions options = plan.options;
  if (terms_.oracle != nullptr) options.oracle = terms_.oracle;
  options.compare = terms_.compare;
  Lockstep lockstep(baseline, subjects, plan.setup, options);
  LawRun result;
  while (lockstep.worthwhile()) {
    const auto op = ops.next();
    if (!op) break;
    ops.saw(*op, lockstep.step(*op, ops.expected()), result.labels);
  }
  result.operations = lockstep.operations();
  result.figures = ops.figures();
  if (baseline != nullptr && std::ranges::find(subjects, baseline) == subjects.end())
    result.judgements.push_back(judgement_of(*lockstep.baseline()));
  for (const Lockstep::Participant& participant : lockstep.participants()) {
    Judgement& judgement = result.judgements.emplace_back(judgement_of(participant));
    // Without a baseline the first one leads: the others are compared with it.
    const bool leads = baseline == nullptr && subjects.size() > 1 &&
                       &participant == &lockstep.participants().front();
    if (!leads && judgement.verdict.outcome == Outcome::kAgrees &&
        !has_evidence(judgement.evidence, options))
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
