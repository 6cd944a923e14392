// The same by way of CudaDevice and the kernels that nvcc compiled.
#include <gtest/gtest.h>

#include "cuda/standin/opened_card.hpp"
#include "properties/devices/decode_loop.hpp"

namespace kvo::devices {
namespace {

struct StandinDecodeLoopTest : testing::TestWithParam<DecodeLoop> {};

TEST_P(StandinDecodeLoopTest, AgreesIn100SchedulesOfTheStandIn) {
  std::int64_t replays = 0;
  const std::int64_t before = cuda::launch_counts().replays;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    const auto opened =
        cuda::OpenedCard::open({.device = {.schedule = Schedule(seed),
                                           .fresh = {.poison = true, .report_unwritten = true}}});
    ASSERT_TRUE(opened);
    replays += expect_decode_loop_to_agree(
        GetParam(), watched(cuda::OpenedCard::device_of(*opened), *opened), seed);
  }
  EXPECT_GT(replays, 1000);
  EXPECT_EQ(cuda::launch_counts().replays - before, replays);
}

INSTANTIATE_TEST_SUITE_P(Loops, StandinDecodeLoopTest, testing::ValuesIn(decode_loops()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
