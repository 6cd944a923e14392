#include "reference/contract/values/random.hpp"

#include <array>

#include <gtest/gtest.h>

namespace kvo::traces {

namespace {

TEST(Random, IsAFunctionOfItsSeed) {
  Random random(1);
  std::array<std::uint64_t, 5> drawn = {};
  for (auto& each : drawn) each = random.below(1000);
  EXPECT_EQ(drawn, (std::array<std::uint64_t, 5>{528, 462, 930, 246, 384}));
}

TEST(Random, BelowReachesEachValueAboutAsOften) {
  Random random(7);
  std::array<int, 6> counts = {};
  for (int i = 0; i < 60'000; ++i) ++counts.at(random.below(6));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, ExponentialHasItsMeanAndItsTail) {
  constexpr std::int64_t kMean = 1'000'000;
  constexpr int kDraws = 100'000;
  Random random(7);
  double sum = 0;
  int beyond_the_mean = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto drawn = random.exponential(kMean);
    ASSERT_GE(drawn, 0);
    sum += static_cast<double>(drawn);
    beyond_the_mean += drawn > kMean ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, kMean, 0.02 * kMean);
  EXPECT_NEAR(static_cast<double>(beyond_the_mean) / kDraws, 0.3679, 0.01);  // 1 / e
}

TEST(Random, ExponentialAboutZeroIsZero) {
  Random random(7);
  EXPECT_EQ(random.exponential(0), 0);
}

}  // namespace

}  // namespace kvo::traces
