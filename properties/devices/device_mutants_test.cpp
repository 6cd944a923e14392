// Faults of device work, under random scripts and schedules.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/devices/device_caches.hpp"
#include "properties/devices/graphed_tensor.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/seeded/cuda/provider/kv_device_cache.hpp"
#include "properties/seeding/fault.hpp"

namespace kvo::devices {
namespace {

struct DeviceMutantsTest : testing::TestWithParam<DeviceMutant> {};

TEST_P(DeviceMutantsTest, IsCaughtAndAgainInTheSameWay) {
  const DeviceMutant& mutant = GetParam();
  EXPECT_EQ(mutant.over(nullptr).variant, "mutant:" + mutant.name);
  expect_kill(mutant.fault, [&](std::uint64_t seed) -> std::string {
    const auto open = [seed](const kvo::Setup& /*setup*/) { return open_schedule(seed); };
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const Verdict verdict = play(watched_subject(mutant.over, open), seed, profile);
      if (verdict.failed()) return verdict.text();
    }
    return {};
  });
}

INSTANTIATE_TEST_SUITE_P(Positional, DeviceMutantsTest,
                         testing::ValuesIn(device_mutants("positional")),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Provider, DeviceMutantsTest, testing::ValuesIn(device_mutants("provider")),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Snapshot, DeviceMutantsTest, testing::ValuesIn(device_mutants("snapshot")),
                         [](const auto& tested) { return tested.param.name; });

// What the mutants of graphs are made of.
TEST(GraphedTensorTest, AgreesIn400Schedules) {
  std::int64_t replays = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto device = simulated(seed);
    const Subject subject =
        watched_subject([](const OpenDevice& open) { return graphed_tensor("graphed", open); },
                        [&](const kvo::Setup& /*setup*/) { return watched(device, device); });
    const Verdict verdict = play(subject, seed, Profile::kDocumented);
    EXPECT_FALSE(verdict.failed()) << "schedule " << seed << ": " << verdict.text();
    EXPECT_TRUE(device->synchronize_all());
    EXPECT_TRUE(device->reports().empty());
    EXPECT_EQ(device->live(), 0U);
    replays += device->counts().replays;
  }
  EXPECT_GT(replays, 100);
}

/// Puts a row 2^32 cells behind the beginning of a buffer and reads it back from there.
std::vector<float> far_row() {
  constexpr std::int64_t kWidth = std::int64_t{1} << 12U;
  constexpr std::int64_t kPosition = (std::int64_t{1} << 20U) + 3;
  constexpr std::int64_t kBytes = kWidth * static_cast<std::int64_t>(sizeof(float));
  const auto device = simulated(0);
  auto made = cuda::seeded::KvDeviceCache::make({device, 1, 2 * kPosition, 1, kWidth},
                                                QuirkSet<provider::Quirk>(Profile::kDocumented));
  EXPECT_TRUE(made);
  provider::DeviceKv& cache = **made;
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
  const std::vector<float> row(std::size_t{1} << 12U, 7);
  EXPECT_EQ(far_row(), row);
  const seeding::FaultScope on(
      seeding::number_of("provider.device", far_mutant("provider.device").name));
  EXPECT_NE(far_row(), row);
}

}  // namespace
}  // namespace kvo::devices
