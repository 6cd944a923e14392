#include "reference/contract/device/simulated/simulated_device.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/device/device_suite.hpp"

namespace kvo {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using ReportKind = DeviceReport::Kind;
using Kinds = std::set<ReportKind>;
using Words = std::vector<std::uint32_t>;

/// A scenario is played on a device; what it leaves behind is looked at.
struct Bench {
  explicit Bench(SimulatedOptions options = {}) : device(std::move(options)) {}
  explicit Bench(std::uint64_t seed) : device({.schedule = Schedule(seed)}) {}

  DevicePtr words(std::size_t count) {
    return *device.alloc(static_cast<std::int64_t>(count * sizeof(std::uint32_t)));
  }
  void write(DevicePtr to, const Words& values) {
    EXPECT_TRUE(device.to_device(to, std::as_bytes(std::span(values))));
  }
  Words read(DevicePtr from, std::size_t count) {
    Words values(count);
    EXPECT_TRUE(device.to_host(std::as_writable_bytes(std::span(values)), from));
    return values;
  }
  Kinds kinds() const {
    Kinds found;
    for (const DeviceReport& report : device.reports()) found.insert(report.kind);
    return found;
  }
  /// What was reported once all work is done.
  Kinds waited() {
    EXPECT_TRUE(device.synchronize_all());
    return kinds();
  }
  void run(DevicePtr counter, Stream stream) {
    EXPECT_TRUE(device.launch(increment(counter), stream));
  }

  SimulatedDevice device;
};

SimulatedOptions poisoned() {
  return {.fresh = {.poison = true, .report_unwritten = true}};
}

/// Adds the second cell to the first, or what a test wants an item to do.
struct CellJob {
  static constexpr std::string_view kName = "cells";
  enum class Kind : std::uint8_t { kSame, kOwn, kNext, kWide };
  std::uint32_t* cells;
  std::int64_t count;
  Kind kind;

  [[nodiscard]] std::int64_t items() const { return count; }
  template <class Memory>
  void run(std::int64_t i, Memory& memory) const {
    switch (kind) {
      case Kind::kSame:
        memory.store(cells, 1U);
        break;
      case Kind::kOwn:
        memory.store(cells + i, memory.load(cells + i) + 1);
        break;
      case Kind::kNext:
        memory.store(cells + i, memory.load(cells + (i + 1) % count));
        break;
      case Kind::kWide:
        memory.store(reinterpret_cast<std::uint64_t*>(cells + i), std::uint64_t{7});
        break;
    }
  }
  [[nodiscard]] bool touch(JobMemory& memory) { return memory.map(cells, 0, count); }
  [[nodiscard]] JobArguments arguments() const { return named_arguments("cells", {cells}); }
};

CellJob cell_job(DevicePtr cells, std::int64_t count, CellJob::Kind kind) {
  return {cells.as<std::uint32_t>(), count, kind};
}

// ---- reads of unwritten memory ----

TEST(SimulatedDevice, PoisonIsWhatFreshMemoryHoldsWhereItIsAskedFor) {
  Bench bench({.fresh = {.poison = true}});
  const DevicePtr ptr = bench.words(2);
  bench.write(ptr, {5});
  EXPECT_EQ(bench.read(ptr, 2), (Words{5, ~0U}));
  EXPECT_THAT(bench.device.reports(), IsEmpty());
  Bench zeroed;
  EXPECT_EQ(zeroed.read(zeroed.words(1), 1), Words{0});
  EXPECT_THAT(zeroed.device.reports(), IsEmpty());
}

TEST(SimulatedDevice, ReadsOfWhatNobodyWroteAreReported) {
  Bench bench(poisoned());
  const DevicePtr ptr = bench.words(2);
  bench.write(ptr, {5});
  EXPECT_EQ(bench.read(ptr, 1), Words{5});
  EXPECT_THAT(bench.device.reports(), IsEmpty());
  (void)bench.read(ptr, 2);
  ASSERT_EQ(bench.device.reports().size(), 1U);
  EXPECT_EQ(bench.device.reports()[0].off, 4);
  EXPECT_EQ(bench.device.reports()[0].text,
            "read of unwritten memory: #3 copy to the host on stream 0 (buffer 0 at byte 4)");
}

TEST(SimulatedDevice, ACounterThatWasNotResetIsRead) {
  Bench bench(poisoned());
  const DevicePtr counter = bench.words(1);
  bench.run(counter, {});
  EXPECT_EQ(bench.waited(), Kinds{ReportKind::kUnwritten});
}

TEST(SimulatedDevice, CopiesOnTheDeviceCarryUnwrittenCellsAlong) {
  Bench bench(poisoned());
  const DevicePtr from = bench.words(2);
  const DevicePtr to = bench.words(2);
  bench.write(from, {1});
  EXPECT_TRUE(bench.device.copy(to, from, 8));
  EXPECT_EQ(bench.read(to, 1), Words{1});
  EXPECT_THAT(bench.device.reports(), IsEmpty());
  (void)bench.read(to, 2);
  EXPECT_EQ(bench.kinds(), Kinds{ReportKind::kUnwritten});
}

// ---- races ----

struct TwoStreams : Bench {
  using Bench::Bench;
  Stream first = *device.create_stream();
  Stream second = *device.create_stream();
  Event event = *device.create_event();
  DevicePtr cell = words(1);
};

TEST(SimulatedDevice, AMissingEventWaitIsARaceWhateverTheOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TwoStreams bench(seed);
    bench.run(bench.cell, bench.first);
    EXPECT_TRUE(bench.device.record(bench.event, bench.first));
    bench.run(bench.cell, bench.second);
    EXPECT_EQ(bench.waited(), Kinds{ReportKind::kRace}) << seed;
  }
}

