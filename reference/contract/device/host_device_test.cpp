#include "reference/contract/device/host_device.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/device/jobs.hpp"
#include "reference/contract/subject/probe.hpp"

namespace kvo {
namespace {

struct HostDeviceTest : testing::Test {
  HostDevice device;

  DevicePtr floats(const std::vector<float>& cells, Stream stream = {}) {
    const auto bytes = std::as_bytes(std::span(cells));
    const DevicePtr ptr = *device.alloc(static_cast<std::int64_t>(bytes.size()));
    EXPECT_TRUE(device.to_device_async(ptr, bytes, stream));
    return ptr;
  }
  std::vector<float> read(DevicePtr ptr, std::size_t count, Stream stream = {}) {
    std::vector<float> cells(count);
    EXPECT_TRUE(device.to_host_async(std::as_writable_bytes(std::span(cells)), ptr, stream));
    EXPECT_TRUE(device.synchronize(stream));
    return cells;
  }
};

TEST_F(HostDeviceTest, WorkOnAStreamTakesEffectInOrder) {
  const Stream stream = *device.create_stream();
  const DevicePtr from = floats({1, 2049}, stream);
  const DevicePtr halves = *device.alloc(4);
  const DevicePtr to = *device.alloc(8);
  EXPECT_TRUE(device.launch(
      ToHalfJob{halves.as<std::uint16_t>(), from.as<const std::uint32_t>(), 2}, stream));
  EXPECT_TRUE(device.copy_async(from, to, 8, stream));
  EXPECT_TRUE(device.launch(ToFloatJob{to.as<std::uint32_t>(), halves.as<const std::uint16_t>(), 2},
                            stream));
  EXPECT_EQ(read(to, 2, stream), (std::vector<float>{1, 2048}));
  EXPECT_EQ(read(from, 2, stream), (std::vector<float>{0, 0}));
  EXPECT_TRUE(device.destroy(stream));
}

TEST_F(HostDeviceTest, AStreamWaitsForWhatAnEventStandsBehind) {
  const Stream first = *device.create_stream();
  const Stream second = *device.create_stream();
  const Event event = *device.create_event();
  EXPECT_NE(first, second);
  EXPECT_TRUE(device.wait(second, event)) << "an event that was never recorded is past";
  const DevicePtr ptr = floats({3}, first);
  EXPECT_TRUE(device.record(event, first));
  EXPECT_TRUE(device.wait(second, event));
  EXPECT_EQ(read(ptr, 1, second), std::vector<float>{3});
  EXPECT_TRUE(device.destroy(event));
}

TEST_F(HostDeviceTest, UnknownStreamsAndEventsAreRefused) {
  const Stream stream = *device.create_stream();
  const Event event = *device.create_event();
  EXPECT_TRUE(device.destroy(stream));
  EXPECT_TRUE(device.destroy(event));
  const Error bad_stream = fail_other("bad_stream");
  EXPECT_EQ(device.synchronize(stream).error(), bad_stream);
  EXPECT_EQ(device.destroy(stream).error(), bad_stream);
  EXPECT_EQ(device.destroy(Stream()).error(), bad_stream) << "the default stream stays";
  const DevicePtr ptr = *device.alloc(4);
  EXPECT_EQ(device.to_device_async(ptr, {}, stream).error(), bad_stream);
  EXPECT_EQ(device.to_host_async({}, ptr, stream).error(), bad_stream);
  EXPECT_EQ(device.copy_async(ptr, ptr, 4, stream).error(), bad_stream);
  EXPECT_EQ(device.launch(IncrementJob{ptr.as<std::int32_t>(), 1}, stream).error(), bad_stream);
  EXPECT_EQ(device.record(event, {}).error(), fail_other("bad_event"));
  EXPECT_EQ(device.wait({}, event).error(), fail_other("bad_event"));
  EXPECT_EQ(device.destroy(event).error(), fail_other("bad_event"));
}

// A job of a user's own: what a device runs is not a list that it knows.
struct DoubleJob {
  static constexpr std::string_view kName = "double";
  std::int32_t* cells;
  std::int64_t count;
  [[nodiscard]] std::int64_t items() const { return count; }
  template <class Memory>
  void run(std::int64_t i, Memory& memory) const {
    memory.store(cells + i, memory.load(cells + i) * 2);
  }
  [[nodiscard]] bool touch(JobMemory& memory) { return memory.map(cells, 0, count); }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::of("cells", cells), JobArgument::of("count", count)};
  }
};

TEST_F(HostDeviceTest, AnyJobRunsWhereItsMemoryIs) {
  const DevicePtr ptr = *device.alloc(8);
  EXPECT_TRUE(write_counter(device, ptr, 21));
  EXPECT_TRUE(device.run(DoubleJob{ptr.as<std::int32_t>(), 1}));
  EXPECT_EQ(*read_counter(device, ptr), 42);
  EXPECT_EQ(device.run(DoubleJob{ptr.as<std::int32_t>(), 3}).error(), fail_other("bad_pointer"));
  EXPECT_EQ(*read_counter(device, ptr), 42) << "a job that leaves its buffer is not begun";
  EXPECT_EQ(Job(DoubleJob{ptr.as<std::int32_t>(), 3}).arguments()[1].number, 3);
}

TEST_F(HostDeviceTest, HarnessWorkIsNoWorkOfTheCache) {
  Probe probe;
  probe([] {
    EXPECT_TRUE(allocation_gate.open);
    {
      const HarnessWork ours;
      EXPECT_FALSE(allocation_gate.open);
    }
    EXPECT_TRUE(allocation_gate.open);
  });
  const HarnessWork outside;
  EXPECT_FALSE(allocation_gate.open);
}

}  // namespace
}  // namespace kvo
