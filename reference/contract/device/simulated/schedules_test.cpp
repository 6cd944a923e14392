// The schedules, the size and the failures of a simulated device.
#include <array>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/device/device_suite.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two streams write one cell, and nothing orders them: what is left shows the order.
struct Outcome {
  std::int64_t left = 0;
  std::vector<std::uint32_t> choices = {};
  std::vector<DeviceReport> reports = {};
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
Outcome unordered_writes(Schedule schedule) {
  SimulatedDevice device({.schedule = std::move(schedule)});
  const Stream first = *device.create_stream();
  const Stream second = *device.create_stream();
  const DevicePtr cell = *device.alloc(4);
  EXPECT_TRUE(device.fill_async(cell, std::byte{1}, 4, first));
  EXPECT_TRUE(device.launch(increment(cell, 1), first));
  EXPECT_TRUE(device.fill_async(cell, std::byte{2}, 4, second));
  EXPECT_TRUE(device.launch(increment(cell, 2), second));
  EXPECT_TRUE(device.synchronize_all());
  Outcome outcome;
  outcome.left = *read_counter(device, cell);
  outcome.choices = device.choices();
  outcome.reports = device.reports();
  return outcome;
}

TEST(DeviceSchedules, EveryOrderThatStreamsAllowIsDrawn) {
  std::set<std::int64_t> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    seen.insert(unordered_writes(Schedule(seed)).left);
  constexpr std::int64_t kOne = 0x01010101;
  constexpr std::int64_t kTwo = 0x02020202;
  EXPECT_EQ(seen, (std::set<std::int64_t>{kOne + 1, kTwo + 2, kOne + 3, kTwo + 3}));
}

TEST(DeviceSchedules, ASeedGivesTheSameRunAndSoDoItsChoices) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Outcome once = unordered_writes(Schedule(seed));
    EXPECT_EQ(once, unordered_writes(Schedule(seed)));
    EXPECT_EQ(once, unordered_writes(Schedule(once.choices)));
  }
}

TEST(DeviceSchedules, AnyListIsAScheduleAndTheEmptyOneKeepsTheOrder) {
  constexpr std::int64_t kInOrder = 0x02020202 + 2;
  EXPECT_EQ(unordered_writes(Schedule(std::vector<std::uint32_t>())).left, kInOrder);
  EXPECT_EQ(unordered_writes(Schedule(std::vector<std::uint32_t>{7, 99, 4'000'000'000U})).reports,
            unordered_writes(Schedule(std::vector<std::uint32_t>{3, 1, 0})).reports);
}

TEST(DeviceSchedules, WorkWaitsUntilTheHostDoes) {
  SimulatedDevice device({});
  const DevicePtr cell = *device.alloc(4);
  EXPECT_TRUE(device.run(increment(cell, 1)));
  EXPECT_TRUE(device.run(increment(cell, 1)));
  EXPECT_EQ(device.queued(), 2U);
  EXPECT_EQ(device.counts().jobs, 0);
  EXPECT_EQ(*read_counter(device, cell), 2);
  EXPECT_EQ(device.queued(), 0U);
  EXPECT_EQ(device.counts().jobs, 2);
}

TEST(DeviceSchedules, ThreadsOfAKernelRunInDrawnOrders) {
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimulatedDevice device({.schedule = Schedule(seed)});
    const DevicePtr from = *device.alloc(64);
    const DevicePtr to = *device.alloc(32);
    const ToHalfJob job = to_half(to, from, 16);
    EXPECT_TRUE(device.queue({.kind = Work::Kind::kJob, .job = job, .threads = 8}, {}));
    EXPECT_TRUE(device.synchronize(Stream()));
    EXPECT_EQ(device.counts().threads, 8);
    EXPECT_THAT(device.reports(), IsEmpty());
    orders.insert(device.choices());
  }
  EXPECT_GE(orders.size(), 8U);
}

// ---- graphs ----

TEST(DeviceSchedules, ReplaysOfOneGraphAreOrderedAndTwoGraphsAreNot) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDevice device({.schedule = Schedule(seed)});
    const Stream first = *device.create_stream();
    const Stream second = *device.create_stream();
    const DevicePtr cell = *device.alloc(4);
    std::array<Graph, 2> graphs;
    for (Graph& graph : graphs) {
      ASSERT_TRUE(device.begin_capture(first));
      ASSERT_TRUE(device.launch(increment(cell, 1), first));
      graph = *device.end_capture(first);
    }
    EXPECT_TRUE(device.replay(graphs[0], first));
    EXPECT_TRUE(device.replay(graphs[0], second));
    EXPECT_TRUE(device.replay(graphs[0], first));
    EXPECT_TRUE(device.synchronize_all());
    EXPECT_EQ(*read_counter(device, cell), 3);
    EXPECT_THAT(device.reports(), IsEmpty());
    EXPECT_TRUE(device.replay(graphs[0], first));
    EXPECT_TRUE(device.replay(graphs[1], second));
    EXPECT_TRUE(device.synchronize_all());
    ASSERT_EQ(device.reports().size(), 1U);
    EXPECT_EQ(device.reports()[0].kind, DeviceReport::Kind::kRace);
  }
}

