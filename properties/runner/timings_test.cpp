#include "properties/runner/timings.hpp"

#include <gtest/gtest.h>

#include "reference/layered/cache.hpp"

namespace kvo {
namespace {

TEST(Durations, QuantilesAreRightToASixteenth) {
  Durations durations;
  for (std::uint64_t ns = 1; ns <= 10'000; ++ns) durations.add(ns, 0);
  EXPECT_EQ(durations.count(), 10'000U);
  EXPECT_NEAR(static_cast<double>(durations.quantile(0.5)), 5'000, 5'000.0 / 16);
  EXPECT_NEAR(static_cast<double>(durations.quantile(0.99)), 9'900, 9'900.0 / 16);
  EXPECT_EQ(Durations().quantile(0.5), 0U);
}

TEST(Durations, SmallOnesAreExact) {
  for (const std::uint64_t ns : {0U, 1U, 7U, 15U}) {
    Durations durations;
    durations.add(ns, 0);
    EXPECT_EQ(durations.quantile(0.5), ns);
  }
}

TEST(Durations, TheLongestOfAllFits) {
  Durations durations;
  durations.add(~std::uint64_t{0}, 0);
  EXPECT_GT(durations.quantile(0.5), ~std::uint64_t{0} / 2);
}

TEST(Durations, MergingEqualsAddingAndSurvivesTheHistogram) {
  Durations both;
  Durations one;
  Durations other;
  for (std::uint64_t ns = 1; ns < 5'000; ns += 7) {
    both.add(ns, 3);
    (ns % 2 == 0 ? one : other).add(ns, 3);
  }
  one.merge(other);
  const Durations read =
      Durations::of(one.total_nanoseconds(), one.payload_bytes(), one.histogram());
  EXPECT_EQ(read.count(), both.count());
  EXPECT_EQ(read.total_nanoseconds(), both.total_nanoseconds());
  EXPECT_EQ(read.payload_bytes(), both.payload_bytes());
  for (const double share : {0.1, 0.5, 0.9, 0.99})
    EXPECT_EQ(read.quantile(share), both.quantile(share));
}

TEST(Timings, KeepOperationsApart) {
  Timings timings;
  timings.add(op_kind<layered::Append>(), 100, 8);
  timings.add(op_kind<layered::Advance>(), 10, 0);
  timings.add(op_kind<layered::Append>(), 300, 8);
  ASSERT_NE(timings.of(op_kind<layered::Append>()), nullptr);
  EXPECT_EQ(timings.of(op_kind<layered::Append>())->count(), 2U);
  EXPECT_EQ(timings.of(op_kind<layered::Append>())->payload_bytes(), 16U);
  EXPECT_EQ(timings.of(op_kind<layered::Len>()), nullptr);
  EXPECT_EQ(timings.total_nanoseconds(), 410U);
}

}  // namespace
}  // namespace kvo
