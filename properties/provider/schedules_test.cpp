#include "properties/provider/schedules.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::provider {
namespace {

TEST(ProviderSchedules, TheReferencesAgreeIn100SchedulesOfTheSimulatedDevice) {
  std::vector<std::shared_ptr<SimulatedDevice>> devices;
  const auto open = [&devices](std::uint64_t seed) -> Result<WatchedDevice> {
    const auto device =
        std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = Schedule(seed)});
    devices.push_back(device);
    return WatchedDevice{
        device, [device]() -> const std::vector<DeviceReport>& { return device->reports(); }};
  };
  expect_schedules_to_agree(open, 100);
  std::int64_t jobs = 0;
  for (const auto& device : devices) {
    EXPECT_TRUE(device->synchronize_all());
    EXPECT_TRUE(device->reports().empty()) << device->reports().front().text;
    jobs += device->counts().jobs;
  }
  EXPECT_GT(jobs, 1000);
}

}  // namespace
}  // namespace kvo::provider
