#include "reference/contract/device/host_device.hpp"

#include <gtest/gtest.h>

#include "reference/contract/device/jobs.hpp"
#include "reference/contract/subject/probe.hpp"

namespace kvo {
namespace {

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
    return named_arguments("cells count", {cells, count});
  }
};

TEST(HostDevice, AnyJobRunsWhereItsMemoryIs) {
  HostDevice device;
  const DevicePtr ptr = *device.alloc(8);
  EXPECT_TRUE(write_counter(device, ptr, 21));
  EXPECT_TRUE(device.run(DoubleJob{ptr.as<std::int32_t>(), 1}));
  EXPECT_EQ(*read_counter(device, ptr), 42);
  EXPECT_EQ(device.run(DoubleJob{ptr.as<std::int32_t>(), 3}).error(), fail_other("bad_pointer"));
  EXPECT_EQ(*read_counter(device, ptr), 42) << "a job that leaves its buffer is not begun";
  EXPECT_EQ(Job(DoubleJob{ptr.as<std::int32_t>(), 3}).arguments()[1].number, 3);
}

TEST(HostDevice, HarnessWorkIsNoWorkOfTheCache) {
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