TEST(SimulatedDevice, AnEventWaitOrdersStreams) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TwoStreams bench(seed);
    bench.run(bench.cell, bench.first);
    EXPECT_TRUE(bench.device.record(bench.event, bench.first));
    EXPECT_TRUE(bench.device.wait(bench.second, bench.event));
    bench.run(bench.cell, bench.second);
    EXPECT_TRUE(bench.device.synchronize(bench.second));
    EXPECT_EQ(bench.read(bench.cell, 1), Words{2});
    EXPECT_THAT(bench.device.reports(), IsEmpty()) << seed;
  }
}

TEST(SimulatedDevice, AnEventStandsWhereItWasRecorded) {
  TwoStreams bench;
  EXPECT_TRUE(bench.device.record(bench.event, bench.first));
  bench.run(bench.cell, bench.first);  // behind the event
  EXPECT_TRUE(bench.device.wait(bench.second, bench.event));
  bench.run(bench.cell, bench.second);
  EXPECT_EQ(bench.waited(), Kinds{ReportKind::kRace});
}

TEST(SimulatedDevice, WaitingOnTheHostOrdersStreams) {
  TwoStreams bench(7);
  bench.run(bench.cell, bench.first);
  EXPECT_TRUE(bench.device.record(bench.event, bench.first));
  EXPECT_TRUE(bench.device.synchronize(bench.event));
  bench.run(bench.cell, bench.second);
  EXPECT_TRUE(bench.device.synchronize(bench.second));
  bench.run(bench.cell, {});
  EXPECT_EQ(bench.waited(), Kinds());
}

TEST(SimulatedDevice, ReadsTogetherAreNoRaceAndAWriteBesideThemIs) {
  TwoStreams bench(3);
  const DevicePtr other = bench.words(2);
  EXPECT_TRUE(bench.device.synchronize_all());
  EXPECT_TRUE(bench.device.copy_async(other, bench.cell, 4, bench.first));
  EXPECT_TRUE(bench.device.copy_async(other + 4, bench.cell, 4, bench.second));
  EXPECT_TRUE(bench.device.synchronize(bench.first));
  EXPECT_THAT(bench.device.reports(), IsEmpty());
  bench.run(bench.cell, bench.first);
  EXPECT_TRUE(bench.device.synchronize_all());
  ASSERT_EQ(bench.device.reports().size(), 1U);
  EXPECT_THAT(bench.device.reports()[0].text, HasSubstr("on stream 2"));
}

TEST(SimulatedDevice, ThreadsOfOneKernelRaceToo) {
  using Kind = CellJob::Kind;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const auto& [kind, races] : {std::pair(Kind::kSame, true), std::pair(Kind::kOwn, false),
                                      std::pair(Kind::kNext, true)}) {
      Bench bench(seed);
      const DevicePtr cells = bench.words(4);
      EXPECT_TRUE(bench.device.run(cell_job(cells, 4, kind)));
      EXPECT_TRUE(bench.device.synchronize(Stream()));
      EXPECT_EQ(bench.kinds().contains(ReportKind::kRace), races) << seed;
    }
  }
}

