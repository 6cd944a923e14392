// The same by way of CudaDevice and the kernels that nvcc compiled.
#include <gtest/gtest.h>

#include "cuda/standin/opened_card.hpp"
#include "properties/devices/device_caches.hpp"

namespace kvo::devices {
namespace {

const testing::Environment* const kLaunches =
    testing::AddGlobalTestEnvironment(new cuda::LaunchSummary("caches"));

std::int64_t launches() {
  std::int64_t all = 0;
  for (const auto& [kernel, count] : cuda::launch_counts().kernels) all += count;
  return all;
}

struct StandinCachesTest : testing::TestWithParam<DeviceCaches> {};

TEST_P(StandinCachesTest, AgreesIn100SchedulesOfTheStandIn) {
  const std::int64_t before = launches();
  expect_agreement(GetParam(), cuda::open_card, 100);
  EXPECT_GT(launches() - before, GetParam().launches ? 300 : -1);
}

INSTANTIATE_TEST_SUITE_P(Caches, StandinCachesTest, testing::ValuesIn(device_caches()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
