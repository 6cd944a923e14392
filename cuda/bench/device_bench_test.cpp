// The bench measures on any device; what it says of one that is no card means nothing.
#include "cuda/bench/device_bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::cuda {
namespace {

constexpr BenchSizes kSmall{.layers = 2,
                            .row_cells = 8,
                            .prefill = 5,
                            .gathered = 40,
                            .block = 16,
                            .converted = 64,
                            .repetitions = 2};

TEST(DeviceBench, MeasuresEveryLineWithoutAReport) {
  SimulatedDevice device({});
  const auto result = measure(device, kSmall);
  ASSERT_TRUE(result) << result.error().text();
  ASSERT_EQ(result->lines.size(), 10U);
  for (const BenchLine& line : result->lines) {
    EXPECT_GT(line.seconds, 0) << line.work;
    EXPECT_GT(line.of_copy, 0) << line.work;
  }
  EXPECT_EQ(result->lines[0].bytes, 2.0 * 4 * 5 * 8 * 4) << "four buffers of five rows, to and fro";
  EXPECT_EQ(result->lines[3].bytes, 6.0 * 64 * 2) << "four bytes are read, two written";
  EXPECT_GT(result->step.step_seconds, 0);
  EXPECT_THAT(device.reports(), testing::IsEmpty());
  EXPECT_THAT(table_of(*result), testing::HasSubstr("| gather, paged | 2 | "));
}

}  // namespace
}  // namespace kvo::cuda