TEST(SimulatedDevice, ARaceNamesBothStreamsAndTheCell) {
  Bench bench;
  const Stream other = bench.device.create_stream().value();
  const DevicePtr cache = bench.words(8);
  const DevicePtr row = bench.words(2);
  const DevicePtr counter = bench.words(1);
  bench.write(counter, {3});
  const OffsetCopyJob put = row_at(cache, row, counter, 2, 4);
  EXPECT_TRUE(bench.device.launch(put, Stream()));
  EXPECT_TRUE(bench.device.synchronize(Stream()));
  EXPECT_TRUE(bench.device.launch(put, Stream()));
  EXPECT_TRUE(bench.device.fill_async(cache + 28, std::byte{0}, 4, other));
  EXPECT_TRUE(bench.device.synchronize(Stream()));
  EXPECT_TRUE(bench.device.synchronize(other));
  ASSERT_EQ(bench.device.reports().size(), 1U);
  const std::string& text = bench.device.reports()[0].text;
  EXPECT_THAT(text, HasSubstr("offset_memcpy on stream 0"));
  EXPECT_THAT(text, HasSubstr("fill on stream " + std::to_string(other.id)));
  EXPECT_THAT(text, HasSubstr("at byte 28: dst[row 3, element 1], position 3)"));
}

// ---- bounds ----

TEST(SimulatedDevice, AccessesOutsideOfBuffersAreReportedAndDropped) {
  Bench bench;
  const DevicePtr cells = bench.words(3);
  EXPECT_TRUE(bench.device.run(cell_job(cells, 3, CellJob::Kind::kOwn)));
  EXPECT_EQ(bench.waited(), Kinds());
  EXPECT_TRUE(bench.device.run(cell_job(cells, 4, CellJob::Kind::kOwn)));
  EXPECT_EQ(bench.device.synchronize(Stream()).error(), fail_other("bad_pointer"));
  EXPECT_TRUE(bench.device.synchronize(Stream())) << "it is said once";
  EXPECT_EQ(bench.kinds(), Kinds{ReportKind::kOutOfBounds});
  EXPECT_EQ(bench.read(cells, 3), (Words{2, 2, 2}));
}

TEST(SimulatedDevice, WhatIsRefusedIsNotQueuedAndNoReport) {
  Bench bench;
  const DevicePtr cells = bench.words(3);
  EXPECT_EQ(bench.device.copy(cells, cells + 4, 12).error(), fail_other("bad_pointer"));
  EXPECT_EQ(bench.device.run(cell_job({}, 3, CellJob::Kind::kOwn)).error(),
            fail_other("bad_pointer"));
  EXPECT_EQ(bench.device.queued(), 0U);
  EXPECT_THAT(bench.device.reports(), IsEmpty());
}

TEST(SimulatedDevice, WideAccessesMustBeAligned) {
  Bench bench;
  const DevicePtr cells = bench.words(4);
  EXPECT_TRUE(bench.device.run(cell_job(cells, 1, CellJob::Kind::kWide)));
  EXPECT_EQ(bench.waited(), Kinds());
  EXPECT_TRUE(bench.device.run(cell_job(cells + 4, 1, CellJob::Kind::kWide)));
  EXPECT_EQ(bench.waited(), Kinds{ReportKind::kMisaligned});
}

// ---- freed memory ----

TEST(SimulatedDevice, ScratchFreedBeforeTheHostHasWaited) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Bench bench(seed);
    const DevicePtr scratch = bench.words(1);
    bench.run(scratch, {});
    EXPECT_TRUE(bench.device.free(scratch));
    (void)bench.device.synchronize(Stream());
    EXPECT_EQ(bench.kinds(), Kinds{ReportKind::kUseAfterFree}) << seed;
  }
}

TEST(SimulatedDevice, ScratchFreedBehindTheWaitIsFine) {
  Bench bench(1);
  const DevicePtr scratch = bench.words(1);
  bench.run(scratch, {});
  EXPECT_TRUE(bench.device.synchronize(Stream()));
  EXPECT_TRUE(bench.device.free(scratch));
  EXPECT_EQ(bench.device.free(scratch).error(), fail_other("bad_pointer"));
  EXPECT_THAT(bench.device.reports(), IsEmpty());
  EXPECT_EQ(bench.device.live(), 0U);
}

