// CudaDevice and the objects that nvcc made, executed without a card.
#include <memory>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/jobs/jobs_suite.hpp"
#include "cuda/jobs/launchers.hpp"
#include "cuda/standin/opened_card.hpp"
#include "reference/contract/device/device_suite.hpp"
#include "reference/contract/subject/probe.hpp"

namespace kvo::cuda {
namespace {

using testing::IsEmpty;

/// Fails the test over what the card has to say in the end.
struct CheckedCard : OpenedCard {
  using OpenedCard::OpenedCard;
  ~CheckedCard() {
    device.reset();
    for (const DeviceReport& report : reports()) ADD_FAILURE() << report.text;
    EXPECT_EQ(card.device().live(), 0U) << "CudaDevice gives back what it took";
  }
  CheckedCard(const CheckedCard&) = delete;
  CheckedCard& operator=(const CheckedCard&) = delete;
};
Result<std::shared_ptr<Device>> checked_card(std::uint64_t seed) {
  auto made = std::make_shared<CheckedCard>(of_schedule(seed));
  auto device = CudaDevice::open();
  if (!device) return device.error();
  made->device = *device;
  return OpenedCard::device_of(made);
}

std::vector<OpenDevice> cards(std::uint64_t schedules) {
  std::vector<OpenDevice> all;
  for (std::uint64_t seed = 0; seed < schedules; ++seed)
    all.emplace_back([seed] { return checked_card(seed); });
  return all;
}
INSTANTIATE_TEST_SUITE_P(StandIn, DeviceSuite, testing::ValuesIn(cards(5)));
INSTANTIATE_TEST_SUITE_P(StandIn, JobsSuite, testing::ValuesIn(cards(5)));

const testing::Environment* const kSummary =
    testing::AddGlobalTestEnvironment(new LaunchSummary("jobs on the stand-in"));

std::vector<std::uint32_t> any_bits(std::int64_t count, std::uint64_t seed) {
  traces::Random random(seed);
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(count));
  for (std::uint32_t& word : bits)
    word = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32U));
  return bits;
}

// Appends, increments and conversions in drawn sizes, one after another, compared in the end.
TEST(StandIn, EveryJobLeavesWhatItLeavesOnTheHostIn100Schedules) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto card = *checked_card(seed);
    Twins twins{*card};
    traces::Random random(seed + 1000);
    const auto dim = static_cast<std::int64_t>(1 + random.below(600));
    const auto rows = static_cast<std::int64_t>(1 + random.below(4));
    const auto size = static_cast<std::size_t>(dim * rows);
    const auto row = twins.make(any_bits(dim, seed));
    const auto floats = twins.make(std::vector<std::uint32_t>(size, 0xDEADU));
    const auto halves = twins.make(std::vector<std::uint16_t>(size, 0xDEADU));
    const auto counter = twins.make(std::vector<std::int32_t>{0});
    for (std::int64_t step = 0; step <= rows; ++step) {
      twins.run(row_at<std::uint32_t>(floats.card, row.card, counter.card, dim, rows),
                row_at<std::uint32_t>(floats.host, row.host, counter.host, dim, rows));
      if (random.chance(50)) {
        twins.run(row_at<std::uint16_t>(halves.card, row.card, counter.card, dim, rows),
                  row_at<std::uint16_t>(halves.host, row.host, counter.host, dim, rows));
      }
      const auto delta = static_cast<std::int32_t>(random.below(2));
      twins.run(increment(counter.card, delta), increment(counter.host, delta));
    }
    const std::int64_t count = static_cast<std::int64_t>(random.below(size + 1));
    if (random.chance(50)) {
      twins.run(to_half(halves.card, floats.card, count), to_half(halves.host, floats.host, count));
    } else {
      twins.run(to_float(floats.card, halves.card, count),
                to_float(floats.host, halves.host, count));
    }
    EXPECT_TRUE(twins.equal(floats)) << seed;
    EXPECT_TRUE(twins.equal(halves)) << seed;
    EXPECT_TRUE(twins.equal(counter)) << seed;
  }
}

