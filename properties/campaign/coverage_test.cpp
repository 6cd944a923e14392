// The gate: a campaign that never reached a state that matters proves too little, and fails.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/day.hpp"
#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"

namespace kvo {
namespace {

constexpr std::uint64_t kCases = 3'000;

const Law& agreement_law() {
  return *contracts().find_law("agrees_with_reference");
}

std::vector<const Generator*> all_generators() {
  std::vector<const Generator*> all;
  for (const CacheKind* kind : contracts().kinds())
    if (const Generator* generator = contracts().generator_of(*kind)) all.push_back(generator);
  return all;
}

Labels reached_by(const Generator& generator, Profile profile) {
  Labels reached;
  const std::vector<const Subject*> reference{&contracts().reference_of(*generator.kind)};
  for (std::uint64_t index = 0; index < kCases; ++index) {
    // A script runs its own reference: no subject is needed.
    const auto ops = random_case(contracts(), agreement_law(), reference, 1, index, profile,
                                 scale_of(agreement_law(), index))
                         .ops();
    Labels of_case;
    while (const auto op = ops->next()) ops->observe(*op, {}, of_case);
    // The generator's words live longer than those of the script.
    for (const std::string_view label : generator.labels(profile))
      if (of_case.contains(label)) reached.insert(label);
    if (missing_labels(generator, profile, reached).empty()) break;
  }
  return reached;
}

struct Trial {
  const Generator* generator;
  Profile profile;
};

std::vector<Trial> trials() {
  std::vector<Trial> all;
  for (const Generator* generator : all_generators())
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
      all.push_back({generator, profile});
  return all;
}

class EveryGenerator : public TestWithDay<Trial> {};

TEST_P(EveryGenerator, ReachesEveryStateThatMatters) {
  const auto [generator, profile] = GetParam();
  const Labels reached = reached_by(*generator, profile);
  EXPECT_FALSE(generator->labels(profile).empty());
  for (const std::string_view label : missing_labels(*generator, profile, reached))
    ADD_FAILURE() << "never reached: " << label;
}

INSTANTIATE_TEST_SUITE_P(
    Coverage, EveryGenerator, testing::ValuesIn(trials()), [](const auto& trial) {
      std::string name = trial.param.generator->kind->name();
      std::ranges::replace(name, '.', '_');
      return name + (trial.param.profile == Profile::kOriginal ? "_original" : "_documented");
    });

TEST(Coverage, EveryCacheKindHasAGenerator) {
  for (const CacheKind* kind : contracts().kinds())
    EXPECT_NE(contracts().generator_of(*kind), nullptr) << kind->name();
}

TEST(Coverage, AStateThatWasNotReachedIsMissed) {
  const Generator& generator = *all_generators().front();
  const Labels none;
  EXPECT_EQ(missing_labels(generator, Profile::kOriginal, none).size(),
            generator.labels(Profile::kOriginal).size());
}

}  // namespace
}  // namespace kvo
