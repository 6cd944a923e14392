// Faults of CudaDevice and of the launches, which only the stand-in executes without a card.
#include <string>

#include <gtest/gtest.h>

#include "cuda/standin/opened_card.hpp"
#include "properties/devices/device_caches.hpp"
#include "properties/seeded/devices/card/faults.hpp"
#include "properties/seeding/fault.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::devices {
namespace {

/// What random scripts of all caches show; empty: nothing.
std::string shown_by_caches(std::uint64_t seed) {
  const auto open = [seed](const Setup& /*setup*/) { return cuda::open_card(seed); };
  for (const DeviceCaches& caches : device_caches())
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const Verdict verdict = play(watched_subject(caches.over, open), seed, profile);
      if (verdict.failed()) return caches.name + ": " + verdict.text();
    }
  return {};
}

/// Counts to 3 by a graph that was captured on a stream of its own.
std::string shown_by_a_graph(Device& device) {
  const DevicePtr counter = *device.alloc(4);
  const Stream stream = *device.create_stream();
  if (Status begun = device.begin_capture(stream); !begun) return begun.error().text();
  const Status queued = device.launch(IncrementJob{counter.as<std::int32_t>(), 1}, stream);
  const auto graph = device.end_capture(stream);
  if (!queued) return queued.error().text();
  if (!graph) return "end_capture: " + graph.error().text();
  for (int i = 0; i < 3; ++i)
    if (Status done = device.replay(*graph, stream); !done) return done.error().text();
  if (Status done = device.synchronize(stream); !done) return done.error().text();
  const auto count = read_counter(device, counter);
  if (!count) return count.error().text();
  return *count == 3 ? "" : "3 replays counted to " + std::to_string(*count);
}

/// Fills 2^32 bytes and looks at the last one.
std::string shown_by_a_large_fill(Device& device) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 32U;
  const DevicePtr large = *device.alloc(kBytes);
  if (Status done = device.fill_async(large, std::byte{7}, kBytes, {}); !done)
    return done.error().text();
  std::byte last = {};
  if (Status done = device.to_host(std::span(&last, 1), large + (kBytes - 1)); !done)
    return done.error().text();
  return last == std::byte{7} ? "" : "the last of 2^32 bytes is not filled";
}

/// Launches a job of 2^31 items into a capture, where nobody carries it out.
std::string shown_by_a_large_launch(Device& device) {
  constexpr std::int64_t kItems = std::int64_t{1} << 31U;
  const DevicePtr from = *device.alloc(kItems * 4);
  const DevicePtr to = *device.alloc(kItems * 2);
  const std::int64_t before = cuda::launch_counts().threads;
  if (Status begun = device.begin_capture({}); !begun) return begun.error().text();
  const Status queued =
      device.run(ToHalfJob{to.as<std::uint16_t>(), from.as<const std::uint32_t>(), kItems});
  const auto graph = device.end_capture({});
  if (!queued) return queued.error().text();
  if (!graph) return graph.error().text();
  return cuda::launch_counts().threads > before ? "" : "2^31 items are not launched";
}

/// What a schedule shows, in scripts or in calls that those do not make.
std::string shown_in(std::uint64_t seed) {
  if (std::string shown = shown_by_caches(seed); !shown.empty()) return shown;
  for (const auto& shown_by : {shown_by_a_graph, shown_by_a_large_fill, shown_by_a_large_launch}) {
    const auto opened = cuda::OpenedCard::open(cuda::of_schedule(seed));
    if (!opened) return opened.error().text();
    if (std::string shown = shown_by(*(*opened)->device); !shown.empty()) return shown;
    if (!(*opened)->reports().empty()) return (*opened)->reports().front().text;
  }
  return {};
}

struct CardMutantsTest : testing::TestWithParam<seeding::Fault> {};

TEST_P(CardMutantsTest, IsCaughtAndAgainInTheSameWay) {
  const seeding::Fault& fault = GetParam();
  const seeding::FaultScope on(seeding::number_of(fault.kind, fault.name));
  expect_kill(std::string(fault.fault), shown_in);
}

INSTANTIATE_TEST_SUITE_P(Faults, CardMutantsTest, testing::ValuesIn(card::kFaults),
                         [](const auto& tested) {
                           return std::string(tested.param.kind) + "_" +
                                  std::string(tested.param.name);
                         });

TEST(SoundCard, ShowsNothingIn20Schedules) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(shown_in(seed), "") << seed;
}

}  // namespace
}  // namespace kvo::devices
