#include "properties/hunt.hpp"

#include "properties/all_subjects.hpp"
#include "properties/random_case.hpp"

namespace kvo {

std::optional<Catch> hunt(const Subject& subject, std::uint64_t seed, std::uint64_t most_cases,
                          Profile profile) {
  Catch caught;
  for (std::uint64_t index = 0; index < most_cases; ++index) {
    const Law& law = laws()[index % laws().size()];
    const CasePlan plan =
        random_case(law, {&reference_of(*subject.kind), &subject}, seed, index, profile);
    CaseResult result = run_case(plan, {});
    ++caught.cases;
    caught.operations += result.operations;
    if (!result.subjects.back().repro) continue;
    caught.law = law.name;
    caught.repro = std::move(*result.subjects.back().repro);
    return caught;
  }
  return std::nullopt;
}

}  // namespace kvo
