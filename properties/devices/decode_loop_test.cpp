#include "properties/devices/decode_loop.hpp"

#include <gtest/gtest.h>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::devices {
namespace {

struct DecodeLoopTest : testing::TestWithParam<DecodeLoop> {};

TEST_P(DecodeLoopTest, AgreesIn100SchedulesOfTheSimulatedDevice) {
  std::vector<std::shared_ptr<SimulatedDevice>> devices;
  const std::int64_t replays = expect_decode_loops_to_agree(GetParam(), [&](std::uint64_t seed) {
    const SimulatedOptions options{.schedule = Schedule(seed)};
    const auto device = devices.emplace_back(std::make_shared<SimulatedDevice>(options));
    return Result<WatchedDevice>(watched(device, device));
  });
  std::int64_t carried_out = 0;
  for (const auto& device : devices) {
    EXPECT_TRUE(device->synchronize_all());
    EXPECT_TRUE(device->reports().empty());
    EXPECT_EQ(device->live(), 0U);
    carried_out += device->counts().replays;
  }
  EXPECT_EQ(carried_out, replays);
}

INSTANTIATE_TEST_SUITE_P(Loops, DecodeLoopTest, testing::ValuesIn(decode_loops()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
