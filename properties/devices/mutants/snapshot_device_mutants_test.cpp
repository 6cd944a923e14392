// Each fault shows in lock-step with the reference, or as a report of the simulated device.
#include "properties/devices/mutants/snapshot_device_mutants.hpp"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/devices/device_caches.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::devices {
namespace {

struct SnapshotMutants : testing::TestWithParam<DeviceMutant> {};

/// The first of 200 schedules that shows the fault, and how; nothing if none does.
std::optional<std::string> first_kill(const DeviceMutant& mutant) {
  constexpr std::uint64_t kSchedules = 200;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    const Subject subject =
        watched_subject(mutant.over, [seed](const Setup&) -> Result<WatchedDevice> {
          const auto device =
              std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = Schedule(seed)});
          return WatchedDevice{
              device, [device]() -> const std::vector<DeviceReport>& { return device->reports(); }};
        });
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const Verdict verdict = play(subject, seed, profile);
      if (verdict.failed()) return "schedule " + std::to_string(seed) + ": " + verdict.text();
    }
  }
  return std::nullopt;
}

TEST_P(SnapshotMutants, AreKilledWithin200SchedulesAndAlwaysAlike) {
  const auto kill = first_kill(GetParam());
  ASSERT_TRUE(kill) << GetParam().fault;
  EXPECT_EQ(first_kill(GetParam()), kill);
  RecordProperty("kill", *kill);
}

INSTANTIATE_TEST_SUITE_P(Faults, SnapshotMutants, testing::ValuesIn(snapshot_device_mutants()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
