#include "properties/campaign/kill.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "properties/campaign/conform.hpp"
#include "properties/campaign/quirk_attribution.hpp"
#include "properties/campaign/random_case.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo {
namespace {

SoleJudge judge_of(const Law& law) {
  if (law.name() == "agrees_with_reference") return SoleJudge::kLockstep;
  return law.name() == "recompute_equivalence" ? SoleJudge::kOracle : SoleJudge::kLaw;
}

void judge_by_cases(const std::vector<traces::Case>& cases, const Subject& subject, Profile profile,
                    bool quirks_may_explain, JudgedAlone& judged) {
  for (const traces::Case& recorded : cases) {
    const traces::CaseHeader& header = recorded.header;
    if (header.kind != subject.kind || header.profile.value_or(profile) != profile) continue;
    const Verdict verdict = quirks_may_explain && profile == Profile::kDocumented
                                ? attribute_quirks(subject, recorded).rest
                                : run_recorded(recorded, subject, setup_of(header, profile));
    ++judged.cases;
    judged.operations += recorded.steps.size();
    if (!verdict.failed()) continue;
    judged.caught_by = header.name;
    judged.difference = traces::excerpt(verdict.text());
    return;
  }
}

}  // namespace

CasePlan hunted_case(const Contracts& contracts, const Subject& subject, std::uint64_t seed,
                     std::uint64_t index, Profile profile) {
  const std::vector<const Law*> laws = contracts.laws_of(*subject.kind);
  const Law& law = *laws[index % laws.size()];
  CasePlan plan = random_case(contracts, law, {&subject}, seed, index, profile,
                              scale_of(law, index / laws.size()));
  plan.simpler_laws = laws;
  return plan;
}

Hunt hunt(const Contracts& contracts, const Subject& subject, std::uint64_t seed,
          std::uint64_t most_cases, Profile profile, const ShrinkOptions& shrink) {
  Hunt hunted;
  for (std::uint64_t index = 0; index < most_cases; ++index) {
    const CasePlan plan = hunted_case(contracts, subject, seed, index, profile);
    const CaseResult result = run_case(plan, shrink);
    ++hunted.cases;
    hunted.operations += result.operations;
    const SubjectResult& judged = result.subjects.back();
    if (!judged.shrunk) continue;
    hunted.kill = Kill{.law = judged.shrunk->law,
                       .cases = hunted.cases,
                       .operations = hunted.operations,
                       .result = judged};
    break;
  }
  return hunted;
}

std::optional<Kill> find_kill(const Contracts& contracts, const Subject& subject,
                              std::uint64_t seed, std::uint64_t most_cases, Profile profile,
                              const ShrinkOptions& shrink) {
  return hunt(contracts, subject, seed, most_cases, profile, shrink).kill;
}

JudgedAlone judge_alone(const Contracts& contracts, const Subject& subject, SoleJudge judge,
                        const JudgeTerms& terms) {
  JudgedAlone judged{.mutant = subject.name(), .profile = terms.profile, .judge = judge};
  if (judge == SoleJudge::kRecorded)
    judge_by_cases(terms.recorded, subject, terms.profile, true, judged);
  if (judge == SoleJudge::kRule) judge_by_cases(terms.rules, subject, terms.profile, false, judged);
  const Subject twin = subject;
  std::vector<const Law*> laws = contracts.laws_of(*subject.kind);
  std::erase_if(laws,
                [&](const Law* law) { return judge_of(*law) != judge || !law->concerns(subject); });
  for (std::uint64_t index = 0; index < terms.most_cases * laws.size(); ++index) {
    const Law& law = *laws[index % laws.size()];
    CasePlan plan = random_case(contracts, law, {&subject}, terms.seed, index, terms.profile,
                                scale_of(law, index / laws.size()));
    if (judge != SoleJudge::kLockstep) plan.baseline = &twin;
    const auto ops = plan.ops();
    const LawRun run = law.run(plan, plan.baseline, plan.subjects, *ops);
    ++judged.cases;
    judged.operations += run.operations;
    const auto failed = std::ranges::find_if(
        run.judgements, [](const Judgement& each) { return each.verdict.failed(); });
    if (failed == run.judgements.end()) continue;
    judged.caught_by = std::string(law.name());
    judged.difference = traces::excerpt(failed->verdict.text());
    break;
  }
  return judged;
}

}  // namespace kvo
