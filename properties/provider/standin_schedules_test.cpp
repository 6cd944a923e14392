// The same by way of CudaDevice and the kernels that nvcc compiled.
#include <gtest/gtest.h>

#include "cuda/standin/launch_summary.hpp"
#include "cuda/standin/opened_card.hpp"
#include "properties/provider/schedules.hpp"

namespace kvo::provider {
namespace {

const testing::Environment* const kLaunches =
    testing::AddGlobalTestEnvironment(new cuda::LaunchSummary("references of provider"));

TEST(ProviderSchedules, TheReferencesAgreeIn100SchedulesOfTheStandIn) {
  expect_schedules_to_agree(
      [](std::uint64_t seed) -> Result<WatchedDevice> {
        // What alloc does not zero is poison, and reported.
        auto opened = cuda::OpenedCard::open(
            {.device = {.schedule = Schedule(seed),
                        .fresh = {.poison = true, .report_unwritten = true}}});
        if (!opened) return opened.error();
        return WatchedDevice{
            cuda::OpenedCard::device_of(*opened),
            [card = *opened]() -> const std::vector<DeviceReport>& { return card->reports(); }};
      },
      100);
  std::int64_t launches = 0;
  for (const auto& [kernel, count] : cuda::launch_counts().kernels) launches += count;
  EXPECT_GT(launches, 1000);
}

}  // namespace
}  // namespace kvo::provider
