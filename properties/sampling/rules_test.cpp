// Single rules of sampling.pipeline, in both profiles, for every subject.
#include <bit>
#include <cmath>
#include <limits>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

using List = std::vector<double>;

constexpr double kNanLogit = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

class SamplingRules : public testing::TestWithParam<const Subject*> {
 protected:
  RulesCase original() { return {*GetParam(), Profile::kOriginal}; }
  RulesCase documented() { return {*GetParam(), Profile::kDocumented}; }
};

constexpr std::array kBothProfiles{Profile::kOriginal, Profile::kDocumented};

Sample sample_of(const Shape& shape, const std::vector<float>& cells, SamplingConfig config,
                 std::vector<std::int64_t> generated = {}) {
  return {tensor_of(shape, cells), std::move(config), std::move(generated), 7};
}
Sample sample_of(const std::vector<float>& row, SamplingConfig config,
                 std::vector<std::int64_t> generated = {}) {
  return sample_of({1, 1, std::ssize(row)}, row, std::move(config), std::move(generated));
}
SamplingConfig greedy(double penalty = 1) {
  return {.temperature = 0, .repetition_penalty = penalty};
}

TEST_P(SamplingRules, TheLastPositionOfTheFirstRowCountsZF90) {
  for (const Profile profile : kBothProfiles) {
    RulesCase sampler(*GetParam(), profile);
    EXPECT_EQ(sampler.values(sample_of({1, 2, 3}, {9, 0, 0, 1, 2, 3}, greedy())).token, 2);
    EXPECT_EQ(sampler.values(sample_of({2, 2, 2}, {1, 0, 0, 1, 1, 0, 1, 0}, greedy())).token, 1);
    EXPECT_EQ(sampler.code(sample_of({1, 4}, {1, 3, 3, 2}, greedy())), "bad_shape");
    EXPECT_EQ(sampler.code(sample_of({1, 1, 1, 1}, {1}, greedy())), "bad_shape");
    EXPECT_EQ(sampler.code(Sample{make_tensor({1, 1, 4}, DType::kI32), {}, {}, 1}),
              "not_supported");
  }
}

TEST_P(SamplingRules, WithoutAPositionThereIsNoTokenZF90) {
  for (const Shape& shape : {Shape{1, 0, 3}, Shape{0, 1, 3}})
    for (const SamplingConfig& config : {SamplingConfig{}, greedy(), greedy(2)}) {
      EXPECT_EQ(original().code(sample_of(shape, {}, config)), "precondition");
      EXPECT_EQ(documented().code(sample_of(shape, {}, config)), "bad_shape");
    }
}

TEST_P(SamplingRules, AnEmptyVocabularyHasNoTokenZF91) {
  for (const SamplingConfig& config : {SamplingConfig{}, greedy()}) {
    EXPECT_EQ(original().code(sample_of({1, 1, 0}, {}, config)), "precondition");
    EXPECT_EQ(documented().code(sample_of({1, 1, 0}, {}, config)), "bad_shape");
  }
  EXPECT_EQ(original().values(sample_of({1, 1, 0}, {}, greedy(2), {0})).token, 0);
  EXPECT_EQ(documented().code(sample_of({1, 1, 0}, {}, greedy(2), {0})), "bad_shape");
  EXPECT_EQ(original().code(SampleFromDistribution{}), "precondition");
  EXPECT_EQ(documented().code(SampleFromDistribution{}), "bad_shape");
}

TEST_P(SamplingRules, GreedyTakesTheFirstOfTheLargestZF91) {
  constexpr auto kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr auto kMinus = -std::numeric_limits<float>::infinity();
  for (const Profile profile : kBothProfiles) {
    RulesCase sampler(*GetParam(), profile);
    for (const double temperature : {0.0, -1.0}) {
      const SamplingConfig config{.temperature = temperature, .top_k = 1, .top_p = 0.1};
      EXPECT_EQ(sampler.values(sample_of({1, 3, 3, 2}, config)).token, 1);
      EXPECT_EQ(sampler.values(sample_of({1, kNan, 2, 0}, config)).token, 2);
      EXPECT_EQ(sampler.values(sample_of({kMinus, kMinus}, config)).token, 0);
      EXPECT_EQ(sampler.values(sample_of({-0.0F, 0.0F}, config)).token, 0);
    }
    EXPECT_EQ(sampler.values(sample_of({5}, greedy())).token, 0);
  }
  EXPECT_EQ(original().values(sample_of({kNan, 1, 2, 0}, greedy())).token, 0);
  EXPECT_EQ(documented().values(sample_of({kNan, 1, 2, 0}, greedy())).token, 2);
}

