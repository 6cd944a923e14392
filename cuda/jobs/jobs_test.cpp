// The jobs on the devices that need no compiler for cards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/jobs/append_rows.hpp"
#include "cuda/jobs/jobs_suite.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::cuda {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, JobsSuite, testing::Values(OpenDevice(HostDevice::make)));

/// Fails the test over what the device reports in the end.
Result<std::shared_ptr<Device>> checked_simulation(std::uint64_t seed) {
  auto* const device =
      new SimulatedDevice({.schedule = Schedule(seed),  // NOLINT: the pointer below owns it
                           .fresh = {.poison = true, .report_unwritten = true}});
  return std::shared_ptr<Device>(device, [](SimulatedDevice* ended) {
    for (const DeviceReport& report : ended->reports()) ADD_FAILURE() << report.text;
    delete ended;  // NOLINT: as above
  });
}
INSTANTIATE_TEST_SUITE_P(Simulated, JobsSuite, testing::ValuesIn([] {
                           std::vector<OpenDevice> devices;
                           for (std::uint64_t seed = 0; seed < 5; ++seed)
                             devices.emplace_back([seed] { return checked_simulation(seed); });
                           return devices;
                         }()));

TEST(Units, AreTheWidestThatDivideAllSizes) {
  for (const auto& [address, bytes, unit] :
       {std::tuple(std::uint64_t{64}, 32, 16), std::tuple(std::uint64_t{64}, 24, 4),
        std::tuple(std::uint64_t{68}, 32, 4), std::tuple(std::uint64_t{66}, 32, 2),
        std::tuple(std::uint64_t{65}, 32, 1), std::tuple(std::uint64_t{64}, 7, 1)}) {
    const Job job = append_rows({address}, {1024}, 1, 1, bytes, 0, 1);
    EXPECT_EQ(job.items(), bytes / unit);
  }
}

}  // namespace
}  // namespace kvo::cuda
