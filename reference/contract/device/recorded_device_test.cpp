#include "reference/contract/device/recorded_device.hpp"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/device/device_suite.hpp"

namespace kvo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct RecordedDeviceTest : testing::Test {
  std::shared_ptr<HostDevice> host = std::make_shared<HostDevice>();
  RecordedDevice device{host};

  std::vector<float> floats(DevicePtr from, std::size_t count) {
    std::vector<float> cells(count);
    EXPECT_TRUE(host->to_host(std::as_writable_bytes(std::span(cells)), from));
    return cells;
  }
  DevicePtr with(const std::vector<float>& cells) {
    const auto bytes = std::as_bytes(std::span(cells));
    const DevicePtr ptr = *device.alloc(static_cast<std::int64_t>(bytes.size()));
    EXPECT_TRUE(device.to_device(ptr, bytes));
    return ptr;
  }
  DevicePtr counter(std::int32_t value) {
    const DevicePtr ptr = *device.alloc(4);
    EXPECT_TRUE(device.to_device(ptr, std::as_bytes(std::span(&value, 1))));
    return ptr;
  }
  [[nodiscard]] std::string last_call() const {
    return boost::json::serialize(write_json(device.calls().back()));
  }
};

Error bad_pointer() {
  return fail_other("bad_pointer");
}

TEST_F(RecordedDeviceTest, MemoryIsZeroedAndNumberedInOrderOfSuccessfulAllocs) {
  const DevicePtr first = *device.alloc(8);
  device.set_faults({.alloc = 1});
  EXPECT_EQ(device.alloc(8).error(), fail_other("alloc_failed"));
  EXPECT_EQ(last_call(), R"({"fn":"alloc","size":8,"error":true})");
  const DevicePtr second = *device.alloc(4);
  EXPECT_EQ(floats(first, 2), (std::vector<float>{0, 0}));
  EXPECT_EQ(last_call(), R"({"fn":"alloc","size":4,"buf":1})");
  EXPECT_THAT(device.live_buffers(), ElementsAre(0, 1));
  ASSERT_TRUE(device.free(first));
  EXPECT_EQ(last_call(), R"({"fn":"free","ptr":{"buf":0,"off":0}})");
  EXPECT_THAT(device.live_buffers(), ElementsAre(1));
  ASSERT_TRUE(device.free(second));
  EXPECT_EQ(host->live(), 0U);
}

TEST_F(RecordedDeviceTest, EmptyBuffersTakeEmptyCopies) {
  const DevicePtr ptr = *device.alloc(0);
  EXPECT_TRUE(device.copy(ptr, ptr, 0));
  EXPECT_TRUE(device.run(to_half(ptr, ptr, 0)));
  std::array<std::byte, 1> one{};
  EXPECT_EQ(device.to_device(ptr, one).error(), bad_pointer());
}

TEST_F(RecordedDeviceTest, PointersAreShownWithTheirOffset) {
  const DevicePtr ptr = *device.alloc(16);
  const auto shown = [&](DevicePtr at) {
    return boost::json::serialize(device.shown(at).to_json());
  };
  EXPECT_EQ(shown(ptr + 8), R"({"buf":0,"off":8})");
  EXPECT_EQ(shown({}), "null");
  EXPECT_EQ(shown(DevicePtr{} + 8), R"({"buf":null,"off":8})");
  const std::vector<std::byte> cells(4);
  const RecordedDevice::Source source(device, ShownPtr::Where::kKSource, cells);
  EXPECT_EQ(shown(source.ptr()), R"("k_src")");
  EXPECT_THAT(device.live_buffers(), ElementsAre(0));
  for (const char* text : {R"({"buf":0,"off":8})", "null", R"({"buf":null,"off":8})", R"("k_src")",
                           R"("v_src")", R"("host")"}) {
    ShownPtr read;
    ASSERT_TRUE(read.from_json(boost::json::parse(text))) << text;
    EXPECT_EQ(boost::json::serialize(read.to_json()), text);
  }
  for (const char* text : {"3", R"("elsewhere")", "{}", R"({"buf":0})", R"({"buf":"x","off":8})"}) {
    ShownPtr read;
    EXPECT_FALSE(read.from_json(boost::json::parse(text))) << text;
  }
}

TEST_F(RecordedDeviceTest, TheNthCallOfItsSortFails) {
  const DevicePtr ptr = *device.alloc(4);
  const DevicePtr other = *device.alloc(4);
  device.set_faults({.free = 2, .memcpy = 2, .kernel = 2});
  std::array<std::byte, 4> bytes{};
  EXPECT_TRUE(device.to_device(ptr, bytes));
  EXPECT_EQ(device.to_host(bytes, ptr).error(), fail_other("memcpy_failed"));
  EXPECT_TRUE(device.to_host(bytes, ptr));
  EXPECT_TRUE(device.run(increment(ptr)));
  EXPECT_EQ(device.run(increment(ptr)).error(), fail_other("kernel_failed"));
  EXPECT_TRUE(device.run(increment(ptr)));
  std::int32_t value = 0;
  ASSERT_TRUE(device.to_host(std::as_writable_bytes(std::span(&value, 1)), ptr));
  EXPECT_EQ(value, 2);
  EXPECT_TRUE(device.free(other));
  EXPECT_EQ(device.free(ptr).error(), fail_other("free_failed"));
  EXPECT_THAT(device.live_buffers(), ElementsAre(0));
}

TEST_F(RecordedDeviceTest, SomeAllocsInARowFail) {
  device.set_faults({.next_allocs = 2});
  EXPECT_FALSE(device.alloc(4));
  EXPECT_FALSE(device.alloc(4));
  EXPECT_TRUE(device.alloc(4));
}

