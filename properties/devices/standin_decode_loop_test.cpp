// The same by way of CudaDevice and the kernels that nvcc compiled.
#include <gtest/gtest.h>

#include "cuda/standin/opened_card.hpp"
#include "properties/devices/decode_loop.hpp"

namespace kvo::devices {
namespace {

struct StandinDecodeLoopTest : testing::TestWithParam<DecodeLoop> {};

TEST_P(StandinDecodeLoopTest, AgreesIn100SchedulesOfTheStandIn) {
  const std::int64_t before = cuda::launch_counts().replays;
  const std::int64_t replays = expect_decode_loops_to_agree(GetParam(), cuda::open_card);
  EXPECT_EQ(cuda::launch_counts().replays - before, replays);
}

INSTANTIATE_TEST_SUITE_P(Loops, StandinDecodeLoopTest, testing::ValuesIn(decode_loops()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
