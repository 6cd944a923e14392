#include "properties/campaign/kill.hpp"

#include <string>
#include <utility>

#include "properties/campaign/random_case.hpp"

namespace kvo {
namespace {

// The law that was tried may ask for more than the fault needs: the first one that the shrunk
// script breaks says more about it, and may let it be shorter.
void tell_by_first_law_broken(const Contracts& contracts, CasePlan plan, const Subject& subject,
                              const ShrinkOptions& shrink, Kill& kill) {
  Script script;
  for (const traces::Step& step : kill.repro.script.steps) script.push_back(step.op);
  const Law* const tried = plan.law;
  plan.setup.config = kill.repro.script.header.config;
  plan.setup.schedule = kill.repro.script.header.schedule.value_or(Schedule());
  for (const Law* law : contracts.laws_of(*subject.kind)) {
    if (law == tried) return;
    plan.law = law;
    if (!run_script(plan, subject, script).failed()) continue;
    plan.note = "generated; law " + std::string(law->name());
    kill.law = law->name();
    kill.repro = shrink_case(plan, subject, std::move(script), shrink);
    return;
  }
}

}  // namespace

CasePlan hunted_case(const Contracts& contracts, const Subject& subject, std::uint64_t seed,
                     std::uint64_t index, Profile profile) {
  const std::vector<const Law*> laws = contracts.laws_of(*subject.kind);
  const Law& law = *laws[index % laws.size()];
  return random_case(contracts, law, {&subject}, seed, index, profile,
                     scale_of(law, index / laws.size()));
}

Hunt hunt(const Contracts& contracts, const Subject& subject, std::uint64_t seed,
          std::uint64_t most_cases, Profile profile, const ShrinkOptions& shrink) {
  Hunt hunted;
  for (std::uint64_t index = 0; index < most_cases; ++index) {
    const CasePlan plan = hunted_case(contracts, subject, seed, index, profile);
    CaseResult result = run_case(plan, shrink);
    ++hunted.cases;
    hunted.operations += result.operations;
    SubjectResult& judged = result.subjects.back();
    if (!judged.repro) continue;
    hunted.kill = Kill{.law = plan.law->name(),
                       .cases = hunted.cases,
                       .operations = hunted.operations,
                       .repro = std::move(*judged.repro)};
    tell_by_first_law_broken(contracts, plan, subject, shrink, *hunted.kill);
    break;
  }
  return hunted;
}

std::optional<Kill> find_kill(const Contracts& contracts, const Subject& subject,
                              std::uint64_t seed, std::uint64_t most_cases, Profile profile,
                              const ShrinkOptions& shrink) {
  return hunt(contracts, subject, seed, most_cases, profile, shrink).kill;
}

}  // namespace kvo
