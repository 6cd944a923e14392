// The jobs on the devices that need no compiler for cards.
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/jobs_suite.hpp"
#include "cuda/jobs/rows.hpp"
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

// Elements 2^36 and beyond: offsets in 32 bits would fall on others.
TEST(PutRows, GoToTheLastCellsOfAHugePool) {
  constexpr std::int64_t kWidth = 32;
  constexpr std::int64_t kBytes = 2;
  const std::vector<std::int32_t> targets = {0, 1, 1 << 26, 1 << 27, 0x7FFFFFFF};
  const std::vector<float> rows(targets.size() * kWidth, 1.0F);
  auto device = *checked_simulation(1);
  const auto put = [&](auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const DevicePtr made = *device->alloc(static_cast<std::int64_t>(bytes.size()));
    EXPECT_TRUE(device->to_device(made, bytes));
    return made;
  };
  constexpr std::int64_t kCells = std::int64_t{1} << 31U;
  const DevicePtr pool = *device->alloc(kCells * kWidth * kBytes);
  ASSERT_TRUE(device->fill_async(pool, std::byte{0}, kCells * kWidth * kBytes, {}));
  const DevicePtr from = put(rows);
  const DevicePtr at = put(targets);
  const PutRows job{DType::kF16, pool, from, at, std::ssize(targets), kWidth};
  ASSERT_TRUE(device->run(job.cells()));
  for (const std::int64_t cell : targets) {
    for (const std::int64_t beside : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}}) {
      const std::int64_t read = std::clamp<std::int64_t>(cell + beside, 0, kCells - 1);
      std::vector<std::uint16_t> row(kWidth);
      const Status done =
          device->to_host(std::as_writable_bytes(std::span(row)), pool + read * kWidth * kBytes);
      ASSERT_TRUE(done);
      const bool written = std::ranges::find(targets, read) != targets.end();
      EXPECT_THAT(row, testing::Each(written ? 0x3C00 : 0)) << read;
    }
  }
}

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