TEST_P(SamplingRules, WithAPenaltyNanNeverWinsZF92) {
  constexpr auto kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Profile profile : kBothProfiles) {
    RulesCase sampler(*GetParam(), profile);
    EXPECT_EQ(sampler.values(sample_of({kNan, 1, 2, 0}, greedy(2))).token, 2);
    EXPECT_EQ(sampler.values(sample_of({kNan, kNan}, greedy(2))).token, 0);
    EXPECT_EQ(sampler.values(Argmax{{kNanLogit, 1, 2}}).token, 2);
    EXPECT_EQ(sampler.values(Argmax{{0, kInfinite, kInfinite}}).token, 1);
    EXPECT_EQ(sampler.values(Argmax{{}}).token, 0);
    EXPECT_EQ(sampler.values(Argmax{{-kInfinite, -kInfinite}}).token, 0);
  }
}

TEST_P(SamplingRules, PenaltiesCompoundAndHaveNoGuardZF93) {
  RulesCase sampler = documented();
  const auto after = [&](List logits, std::vector<std::int64_t> ids, double penalty) {
    return sampler.values(ApplyRepetitionPenalty{std::move(logits), std::move(ids), penalty})
        .logits;
  };
  EXPECT_EQ(after({2, -2, 0, 8}, {3, 3, 3}, 2), List({2, -2, 0, 1}));
  EXPECT_EQ(after({2, -2, 0, 8}, {0, 1, 2, 3, -1, 4, 99}, 2), List({1, -4, 0, 4}));
  EXPECT_EQ(after({2, -2, 0, 8}, {0, 0}, -2), List({2, -2, 0, 8}));
  EXPECT_EQ(after({-kInfinite, kInfinite, 1}, {0, 1, 2}, 2), List({-kInfinite, kInfinite, 0.5}));
  EXPECT_EQ(after({3, -3}, {0, 1}, 0), List({kInfinite, -0.0}));
  // In the whole step a penalty of 0 or less is off.
  EXPECT_EQ(sampler.values(sample_of({4, 3, 1}, greedy(0), {0})).token, 0);
  EXPECT_EQ(sampler.values(sample_of({4, 3, 1}, greedy(-2), {0})).token, 0);
  EXPECT_EQ(sampler.values(sample_of({4, 3, 1}, greedy(2), {0})).token, 1);
  EXPECT_EQ(sampler.values(sample_of({4, 3, 1}, greedy(2), {0, 1, 1, 1})).token, 0);
  EXPECT_EQ(sampler.values(sample_of({-4, -3, -1}, greedy(8), {2})).token, 1);
}

TEST_P(SamplingRules, TemperatureDividesZF94) {
  RulesCase sampler = original();
  const List logits{1, -2, 0.5, 3, -kInfinite};
  EXPECT_EQ(sampler.values(ApplyTemperature{logits, 2}).logits,
            List({0.5, -1, 0.25, 1.5, -kInfinite}));
  for (const double none : {0.0, -1.0})
    EXPECT_EQ(sampler.values(ApplyTemperature{logits, none}).logits, logits);
  const List undefined = sampler.values(ApplyTemperature{{kInfinite}, kInfinite}).logits;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(undefined.front()),
            std::bit_cast<std::uint64_t>(kNanLogit))
      << "a NaN has one form, whatever the processor makes";
}

TEST_P(SamplingRules, WhatEqualsTheKthLargestStaysZF95) {
  RulesCase sampler = documented();
  const auto after = [&](List logits, std::int64_t k) {
    return sampler.values(ApplyTopK{std::move(logits), k}).logits;
  };
  const List logits{1, 5, 3, 5, 2, -1};
  for (const std::int64_t all : {-1, 0, 6, 7}) EXPECT_EQ(after(logits, all), logits);
  EXPECT_EQ(after(logits, 1), List({-kInfinite, 5, -kInfinite, 5, -kInfinite, -kInfinite}));
  EXPECT_EQ(after(logits, 3), List({-kInfinite, 5, 3, 5, -kInfinite, -kInfinite}));
  EXPECT_EQ(after({2, 2, 2}, 1), List({2, 2, 2}));
  EXPECT_EQ(after({-kInfinite, 4, -kInfinite, 1}, 3), List({-kInfinite, 4, -kInfinite, 1}));
  EXPECT_EQ(after({kNanLogit, 4, 1}, 1), List({-kInfinite, 4, -kInfinite}));
  EXPECT_EQ(after({kNanLogit, 4, -kInfinite}, 2), List({-kInfinite, 4, -kInfinite}));
  EXPECT_TRUE(std::isnan(after({kNanLogit, 4, kNanLogit}, 2).front()));
}

