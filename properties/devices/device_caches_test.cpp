#include "properties/devices/device_caches.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kvo::devices {
namespace {

struct DeviceCachesTest : testing::TestWithParam<DeviceCaches> {
  std::vector<std::shared_ptr<SimulatedDevice>> devices;

  Result<WatchedDevice> open(SimulatedOptions options) {
    const auto device = std::make_shared<SimulatedDevice>(std::move(options));
    devices.push_back(device);
    return watched(device, device);
  }
  void expect_no_reports() {
    for (const auto& device : devices) {
      EXPECT_TRUE(device->synchronize_all());
      EXPECT_TRUE(device->reports().empty()) << device->reports().front().text;
      if (GetParam().gives_back) {
        EXPECT_EQ(device->live(), 0U) << "sessions give all memory back";
      }
    }
  }
};

TEST_P(DeviceCachesTest, AgreesIn100SchedulesOfTheSimulatedDevice) {
  expect_agreement(
      GetParam(), [this](std::uint64_t seed) { return open({.schedule = Schedule(seed)}); }, 100);
  expect_no_reports();
  std::int64_t copies = 0;
  std::int64_t jobs = 0;
  for (const auto& device : devices) {
    copies += device->counts().copies;
    jobs += device->counts().jobs;
  }
  EXPECT_GT(copies, 1000);
  EXPECT_GT(jobs, GetParam().launches ? 300 : -1);
}

TEST_P(DeviceCachesTest, AgreesWhereTheHostHasNoMemory) {
  expect_agreement(
      GetParam(), [this](std::uint64_t seed) { return open({.schedule = Schedule(seed)}); }, 5,
      Allocations::kFailEach);
  expect_no_reports();
}

using RetriedCachesTest = DeviceCachesTest;

TEST_P(RetriedCachesTest, AgreesWhereTheDeviceHasNoMemory) {
  std::int64_t failures = 0;
  for (std::int64_t k = 1; k <= 8; ++k)
    failures += expect_agreement_without_memory(
        GetParam(),
        [&](std::uint64_t seed) { return open({.schedule = Schedule(seed), .fail_alloc = k}); },
        10);
  expect_no_reports();
  EXPECT_GT(failures, 30);
}

std::vector<DeviceCaches> retried_caches() {
  std::vector<DeviceCaches> all = device_caches();
  std::erase_if(all, [](const DeviceCaches& caches) { return !caches.retried; });
  return all;
}

std::string name_of(const testing::TestParamInfo<DeviceCaches>& tested) {
  return tested.param.name;
}
INSTANTIATE_TEST_SUITE_P(Caches, DeviceCachesTest, testing::ValuesIn(device_caches()), name_of);
INSTANTIATE_TEST_SUITE_P(Caches, RetriedCachesTest, testing::ValuesIn(retried_caches()), name_of);

}  // namespace
}  // namespace kvo::devices
