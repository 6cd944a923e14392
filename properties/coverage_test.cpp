// The gate: a campaign that never reached a state that matters proves too little, and fails.
#include <string>

#include <gtest/gtest.h>

#include "properties/all_subjects.hpp"
#include "properties/random_case.hpp"

namespace kvo {
namespace {

constexpr std::uint64_t kCases = 3'000;

Labels reached_by(const Generator& generator, Profile profile) {
  Labels reached;
  const std::vector<const Subject*> judge{&reference_of(*generator.kind)};
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const CaseResult result =
        run_case(random_case(laws().front(), judge, 1, index, profile), {.attempts = 0});
    reached.insert(result.labels.begin(), result.labels.end());
    if (missing_labels(generator, profile, reached).empty()) break;
  }
  return reached;
}

class EveryGenerator : public testing::TestWithParam<Profile> {};

TEST_P(EveryGenerator, ReachesEveryStateThatMatters) {
  for (const Generator& generator : generators()) {
    const Labels reached = reached_by(generator, GetParam());
    EXPECT_FALSE(generator.labels(GetParam()).empty()) << generator.kind->name();
    for (const std::string_view label : missing_labels(generator, GetParam(), reached))
      ADD_FAILURE() << generator.kind->name() << " never reached: " << label;
  }
}

INSTANTIATE_TEST_SUITE_P(Coverage, EveryGenerator,
                         testing::Values(Profile::kOriginal, Profile::kDocumented),
                         [](const auto& trial) {
                           return trial.param == Profile::kOriginal ? "original" : "documented";
                         });

TEST(Coverage, EveryCacheKindHasAGenerator) {
  for (const CacheKind* kind : all_kinds()) EXPECT_NE(generator_of(*kind), nullptr) << kind->name();
}

TEST(Coverage, AStateThatWasNotReachedIsMissed) {
  const Generator& generator = generators().front();
  const Labels none;
  EXPECT_EQ(missing_labels(generator, Profile::kOriginal, none).size(),
            generator.labels(Profile::kOriginal).size());
}

}  // namespace
}  // namespace kvo
