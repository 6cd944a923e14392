// Faults of device work, under random scripts and schedules.
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "cuda/provider/kv_device_cache.hpp"
#include "properties/devices/device_caches.hpp"
#include "properties/devices/graphed_tensor.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/devices/mutants/faulty_jobs.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"
#include "reference/provider/tensor_operations.hpp"

namespace kvo::devices {
namespace {

constexpr std::uint64_t kSchedules = 200;

OpenWatched opening(const std::shared_ptr<SimulatedDevice>& device) {
  return [device](const Setup& /*setup*/) -> Result<WatchedDevice> {
    return WatchedDevice{
        device, [device]() -> const std::vector<DeviceReport>& { return device->reports(); }};
  };
}

/// What a subject shows in a schedule.
Verdict verdict_of(const std::function<Subject(OpenDevice)>& over, std::uint64_t seed,
                   Profile profile) {
  const auto device =
      std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = Schedule(seed)});
  return play(watched_subject(over, opening(device)), seed, profile);
}

struct Kill {
  std::uint64_t seed = 0;
  std::string text = {};
  friend bool operator==(const Kill&, const Kill&) = default;
};

std::optional<Kill> first_kill(const DeviceMutant& mutant) {
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed)
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const Verdict verdict = verdict_of(mutant.over, seed, profile);
      if (verdict.failed()) return Kill{seed, verdict.text()};
    }
  return std::nullopt;
}

struct DeviceMutantsTest : testing::TestWithParam<DeviceMutant> {};

TEST_P(DeviceMutantsTest, IsCaughtAndAgainInTheSameWay) {
  const DeviceMutant& mutant = GetParam();
  EXPECT_EQ(mutant.over(nullptr).variant, "mutant:" + mutant.name);
  const auto kill = first_kill(mutant);
  ASSERT_TRUE(kill) << mutant.fault;
  RecordProperty("schedule", std::to_string(kill->seed));
  RecordProperty("verdict", kill->text);
  EXPECT_EQ(first_kill(mutant), kill);
}

INSTANTIATE_TEST_SUITE_P(Positional, DeviceMutantsTest,
                         testing::ValuesIn(positional_device_mutants()),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Provider, DeviceMutantsTest, testing::ValuesIn(provider_device_mutants()),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Snapshot, DeviceMutantsTest, testing::ValuesIn(snapshot_device_mutants()),
                         [](const auto& tested) { return tested.param.name; });

// What the mutants of graphs are made of.
TEST(GraphedTensorTest, AgreesIn400Schedules) {
  std::int64_t replays = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto device =
        std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = Schedule(seed)});
    const auto over = [](const OpenDevice& open) {
      const auto make =
          [](const provider::TensorOptions& options,
             QuirkSet<provider::Quirk> quirks) -> Result<std::unique_ptr<provider::TensorBacked>> {
        auto made = cuda::TensorDeviceCache::make_as<cuda::TensorDeviceCache>(options, quirks);
        if (!made) return made.error();
        return std::make_unique<GraphedTensor>(std::move(*made), options, quirks);
      };
      return provider::make_tensor_subject("graphed", "", make, open);
    };
    const Verdict verdict =
        play(watched_subject(over, opening(device)), seed, Profile::kDocumented);
    EXPECT_FALSE(verdict.failed()) << "schedule " << seed << ": " << verdict.text();
    EXPECT_TRUE(device->synchronize_all());
    EXPECT_TRUE(device->reports().empty());
    EXPECT_EQ(device->live(), 0U);
    replays += device->counts().replays;
  }
  EXPECT_GT(replays, 100);
}

/// Puts a row 2^32 cells behind the beginning of a buffer and reads it back from there.
std::vector<float> far_row(const std::shared_ptr<Device>& device) {
  constexpr std::int64_t kWidth = std::int64_t{1} << 12U;
  constexpr std::int64_t kPosition = (std::int64_t{1} << 20U) + 3;
  constexpr std::int64_t kBytes = kWidth * static_cast<std::int64_t>(sizeof(float));
  auto made = cuda::KvDeviceCache::make_own({device, 1, 2 * kPosition, 1, kWidth},
                                            QuirkSet<provider::Quirk>(Profile::kDocumented));
  EXPECT_TRUE(made);
  cuda::KvDeviceCache& cache = **made;
  EXPECT_TRUE(write_counter(*device, cache.counter(), kPosition));
  EXPECT_TRUE(cache.sync_counter());
  const std::vector<float> row(kWidth, 7);
  const DevicePtr source = *device->alloc(kBytes);
  EXPECT_TRUE(device->to_device(source, std::as_bytes(std::span(row))));
  EXPECT_TRUE(cache.append_gpu(0, source, source));
  std::vector<float> found(kWidth);
  EXPECT_TRUE(device->to_host(std::as_writable_bytes(std::span(found)),
                              cache.pointers(0).k + kPosition * kBytes));
  EXPECT_TRUE(device->free(source));
  EXPECT_TRUE(cache.close());
  return found;
}

// No script of random cases is that long.
TEST(DeviceMutantsFarTest, AnOffsetOf32BitsIsCaughtBeyondFourGigacells) {
  const auto device = std::make_shared<SimulatedDevice>(SimulatedOptions{});
  EXPECT_EQ(far_row(device), std::vector<float>(std::size_t{1} << 12U, 7));
  EXPECT_NE(far_row(std::make_shared<FaultyJobs<OffsetOf32Bits>>(device)),
            std::vector<float>(std::size_t{1} << 12U, 7));
}

}  // namespace
}  // namespace kvo::devices
