// Faults of device work, under random scripts and schedules.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/subjects.hpp"
#include "properties/devices/device_caches.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/seeded/cuda/provider/kv_device_cache.hpp"
#include "properties/seeding/fault.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/positional/operations.hpp"

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

// ---- a pool of `positional` that holds more elements than 32 bits count ----

// Rows so wide that cell 2^14 begins at element 2^32; those before it are taken, but not written.
constexpr std::int64_t kWideRow = std::int64_t{1} << 18U;
constexpr std::int64_t kTaken = std::int64_t{1} << 14U;
constexpr std::int64_t kTakenAtOnce = 64;

Tensor wide_row(std::int64_t width) {
  Tensor row = make_tensor({1, 1, width});
  for (std::int64_t i = 0; i < width; ++i)
    row.floats()[static_cast<std::size_t>(i)] = static_cast<float>(1 + i % 2000);
  return row;
}

// What a get shows of a row that was put behind 2^32 elements; broken invariants are failures.
Tensor shown_behind_the_taken(const std::function<Subject(OpenDevice)>& over) {
  const Subject subject = watched_subject(over, [](const kvo::Setup&) { return open_schedule(1); });
  auto session = *subject.open(Setup{});
  Probe probe;
  const auto apply = [&](auto op) {
    Observation seen = session->apply(Op::of(std::move(op)), probe);
    EXPECT_FALSE(seen.error) << seen.error->text();
    EXPECT_EQ(session->broken_invariant(), std::nullopt);
    return seen;
  };
  apply(positional::Init{1, kTaken + 1, kTakenAtOnce, StorageType::kF16});
  for (std::int64_t sequence = 1; sequence <= kTaken / kTakenAtOnce; ++sequence) {
    positional::StartForward start;
    for (std::int32_t position = 0; position < kTakenAtOnce; ++position) {
      start.positions.push_back(position);
      start.seqs.push_back(sequence);
    }
    apply(std::move(start));
  }
  apply(positional::StartForward{.positions = {0}, .seqs = {0}});
  apply(positional::Put{wide_row(kWideRow), wide_row(1)});
  const Observation seen = apply(positional::Get{});
  return seen.error ? Tensor() : seen.as<positional::Get::Returns>().k.value.value_or(Tensor());
}

std::vector<float> halves_as_floats(const Tensor& shown) {
  std::vector<float> values;
  for (std::size_t at = 0; at < shown.bytes.size(); at += 2)
    values.push_back(load_element(DType::kF16, shown.bytes.data() + at));
  return values;
}

TEST(HugePool, IsWrittenAndReadBehindElement2To32) {
  const auto sound = [](const OpenDevice& open) {
    return cuda::positional_subjects("scheduled", open).front();
  };
  const Tensor row = wide_row(kWideRow);
  const std::vector<float> want(row.floats().begin(), row.floats().end());
  EXPECT_EQ(halves_as_floats(shown_behind_the_taken(sound)), want);
  EXPECT_NE(halves_as_floats(shown_behind_the_taken(far_mutant("positional.causal").over)), want)
      << far_mutant("positional.causal").fault;
}

}  // namespace
}  // namespace kvo::devices
