#include "properties/campaign/kill.hpp"

#include <string>
#include <utility>

#include "properties/campaign/random_case.hpp"

namespace kvo {
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
    CaseResult result = run_case(plan, shrink);
    ++hunted.cases;
    hunted.operations += result.operations;
    SubjectResult& judged = result.subjects.back();
    if (!judged.shrunk) continue;
    hunted.kill = Kill{.law = judged.shrunk->law,
                       .cases = hunted.cases,
                       .operations = hunted.operations,
                       .result = std::move(judged)};
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
