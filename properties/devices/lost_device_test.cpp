// A device that is lost in mid-run: its caches answer errors, and all others go on.
#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "properties/devices/device_caches.hpp"
#include "reference/contract/device/recorded_device.hpp"

namespace kvo::devices {
namespace {

struct LostDeviceTest : testing::TestWithParam<DeviceCaches> {};

/// Calls until the device is lost: each of the first ones, then some.
std::vector<std::int64_t> losses() {
  std::vector<std::int64_t> all;
  for (std::int64_t k = 1; k <= 60; ++k) all.push_back(k);
  for (std::int64_t k = 67; k <= 400; k += 13) all.push_back(k);
  return all;
}

TEST_P(LostDeviceTest, EveryOperationAnswersAndOthersGoOn) {
  std::int64_t errors = 0;
  for (const std::int64_t k : losses()) {
    const auto seed = static_cast<std::uint64_t>(k);
    const auto device = std::make_shared<SimulatedDevice>(
        SimulatedOptions{.schedule = Schedule(seed), .lose_at = k});
    const Subject subject =
        GetParam().over([device]() -> Result<std::shared_ptr<Device>> { return device; });
    errors += expect_answers(subject, seed, fail_other("device_lost"));
  }
  EXPECT_GT(errors, 500);
  expect_agreement(GetParam(), open_schedule, 8);
}

TEST_P(LostDeviceTest, WhereACallFailsClosingGivesAllMemoryBack) {
  std::int64_t errors = 0;
  for (const std::int64_t k : losses()) {
    const auto below = simulated(static_cast<std::uint64_t>(k));
    const auto device = std::make_shared<RecordedDevice>(below, RecordedDevice::Recording::kOff);
    device->set_faults({.memcpy = k});
    const Subject subject =
        GetParam().over([device]() -> Result<std::shared_ptr<Device>> { return device; });
    errors += expect_answers(subject, static_cast<std::uint64_t>(k), fail_other("memcpy_failed"));
    EXPECT_TRUE(below->synchronize_all());
    if (GetParam().gives_back) {
      EXPECT_EQ(below->live(), 0U) << k;
    }
    EXPECT_TRUE(below->reports().empty()) << below->reports().front().text;
  }
  EXPECT_GT(errors, 10) << "cases of a type that devices store";
}

INSTANTIATE_TEST_SUITE_P(Caches, LostDeviceTest, testing::ValuesIn(device_caches()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
