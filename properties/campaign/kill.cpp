#include "properties/campaign/kill.hpp"

#include "properties/campaign/random_case.hpp"

namespace kvo {
namespace {

// The law that was tried may ask for more than the fault needs: the first one that the script
// breaks by itself says more about it.
std::string_view first_law_broken(const Contracts& contracts, CasePlan plan, const Subject& subject,
                                  const Repro& repro) {
  Script script;
  for (const traces::Step& step : repro.script.steps) script.push_back(step.op);
  const Law* tried = plan.law;
  plan.setup.config = repro.script.header.config;
  plan.setup.schedule = repro.script.header.schedule.value_or(Schedule());
  for (const Law* law : contracts.laws_of(*subject.kind)) {
    plan.law = law;
    if (law == tried || run_script(plan, subject, script).failed()) return law->name();
  }
  return tried->name();
}

}  // namespace

Hunt hunt(const Contracts& contracts, const Subject& subject, std::uint64_t seed,
          std::uint64_t most_cases, Profile profile) {
  const std::vector<const Law*> laws = contracts.laws_of(*subject.kind);
  Hunt hunted;
  for (std::uint64_t index = 0; index < most_cases; ++index) {
    const Law& law = *laws[index % laws.size()];
    const CasePlan plan = random_case(contracts, law, {&subject}, seed, index, profile,
                                      scale_of(law, index / laws.size()));
    CaseResult result = run_case(plan, {});
    ++hunted.cases;
    hunted.operations += result.operations;
    SubjectResult& judged = result.subjects.back();
    if (!judged.repro) continue;
    hunted.kill = Kill{.law = first_law_broken(contracts, plan, subject, *judged.repro),
                       .cases = hunted.cases,
                       .operations = hunted.operations,
                       .repro = std::move(*judged.repro)};
    break;
  }
  return hunted;
}

std::optional<Kill> find_kill(const Contracts& contracts, const Subject& subject,
                              std::uint64_t seed, std::uint64_t most_cases, Profile profile) {
  return hunt(contracts, subject, seed, most_cases, profile).kill;
}

}  // namespace kvo
