// The gate: a campaign that never reached a state that matters proves too little, and fails.
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

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

class EveryGenerator : public testing::TestWithParam<Profile> {};

TEST_P(EveryGenerator, ReachesEveryStateThatMatters) {
  for (const Generator* generator : all_generators()) {
    const Labels reached = reached_by(*generator, GetParam());
    EXPECT_FALSE(generator->labels(GetParam()).empty()) << generator->kind->name();
    for (const std::string_view label : missing_labels(*generator, GetParam(), reached))
      ADD_FAILURE() << generator->kind->name() << " never reached: " << label;
  }
}

INSTANTIATE_TEST_SUITE_P(Coverage, EveryGenerator,
                         testing::Values(Profile::kOriginal, Profile::kDocumented),
                         [](const auto& trial) {
                           return trial.param == Profile::kOriginal ? "original" : "documented";
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
