#include "properties/campaign/random_case.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "reference/contract/values/check.hpp"

namespace kvo {

CasePlan random_case(const Contracts& contracts, const Law& law,
                     const std::vector<const Subject*>& subjects, std::uint64_t seed,
                     std::uint64_t index, Profile profile) {
  const CacheKind& kind = *subjects.front()->kind;
  const Generator* generator = contracts.generator_of(kind);
  KVO_CHECK(generator != nullptr);
  const std::uint64_t own_seed = case_seed(seed, index);
  // Short scripts are quick and shrink well, long ones reach deep states: both are tried.
  const std::uint64_t operations = 1 + Draw(~own_seed).below(law.most_operations());
  GeneratedCase drawn = generator->make(own_seed, profile);
  drawn.setup.schedule = schedule_of(own_seed);
  CasePlan plan{.kind = &kind,
                .name = "seed" + std::to_string(seed) + "-case" + std::to_string(index),
                .note = "generated; law " + std::string(law.name()),
                .setup = drawn.setup,
                .law = &law,
                .baseline = &contracts.reference_of(kind),
                .reference_of = contracts.reference_finder()};
  for (const Subject* subject : subjects)
    if (subject != plan.baseline || law.judges_reference()) plan.subjects.push_back(subject);
  plan.ops = [generator, own_seed, profile, operations] {
    return std::make_unique<FirstOps>(generator->make(own_seed, profile).ops, operations);
  };
  return plan;
}

std::vector<std::string_view> missing_labels(const Generator& generator, Profile profile,
                                             const Labels& reached) {
  std::vector<std::string_view> missing;
  for (const std::string_view label : generator.labels(profile))
    if (!reached.contains(label)) missing.push_back(label);
  return missing;
}

}  // namespace kvo