TEST(SimulatedDevice, AJobWhoseBufferGoesWhileItIsQueuedReadsPoison) {
  Bench bench;
  const DevicePtr from = bench.words(1);
  const DevicePtr to = bench.words(1);
  EXPECT_TRUE(bench.device.run(to_float(to, from, 1)));
  EXPECT_TRUE(bench.device.free(from));
  EXPECT_EQ(bench.device.synchronize(Stream()).error(), fail_other("bad_pointer"));
  EXPECT_EQ(bench.kinds(), Kinds{ReportKind::kUseAfterFree});
  EXPECT_EQ(bench.read(to, 1), Words{0xFFFFE000U}) << "the poison is a NaN in binary16, too";
}

// ---- copies ----

TEST(SimulatedDevice, CopiesOntoThemselvesAreReported) {
  Bench bench;
  const DevicePtr cells = bench.words(4);
  EXPECT_TRUE(bench.device.copy(cells + 8, cells, 8));
  EXPECT_EQ(bench.waited(), Kinds());
  EXPECT_TRUE(bench.device.copy(cells + 4, cells, 8));
  EXPECT_EQ(bench.waited(), Kinds{ReportKind::kOverlap});
}

// ---- host memory ----

TEST(SimulatedDevice, ASourceOnTheHostMustNotChangeBeforeTheWait) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Bench bench(seed);
    const DevicePtr cells = bench.words(1);
    Words source{1};
    EXPECT_TRUE(bench.device.to_device_async(cells, std::as_bytes(std::span(source)), {}));
    source[0] = 2;
    EXPECT_EQ(bench.waited(), Kinds{ReportKind::kHostTouched}) << seed;
    source[0] = 3;  // behind the wait it is the host's again
    EXPECT_TRUE(bench.device.synchronize(Stream()));
    EXPECT_EQ(bench.device.reports().size(), 1U);
  }
}

TEST(SimulatedDevice, ATargetOnTheHostIsPoisonUntilTheWait) {
  Bench bench;
  const DevicePtr cells = bench.words(1);
  bench.write(cells, {9});
  Words target{4};
  EXPECT_TRUE(bench.device.to_host_async(std::as_writable_bytes(std::span(target)), cells, {}));
  EXPECT_EQ(target[0], ~0U);
  EXPECT_TRUE(bench.device.synchronize(Stream()));
  EXPECT_EQ(target[0], 9U);
  EXPECT_THAT(bench.device.reports(), IsEmpty());
  EXPECT_TRUE(bench.device.to_host_async(std::as_writable_bytes(std::span(target)), cells, {}));
  target[0] = 5;
  EXPECT_EQ(bench.waited(), Kinds{ReportKind::kHostTouched});
}

TEST(SimulatedDevice, ASourceThatIsGoneIsReported) {
  Bench bench;
  constexpr std::size_t kWords = std::size_t{1} << 16U;  // large blocks go back to the system
  const DevicePtr cells = bench.words(kWords);
  auto source = std::make_unique<Words>(kWords, 1U);
  EXPECT_TRUE(bench.device.to_device_async(cells, std::as_bytes(std::span(*source)), {}));
  std::ranges::fill(*source, 0xDDDDDDDDU);  // what some allocators do on free
  source.reset();
  EXPECT_EQ(bench.waited(), Kinds{ReportKind::kHostTouched});
}

TEST(SimulatedDevice, StagingMemoryMayBeWrittenAndReadOnOneStream) {
  Bench bench(5);
  const DevicePtr from = bench.words(1);
  const DevicePtr to = bench.words(1);
  bench.write(from, {6});
  Words staging{0};
  const auto bytes = std::as_writable_bytes(std::span(staging));
  EXPECT_TRUE(bench.device.to_host_async(bytes, from, {}));
  EXPECT_TRUE(bench.device.to_device_async(to, bytes, {}));
  EXPECT_TRUE(bench.device.synchronize(Stream()));
  EXPECT_EQ(bench.read(to, 1), Words{6});
  EXPECT_THAT(bench.device.reports(), IsEmpty());
}

}  // namespace
}  // namespace kvo