// More items than a grid has threads: some threads do two.
TEST(StandIn, AGridGoesRoundWhereItIsSmallerThanTheJob) {
  constexpr std::int64_t kCount = kThreads * kMostBlocks + 5;
  auto card = *checked_card(1);
  Twins twins{*card};
  const auto from = twins.make(any_bits(kCount, 7));
  const auto to = twins.make(std::vector<std::uint16_t>(kCount, 0xDEADU));
  twins.run(to_half(to.card, from.card, kCount), to_half(to.host, from.host, kCount));
  EXPECT_TRUE(twins.equal(to));
}

TEST(StandIn, GridsHaveAThreadAnItemUpToTheirMost) {
  for (const std::int64_t items :
       {std::int64_t{1}, kThreads - 1, kThreads, kThreads + 1, kThreads * kMostBlocks,
        std::int64_t{1} << 31U, std::int64_t{1} << 62U}) {
    const Geometry grid = geometry(items);
    EXPECT_EQ(grid.threads, kThreads);
    EXPECT_GE(grid.blocks, 1U);
    EXPECT_LE(grid.blocks, kMostBlocks);
    EXPECT_TRUE(grid.blocks == kMostBlocks || (items - 1) / kThreads + 1 == grid.blocks) << items;
  }
}

TEST(StandIn, EachLaunchIsExecutedWithTheGridThatWasAskedFor) {
  const std::int64_t before = launch_counts().threads;
  {
    auto opened = *OpenedCard::open();
    const DevicePtr from = *opened->device->alloc(1200);
    const DevicePtr to = *opened->device->alloc(600);
    EXPECT_TRUE(opened->device->run(to_half(to, from, 300)));
    EXPECT_TRUE(opened->device->synchronize(Stream()));
    EXPECT_EQ(opened->card.device().counts().jobs, 1);
    EXPECT_EQ(opened->card.device().counts().threads, 512) << "two blocks for 300 items";
  }
  EXPECT_EQ(launch_counts().threads - before, 512);
}

TEST(StandIn, OffsetsBeyondTwoToThe32CellsAreUsed) {
  for (const std::int64_t cell :
       {std::int64_t{1} << 31U, std::int64_t{1} << 32U, (std::int64_t{1} << 37U) - 64}) {
    const auto card = *checked_card(static_cast<std::uint64_t>(cell));
    EXPECT_TRUE(expect_far_row(*card, 64, cell / 64 + 1));
  }
}

TEST(StandIn, WhatRacesOnACardIsReported) {
  auto opened = *OpenedCard::open(of_schedule(1));
  const Stream second = *opened->device->create_stream();
  const DevicePtr cell = *opened->device->alloc(4);
  EXPECT_TRUE(opened->device->run(increment(cell, 1)));
  EXPECT_TRUE(opened->device->launch(increment(cell, 1), second));
  EXPECT_TRUE(opened->card.device().synchronize_all());
  ASSERT_EQ(opened->reports().size(), 1U);
  EXPECT_EQ(opened->reports()[0].kind, DeviceReport::Kind::kRace);
}

// Else an allocation that fails amid a launch would be a cache's, which has changed things by then.
TEST(StandIn, WhatTheTablesOfTheDeviceAllocateIsNoWorkOfTheCache) {
  auto opened = *OpenedCard::open();
  Device& device = *opened->device;
  const std::uint64_t before = allocation_gate.count;
  Probe probe;
  probe([&] {
    const DevicePtr cell = *device.alloc(4);
    const Stream stream = *device.create_stream();
    const Event event = *device.create_event();
    EXPECT_TRUE(device.run(increment(cell, 1)));
    EXPECT_TRUE(device.record(event, Stream()));
    EXPECT_TRUE(device.wait(stream, event));
    EXPECT_TRUE(device.synchronize(stream));
    EXPECT_TRUE(device.free(cell));
  });
  EXPECT_EQ(allocation_gate.count, before);
  probe([] { (void)std::make_unique<int>(); });
  EXPECT_GT(allocation_gate.count, before) << "the hook is not linked";
}

}  // namespace
}  // namespace kvo::cuda
