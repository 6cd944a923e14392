// Draws and NaNs of sampling.pipeline. The other rules: reference/sampling/cases.
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

class SamplingRules : public testing::TestWithParam<const Subject*> {};

TEST_P(SamplingRules, ANanHasOneFormOnEveryProcessorZF94) {
  RulesCase sampler(*GetParam(), Profile::kOriginal);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(std::bit_cast<std::uint64_t>(
                sampler.values(ApplyTemperature{{kInfinite}, kInfinite}).logits.front()),
            std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN()));
}

TEST_P(SamplingRules, DrawsFollowTheProbabilitiesZF98) {
  RulesCase sampler(*GetParam(), Profile::kDocumented);
  std::array<int, 3> counts{};
  constexpr int kDraws = 2'000;
  for (std::int64_t seed = 0; seed < kDraws; ++seed) {
    const SampleFromDistribution op{{0, std::log(2.0), 0}, seed};
    const std::int64_t token = sampler.values(op).token;
    ++counts.at(static_cast<std::size_t>(token));
    EXPECT_EQ(sampler.values(op).token, token);
  }
  EXPECT_NEAR(counts[0], 0.25 * kDraws, 100);
  EXPECT_NEAR(counts[1], 0.5 * kDraws, 100);
}

INSTANTIATE_TEST_SUITE_P(Every, SamplingRules,
                         testing::ValuesIn(contracts().subjects_of(pipeline_kind())), variant_name);

}  // namespace
}  // namespace kvo::sampling