TEST_P(SamplingRules, EqualProbabilitiesStayInOrderAtEverySizeZF96) {
  for (const Profile profile : kBothProfiles) {
    RulesCase sampler(*GetParam(), profile);
    for (const std::size_t size : {2U, 12U, 13U, 64U, 65U, 256U, 1024U}) {
      const List left = sampler.values(ApplyTopP{List(size, 3), 0.5}).logits;
      double sum = 0;
      for (const double logit : left) {
        ASSERT_EQ(logit, sum < 0.5 ? 3 : -kInfinite) << sum << " of " << size;
        sum += 1 / static_cast<double>(size);
      }
    }
  }
}

TEST_P(SamplingRules, TheMostProbableThatReachPStayZF96) {
  RulesCase sampler = documented();
  const auto after = [&](List logits, double p) {
    return sampler.values(ApplyTopP{std::move(logits), p}).logits;
  };
  for (const double all : {-1.0, 0.0, 1.0, 2.0}) EXPECT_EQ(after({1, 2}, all), List({1, 2}));
  EXPECT_EQ(after({1, 2, 3, 4}, 0.01), List({-kInfinite, -kInfinite, -kInfinite, 4}));
  EXPECT_EQ(after({1, 2, 3, 4}, 0.65), List({-kInfinite, -kInfinite, 3, 4}));
  EXPECT_EQ(after({1, 1, 5, 1}, 0.99), List({1, 1, 5, 1}));
  EXPECT_EQ(after({-kInfinite, -kInfinite}, 0.5), List({-kInfinite, -kInfinite}));
}

TEST_P(SamplingRules, ProbabilitiesSumToOneZF97) {
  RulesCase sampler = original();
  const auto of = [&](List logits) { return sampler.values(Softmax{std::move(logits)}).probs; };
  EXPECT_EQ(of({}), List());
  EXPECT_EQ(of({0, 0, 0, 0}), List(4, 0.25));
  EXPECT_EQ(of({-kInfinite, -kInfinite}), List(2, 0.5));
  EXPECT_EQ(of({-kInfinite, 0}), List({0, 1}));
  EXPECT_EQ(of({3e300, -3e300}), List({1, 0}));
  const List broken = of({0, kNanLogit});
  EXPECT_EQ(broken.front(), 1);
  EXPECT_TRUE(std::isnan(broken.back()));
  EXPECT_TRUE(std::isnan(of({kInfinite, 0}).front()));
  EXPECT_EQ(of({kInfinite, 0}).back(), 0);
}

TEST_P(SamplingRules, TheSeedDecidesTheDrawZF98) {
  RulesCase sampler = documented();
  EXPECT_EQ(sampler.values(SampleFromDistribution{{-kInfinite, 0, -kInfinite}, 1}).token, 1);
  EXPECT_EQ(sampler.values(SampleFromDistribution{{kNanLogit, 1, 2}, 1}).token, 2);
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

TEST_P(SamplingRules, TheDefaultDrawsFromAllZF99) {
  const auto config = original().values(DefaultSamplingConfig{});
  EXPECT_EQ(config.temperature, 1);
  EXPECT_EQ(config.top_k, 0);
  EXPECT_EQ(config.top_p, 1);
  EXPECT_EQ(config.repetition_penalty, 1);
  EXPECT_EQ(config.max_new_tokens, 256);
  EXPECT_TRUE(config.stop_token_ids.empty() && config.stop_strings.empty());
}

INSTANTIATE_TEST_SUITE_P(Every, SamplingRules,
                         testing::ValuesIn(contracts().subjects_of(pipeline_kind())), variant_name);

}  // namespace
}  // namespace kvo::sampling
