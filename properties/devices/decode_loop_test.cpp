#include "properties/devices/decode_loop.hpp"

#include <gtest/gtest.h>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::devices {
namespace {

struct DecodeLoopTest : testing::TestWithParam<DecodeLoop> {};

TEST_P(DecodeLoopTest, AgreesIn100SchedulesOfTheSimulatedDevice) {
  std::int64_t replays = 0;
  std::int64_t carried_out = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    const auto device =
        std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = Schedule(seed)});
    replays += expect_decode_loop_to_agree(GetParam(), watched(device, device), seed);
    EXPECT_TRUE(device->synchronize_all());
    EXPECT_TRUE(device->reports().empty());
    EXPECT_EQ(device->live(), 0U);
    carried_out += device->counts().replays;
  }
  EXPECT_GT(replays, 1000);
  EXPECT_EQ(carried_out, replays);
}

INSTANTIATE_TEST_SUITE_P(Loops, DecodeLoopTest, testing::ValuesIn(decode_loops()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