TEST_F(RecordedDeviceTest, WithoutKernelsTheyAllFailUnrecorded) {  // ZF-47
  const DevicePtr ptr = *device.alloc(8);
  device.begin();
  device.set_kernels(false);
  const Error wanted = fail(Code::kNotSupported);
  EXPECT_EQ(device.run(row_at(ptr, ptr, ptr, 1, 1)).error(), wanted);
  EXPECT_EQ(device.run(increment(ptr)).error(), wanted);
  EXPECT_EQ(device.run(to_half(ptr, ptr, 1)).error(), wanted);
  EXPECT_EQ(device.run(to_float(ptr, ptr, 1)).error(), wanted);
  EXPECT_THAT(device.calls(), IsEmpty());
}

TEST_F(RecordedDeviceTest, KernelsAreShownByTheNamesOfTheirArguments) {
  const DevicePtr ptr = *device.alloc(24);
  ASSERT_TRUE(device.run(row_at(ptr + 8, ptr, ptr + 4, 1, 2)));
  EXPECT_EQ(last_call(), R"({"fn":"offset_memcpy","dst":{"buf":0,"off":8},"src":{"buf":0,"off":0},)"
                         R"("counter":{"buf":0,"off":4},"dim":1,"max_seq_len":2})");
  ASSERT_TRUE(device.run(increment(ptr + 4)));
  EXPECT_EQ(last_call(), R"({"fn":"increment_counter","counter":{"buf":0,"off":4},"delta":1})");
  ASSERT_TRUE(device.run(to_half(ptr + 16, ptr, 2)));
  EXPECT_EQ(last_call(),
            R"({"fn":"to_half","size":2,"dst":{"buf":0,"off":16},"src":{"buf":0,"off":0}})");
}

TEST_F(RecordedDeviceTest, OffsetMemcpyWritesWhereTheCounterSays) {  // ZF-47
  const DevicePtr buffer = *device.alloc(3L * 2 * 4);
  const DevicePtr source = with({7, 8});
  const DevicePtr position = counter(1);
  ASSERT_TRUE(device.run(row_at(buffer, source, position, 2, 3)));
  EXPECT_EQ(floats(buffer, 6), (std::vector<float>{0, 0, 7, 8, 0, 0}));
}

TEST_F(RecordedDeviceTest, OffsetMemcpyPastTheEndDoesNothing) {  // ZF-47
  const DevicePtr buffer = *device.alloc(2L * 2 * 4);
  const DevicePtr source = with({7, 8});
  EXPECT_TRUE(device.run(row_at(buffer, source, counter(2), 2, 2)));
  EXPECT_EQ(floats(buffer, 4), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(device.run(row_at(buffer, source, counter(-1), 2, 2)).error(), bad_pointer());
  EXPECT_EQ(device.run(row_at(buffer, source, counter(1), 2, 3)).has_value(), true);
  EXPECT_EQ(device.run(row_at(buffer, source, counter(2), 2, 3)).error(), bad_pointer());
  EXPECT_EQ(device.run(row_at(buffer, source, counter(0), 3, 3)).error(), bad_pointer());
}

TEST_F(RecordedDeviceTest, HalvesRoundToNearestEvenAndComeBackExactly) {  // ZF-67
  const DevicePtr source = with({2049, 2051, 65520, 0.1F});
  const DevicePtr halves = *device.alloc(4L * 2);
  const DevicePtr back = *device.alloc(4L * 4);
  ASSERT_TRUE(device.run(to_half(halves, source, 4)));
  ASSERT_TRUE(device.run(to_float(back, halves, 4)));
  EXPECT_THAT(floats(back, 4), ElementsAre(2048.0F, 2052.0F, std::numeric_limits<float>::infinity(),
                                           0.0999755859375F));
  EXPECT_EQ(device.run(to_half(halves, source, 5)).error(), bad_pointer());
  EXPECT_EQ(device.run(to_half(halves, source, std::int64_t{1} << 62U)).error(), bad_pointer());
}

TEST_F(RecordedDeviceTest, AnUncommittedTransactionLeavesNoTrace) {
  const DevicePtr kept = *device.alloc(4);
  device.set_faults({.alloc = 5, .next_allocs = 0});
  {
    const RecordedDevice::Transaction transaction(device);
    EXPECT_TRUE(device.alloc(4));
    EXPECT_TRUE(device.alloc(4));
    device.set_kernels(false);
  }
  EXPECT_TRUE(device.kernels());
  EXPECT_EQ(device.faults().alloc, 5);
  EXPECT_THAT(device.live_buffers(), ElementsAre(0));
  EXPECT_EQ(host->live(), 1U);
  EXPECT_EQ(device.shown(*device.alloc(4)).buf, 1);
  EXPECT_TRUE(device.free(kept));
}

TEST_F(RecordedDeviceTest, StorageFreesItselfOnceAndSaysWhenItDangles) {
  auto storage = *DeviceStorage::make(host, 3, 4);
  const TensorView view{{3}, storage, 0};
  storage->write(1, 2.5F);
  EXPECT_EQ(materialize(view).floats()[1], 2.5F);
  EXPECT_EQ(host->live(), 1U);
  storage->release();
  EXPECT_TRUE(view.dangling());
  EXPECT_EQ(host->live(), 0U);
  EXPECT_EQ(DeviceStorage::make(host, std::int64_t{1} << 62U, 4).error(),
            fail(Code::kPrecondition));
}

}  // namespace
}  // namespace kvo