TEST(DeviceSchedules, BranchesOfAGraphRaceUnlessTheyAreJoined) {
  for (const bool waits : {true, false}) {
    SimulatedDevice device({.schedule = Schedule(std::uint64_t{3})});
    const Stream first = *device.create_stream();
    const Stream second = *device.create_stream();
    const Event fork = *device.create_event();
    const Event join = *device.create_event();
    const DevicePtr cell = *device.alloc(4);
    ASSERT_TRUE(device.begin_capture(first));
    ASSERT_TRUE(device.record(fork, first));
    ASSERT_TRUE(device.wait(second, fork));
    ASSERT_TRUE(device.launch(increment(cell, 1), second));
    ASSERT_TRUE(device.record(join, second));
    if (waits) {
      ASSERT_TRUE(device.wait(first, join));
    }
    ASSERT_TRUE(device.launch(increment(cell, 1), first));
    ASSERT_TRUE(device.wait(first, join));
    const Graph graph = *device.end_capture(first);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(device.replay(graph, first));
    EXPECT_TRUE(device.synchronize(first));
    EXPECT_EQ(device.reports().empty(), waits);
  }
}

TEST(DeviceSchedules, AGraphReplayedAfterItsBufferMovedIsAUseAfterFree) {
  SimulatedDevice device({});
  const Stream stream = *device.create_stream();
  const DevicePtr cell = *device.alloc(4);
  ASSERT_TRUE(device.begin_capture(stream));
  ASSERT_TRUE(device.launch(increment(cell, 1), stream));
  const Graph graph = *device.end_capture(stream);
  ASSERT_TRUE(device.free(cell));
  ASSERT_TRUE(device.replay(graph, stream));
  EXPECT_EQ(device.synchronize(stream).error(), fail_other("bad_pointer"));
  ASSERT_EQ(device.reports().size(), 1U);
  EXPECT_EQ(device.reports()[0].kind, DeviceReport::Kind::kUseAfterFree);
}

// ---- size ----

TEST(DeviceSchedules, OffsetsBeyondTwoToThe32CellsAreUsed) {
  SimulatedDevice device({.schedule = Schedule(std::uint64_t{1})});
  constexpr std::int64_t kDim = 64;
  for (const std::int64_t cells :
       {std::int64_t{1} << 31U, std::int64_t{1} << 32U, (std::int64_t{1} << 37U) - kDim}) {
    EXPECT_TRUE(expect_far_row(device, kDim, cells / kDim + 1));  // it begins at that cell
    EXPECT_LE(device.backed_bytes(), 1 << 15);
  }
  EXPECT_THAT(device.reports(), IsEmpty());
}

TEST(DeviceSchedules, ThereIsNoMoreMemoryThanItHas) {
  SimulatedDevice device({.capacity = 100});
  const Error failed = fail_other("alloc_failed");
  EXPECT_EQ(device.alloc(101).error(), failed);
  EXPECT_EQ(device.alloc(-1).error(), failed);
  const DevicePtr ptr = *device.alloc(60);
  EXPECT_EQ(device.alloc(41).error(), failed);
  EXPECT_TRUE(device.free(ptr));
  EXPECT_TRUE(device.alloc(100));
}

// ---- failures ----

TEST(DeviceSchedules, TheKthAllocFails) {
  SimulatedDevice device({.fail_alloc = 2});
  EXPECT_TRUE(device.alloc(4));
  EXPECT_EQ(device.alloc(4).error(), fail_other("alloc_failed"));
  EXPECT_TRUE(device.alloc(4));
}

TEST(DeviceSchedules, ALostDeviceFailsEveryCall) {
  SimulatedDevice device({.lose_at = 3});
  const DevicePtr ptr = *device.alloc(4);
  EXPECT_TRUE(device.run(increment(ptr, 1)));
  const Error lost = fail_other("device_lost");
  EXPECT_EQ(device.synchronize(Stream()).error(), lost);
  EXPECT_EQ(device.alloc(4).error(), lost);
  EXPECT_EQ(device.free(ptr).error(), lost);
  EXPECT_EQ(device.create_stream().error(), lost);
  EXPECT_EQ(device.run(increment(ptr, 1)).error(), lost);
}

}  // namespace
}  // namespace kvo
