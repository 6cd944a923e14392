#include "properties/hunt.hpp"

#include "properties/all_subjects.hpp"
#include "properties/random_case.hpp"

namespace kvo {
namespace {

// The law that was tried may ask for more than the fault needs: the first one that the script
// breaks by itself says more about it.
std::string_view first_law_broken(CasePlan plan, const Subject& subject, const traces::Case& repro,
                                  const Law& tried) {
  Script script;
  for (const traces::Step& step : repro.steps) script.push_back(step.op);
  for (const Law* law : laws_of(*subject.kind)) {
    plan.options = law->options();
    if (law == &tried || run_script(plan, subject, script).failed()) return law->name;
  }
  return tried.name;
}

}  // namespace

std::optional<Catch> hunt(const Subject& subject, std::uint64_t seed, std::uint64_t most_cases,
                          Profile profile) {
  const std::vector<const Law*> laws = laws_of(*subject.kind);
  Catch caught;
  for (std::uint64_t index = 0; index < most_cases; ++index) {
    const Law& law = *laws[index % laws.size()];
    const CasePlan plan =
        random_case(law, {&reference_of(*subject.kind), &subject}, seed, index, profile);
    CaseResult result = run_case(plan, {});
    ++caught.cases;
    caught.operations += result.operations;
    if (!result.subjects.back().repro) continue;
    caught.law = first_law_broken(plan, subject, result.subjects.back().repro->script, law);
    caught.repro = std::move(*result.subjects.back().repro);
    return caught;
  }
  return std::nullopt;
}

}  // namespace kvo
