// Whether growth is told from noise: against worked examples, and over a thousand simulated gates.
#include "tools/reports/paired_ratios.hpp"

#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::tools {
namespace {

using testing::ElementsAre;

TEST(SignedRank, IsThatOfAWorkedExample) {
  // Ranks 1 to 8; 1 + 2 below 0, so 33 of 36 above: (33 - 18 - 0.5) / sqrt(51) = 2.030.
  const std::vector<double> differences{-1, -2, 3, 4, 5, 6, 7, 8};
  EXPECT_NEAR(signed_rank_probability(differences), 0.0212, 1e-4);
}

TEST(SignedRank, SharesTheRanksOfTies) {
  // |1| twice: ranks 1.5; above: 1.5 + 3 of 6; mean 3, variance 3.5 - 6 / 48.
  const std::vector<double> differences{1, -1, 2};
  EXPECT_NEAR(signed_rank_probability(differences),
              std::erfc((4.5 - 3 - 0.5) / std::sqrt(3.375) / std::sqrt(2.0)) / 2, 1e-12);
}

TEST(SignedRank, SaysNothingOfNothing) {
  EXPECT_EQ(signed_rank_probability({}), 1);
  EXPECT_EQ(signed_rank_probability(std::vector<double>{0, 0}), 1);
  const std::vector<double> below{-1, -2, -3, -4, -5, -6};
  EXPECT_GT(signed_rank_probability(below), 0.95);
}

TEST(Median, IsInTheMiddle) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
}

TEST(TooSmall, StopsAtTheFirstThatIsNot) {
  const std::vector<std::optional<double>> probabilities{0.02, 0.001, std::nullopt, 0.5, 0.012};
  // 0.05 / 4, / 3, / 2: 0.001 and 0.012 are below, 0.02 is, too.
  EXPECT_THAT(too_small(probabilities, 0.05), ElementsAre(true, true, false, false, true));
  EXPECT_THAT(too_small(probabilities, 0.02), ElementsAre(false, true, false, false, false));
}

TEST(Ratios, AreInTheMiddleWhateverOneOfThemIs) {
  Ratios ratios;
  EXPECT_FALSE(ratios.middle());
  for (const double ratio : {0.5, 0.52, 24.4}) ratios.add(ratio);
  EXPECT_NEAR(ratios.middle()->median, 0.52, 0.005);
  EXPECT_FALSE(ratios.middle()->low) << "of too few there is no interval";
  for (const double ratio : {0.48, 0.51, 0.53}) ratios.add(ratio);
  EXPECT_NEAR(ratios.middle()->median, std::sqrt(0.51 * 0.52), 0.005);
  EXPECT_NEAR(*ratios.middle()->low, 0.48, 0.005);
  EXPECT_NEAR(*ratios.middle()->high, 24.4, 0.2);
}

// Of intervals with 95 % nineteen of twenty hold the true median.
TEST(Ratios, HoldTheMedianInTheirInterval) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> ratio(0, 0.3);
  int held = 0;
  constexpr int kTimes = 1'000;
  for (int i = 0; i < kTimes; ++i) {
    Ratios ratios;
    for (int k = 0; k < 50; ++k) ratios.add(ratio(random));
    const Ratios::Middle middle = *ratios.middle();
    held += *middle.low <= 1 && 1 <= *middle.high ? 1 : 0;
  }
  EXPECT_GE(held, kTimes * 94 / 100);
  EXPECT_LE(held, kTimes * 99 / 100);
}

// Differences of logarithms between two runs: a normal middle and, one time in twenty, a case in
// which the machine did something else.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}
  std::vector<double> pairs(std::size_t count, double growth) {
    std::vector<double> all(count);
    for (double& one : all) {
      one = growth + kDeviation * normal_(random_);
      if (std::bernoulli_distribution(0.05)(random_)) one += 10 * kDeviation * normal_(random_);
    }
    return all;
  }

 private:
  static constexpr double kDeviation = 0.08;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

// How many of so many comparisons are found slower by more than allowed; the first has grown by
// `growth`.
std::vector<bool> gate(Noise& noise, std::size_t pairs, double growth, double allowed) {
  constexpr std::size_t kComparisons = 60;
  std::vector<std::optional<double>> probabilities;
  for (std::size_t i = 0; i < kComparisons; ++i) {
    std::vector<double> beyond = noise.pairs(pairs, i == 0 ? std::log1p(growth) : 0);
    for (double& one : beyond) one -= std::log1p(allowed);
    probabilities.emplace_back(signed_rank_probability(beyond));
  }
  return too_small(probabilities, 0.01);
}

TEST(Gates, RaiseNoFalseAlarmInAThousand) {
  Noise noise(7);
  int alarms = 0;
  for (int i = 0; i < 1'000; ++i) {
    const std::vector<bool> found = gate(noise, 60, 0, 0.1);
    alarms += std::ranges::count(found, true) > 0 ? 1 : 0;
  }
  EXPECT_EQ(alarms, 0);
}

TEST(Gates, FindTenPercentMoreInNineteenOfTwenty) {
  Noise noise(8);
  int found = 0;
  constexpr int kGates = 400;
  for (int i = 0; i < kGates; ++i) found += gate(noise, 200, 0.1, 0.05).front() ? 1 : 0;
  EXPECT_GE(found, kGates * 19 / 20);
}

}  // namespace
}  // namespace kvo::tools
