#include "reference/contract/device/device_suite.hpp"

#include <numeric>

namespace kvo {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceSuite);

using Cells = std::vector<std::uint32_t>;

DevicePtr DeviceSuite::cells(std::size_t count) {
  const auto made = device->alloc(static_cast<std::int64_t>(count * sizeof(std::uint32_t)));
  EXPECT_TRUE(made) << made.error().text();
  return made ? *made : DevicePtr();
}

void DeviceSuite::write(DevicePtr to, const Cells& values, Stream stream) {
  ASSERT_TRUE(device->to_device_async(to, std::as_bytes(std::span(values)), stream));
  ASSERT_TRUE(device->synchronize(stream));
}

Cells DeviceSuite::read(DevicePtr from, std::size_t count) {
  Cells values(count);
  EXPECT_TRUE(device->to_host(std::as_writable_bytes(std::span(values)), from));
  return values;
}

bool expect_far_row(Device& device, std::int64_t dim, std::int64_t rows) {
  const std::int64_t row_bytes = dim * std::int64_t{sizeof(std::uint32_t)};
  const auto buffer = device.alloc(rows * row_bytes);
  if (!buffer) return false;
  const DevicePtr source = *device.alloc(row_bytes);
  const DevicePtr counter = *device.alloc(4);
  Cells row(static_cast<std::size_t>(dim));
  std::iota(row.begin(), row.end(), 1U);
  EXPECT_TRUE(device.fill_async(*buffer, std::byte{0xAA}, rows * row_bytes, {}));
  EXPECT_TRUE(device.to_device(source, std::as_bytes(std::span(row))));
  EXPECT_TRUE(write_counter(device, counter, rows - 1));
  EXPECT_TRUE(device.run(row_at(*buffer, source, counter, dim, rows)));
  Cells found(row.size());
  const auto bytes = std::as_writable_bytes(std::span(found));
  EXPECT_TRUE(device.to_host(bytes, *buffer + (rows - 1) * row_bytes));
  EXPECT_EQ(found, row);
  EXPECT_TRUE(device.to_host(bytes, *buffer));
  EXPECT_EQ(found, Cells(row.size(), 0xAAAAAAAAU));
  for (const DevicePtr ptr : {*buffer, source, counter}) EXPECT_TRUE(device.free(ptr));
  return true;
}

void Twins::run(const Job& on_card, const Job& on_host) {
  const Status done = card.run(on_card);
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_TRUE(host.run(on_host));
}

bool Twins::equal(const Memory& memory) {
  std::vector<std::byte> on_card(memory.bytes);
  std::vector<std::byte> on_host(memory.bytes);
  EXPECT_TRUE(card.to_host(on_card, memory.card));
  EXPECT_TRUE(host.to_host(on_host, memory.host));
  return on_card == on_host;
}

namespace {

TEST_P(DeviceSuite, MemoryIsZeroedAndKeepsWhatIsWritten) {
  const DevicePtr ptr = cells(5);
  EXPECT_EQ(read(ptr, 5), Cells(5, 0));
  write(ptr + 4, {1, 2, 3});
  EXPECT_EQ(read(ptr, 5), (Cells{0, 1, 2, 3, 0}));
  ASSERT_TRUE(device->fill_async(ptr + 8, std::byte{0xAB}, 8, {}));
  EXPECT_EQ(read(ptr, 5), (Cells{0, 1, 0xABABABABU, 0xABABABABU, 0}));
  ASSERT_TRUE(device->copy(ptr, ptr + 8, 8));
  EXPECT_EQ(read(ptr, 3), (Cells{0xABABABABU, 0xABABABABU, 0xABABABABU}));
  EXPECT_TRUE(device->free(ptr));
}

TEST_P(DeviceSuite, AddressesOutsideOfLiveMemoryAreRefused) {
  const Error bad = fail_other("bad_pointer");
  const DevicePtr ptr = cells(2);
  const DevicePtr other = cells(4);
  Cells three(3);
  const auto bytes = std::as_writable_bytes(std::span(three));
  EXPECT_EQ(device->to_device_async(ptr, bytes, {}).error(), bad);
  EXPECT_EQ(device->to_host_async(bytes, ptr, {}).error(), bad);
  EXPECT_EQ(device->to_device_async(ptr + -1, bytes.first(1), {}).error(), bad);
  EXPECT_EQ(device->to_device_async({}, bytes, {}).error(), bad);
  EXPECT_EQ(device->copy_async(other, ptr, 12, {}).error(), bad);
  EXPECT_EQ(device->copy_async(ptr, other, 12, {}).error(), bad);
  EXPECT_EQ(device->fill_async(ptr + 8, std::byte{}, 1, {}).error(), bad);
  EXPECT_EQ(device->fill_async(ptr, std::byte{}, -1, {}).error(), bad);
  EXPECT_EQ(device->fill_async({}, std::byte{}, 4, {}).error(), bad);
  EXPECT_EQ(device->free(ptr + 4).error(), bad);
  EXPECT_TRUE(device->free(ptr));
  EXPECT_EQ(device->free(ptr).error(), bad);
  EXPECT_EQ(device->to_device_async(ptr, bytes, {}).error(), bad);
  EXPECT_TRUE(device->free(other));
}

TEST_P(DeviceSuite, JobsDoWhatTheySay) {
  const DevicePtr buffer = cells(6);
  const DevicePtr source = cells(2);
  const DevicePtr counter = cells(1);
  const DevicePtr halves = cells(1);
  write(source, {0x3F800000U, 0xC0200000U});
  for (int step = 0; step < 4; ++step) {  // one step more than there is room
    ASSERT_TRUE(device->run(row_at(buffer, source, counter, 2, 3)));
    ASSERT_TRUE(device->run(increment(counter)));
  }
  EXPECT_EQ(*read_counter(*device, counter), 4);
  ASSERT_TRUE(device->run(to_half(halves, source, 2)));
  EXPECT_EQ(read(halves, 1), Cells{0xC1003C00U});
  ASSERT_TRUE(device->run(to_float(buffer, halves, 2)));
  EXPECT_EQ(read(buffer, 6),
            (Cells{0x3F800000U, 0xC0200000U, 0x3F800000U, 0xC0200000U, 0x3F800000U, 0xC0200000U}));
  ASSERT_TRUE(device->run(to_float(buffer, halves, 0)));
  EXPECT_TRUE(device->synchronize(Stream()));
}

TEST_P(DeviceSuite, WorkOnAStreamTakesEffectInOrder) {
  const Stream stream = *device->create_stream();
  const DevicePtr from = cells(2);
  const DevicePtr halves = cells(1);
  const DevicePtr to = cells(2);
  write(from, {0x3F800000U, 0x45001000U}, stream);  // 1, 2049
  EXPECT_TRUE(device->launch(to_half(halves, from, 2), stream));
  EXPECT_TRUE(device->copy_async(from, to, 8, stream));
  EXPECT_TRUE(device->launch(to_float(to, halves, 2), stream));
  EXPECT_TRUE(device->synchronize(stream));
  EXPECT_EQ(read(to, 2), (Cells{0x3F800000U, 0x45000000U}));
  EXPECT_EQ(read(from, 2), (Cells{0, 0}));
  EXPECT_TRUE(device->destroy(stream));
}

TEST_P(DeviceSuite, StreamsRunOnTheirOwnAndWaitForEvents) {
  const Stream first = *device->create_stream();
  const Stream second = *device->create_stream();
  const Event event = *device->create_event();
  EXPECT_NE(first, second);
  EXPECT_TRUE(device->wait(second, event)) << "an event that was never recorded is past";
  EXPECT_TRUE(device->synchronize(event));
  const DevicePtr one = cells(1000);
  const DevicePtr two = cells(1000);
  Cells values(1000);
  std::iota(values.begin(), values.end(), 1U);
  ASSERT_TRUE(device->to_device_async(one, std::as_bytes(std::span(values)), first));
  ASSERT_TRUE(device->record(event, first));
  ASSERT_TRUE(device->wait(second, event));
  ASSERT_TRUE(device->copy_async(two, one, 4000, second));
  ASSERT_TRUE(device->record(event, second));
  ASSERT_TRUE(device->synchronize(event));
  EXPECT_EQ(read(two, 1000), values);
  EXPECT_TRUE(device->destroy(first));
  EXPECT_TRUE(device->destroy(second));
  EXPECT_TRUE(device->destroy(event));
}

TEST_P(DeviceSuite, UnknownNumbersAreRefused) {
  const Stream stream = *device->create_stream();
  const Event event = *device->create_event();
  ASSERT_TRUE(device->destroy(stream));
  ASSERT_TRUE(device->destroy(event));
  const Error bad_stream = fail_other("bad_stream");
  const Error bad_event = fail_other("bad_event");
  const DevicePtr ptr = cells(1);
  EXPECT_EQ(device->destroy(Stream()).error(), bad_stream) << "the default stream stays";
  EXPECT_EQ(device->destroy(stream).error(), bad_stream);
  EXPECT_EQ(device->synchronize(stream).error(), bad_stream);
  EXPECT_EQ(device->to_device_async(ptr, {}, stream).error(), bad_stream);
  EXPECT_EQ(device->to_host_async({}, ptr, stream).error(), bad_stream);
  EXPECT_EQ(device->copy_async(ptr, ptr, 0, stream).error(), bad_stream);
  EXPECT_EQ(device->fill_async(ptr, {}, 4, stream).error(), bad_stream);
  EXPECT_EQ(device->launch(increment(ptr), stream).error(), bad_stream);
  EXPECT_EQ(device->record(event, {}).error(), bad_event);
  EXPECT_EQ(device->wait({}, event).error(), bad_event);
  EXPECT_EQ(device->synchronize(event).error(), bad_event);
  EXPECT_EQ(device->destroy(event).error(), bad_event);
  EXPECT_EQ(device->begin_capture(stream).error(), bad_stream);
  EXPECT_EQ(device->replay(Graph{77}, {}).error(), fail_other("bad_graph"));
  EXPECT_EQ(device->destroy(Graph{77}).error(), fail_other("bad_graph"));
}

TEST_P(DeviceSuite, AGraphIsReplayedAndTheCounterAdvances) {
  const Stream stream = *device->create_stream();
  const DevicePtr buffer = cells(8);
  const DevicePtr source = cells(2);
  const DevicePtr counter = cells(1);
  write(source, {1, 2});
  ASSERT_TRUE(device->begin_capture(stream));
  ASSERT_TRUE(device->launch(row_at(buffer, source, counter, 2, 4), stream));
  ASSERT_TRUE(device->launch(increment(counter), stream));
  const auto graph = device->end_capture(stream);
  ASSERT_TRUE(graph) << graph.error().text();
  EXPECT_EQ(*read_counter(*device, counter), 0) << "what is captured is not carried out";
  for (std::uint32_t step = 0; step < 3; ++step) {
    write(source, {10 * step, 10 * step + 1}, stream);
    ASSERT_TRUE(device->replay(*graph, stream));
    ASSERT_TRUE(device->synchronize(stream));
  }
  EXPECT_EQ(read(buffer, 8), (Cells{0, 1, 10, 11, 20, 21, 0, 0}));
  EXPECT_EQ(*read_counter(*device, counter), 3);
  EXPECT_TRUE(device->destroy(*graph));
  EXPECT_EQ(device->replay(*graph, stream).error(), fail_other("bad_graph"));
  EXPECT_TRUE(device->destroy(stream));
}

TEST_P(DeviceSuite, ACaptureGoesOverStreamsThatWaitForItsEvents) {
  const Stream first = *device->create_stream();
  const Stream second = *device->create_stream();
  const Event fork = *device->create_event();
  const Event join = *device->create_event();
  const DevicePtr from = cells(2);
  const DevicePtr halves = cells(1);
  const DevicePtr to = cells(2);
  ASSERT_TRUE(device->begin_capture(first));
  ASSERT_TRUE(device->launch(to_half(halves, from, 2), first));
  ASSERT_TRUE(device->record(fork, first));
  ASSERT_TRUE(device->wait(second, fork));
  ASSERT_TRUE(device->launch(to_float(to, halves, 2), second));
  ASSERT_TRUE(device->record(join, second));
  ASSERT_TRUE(device->wait(first, join));
  const auto graph = device->end_capture(first);
  ASSERT_TRUE(graph) << graph.error().text();
  EXPECT_TRUE(device->wait(second, fork)) << "as if never recorded";
  write(from, {0x40000000U, 0x3F800000U}, first);
  ASSERT_TRUE(device->replay(*graph, first));
  ASSERT_TRUE(device->synchronize(first));
  EXPECT_EQ(read(to, 2), (Cells{0x40000000U, 0x3F800000U}));
}

TEST_P(DeviceSuite, WhatACaptureCannotHoldIsRefused) {
  const Error capturing = fail_other("capturing");
  const Error bad_capture = fail_other("bad_capture");
  const Stream first = *device->create_stream();
  const Stream second = *device->create_stream();
  const Event outside = *device->create_event();
  const Event inside = *device->create_event();
  const DevicePtr ptr = cells(1);
  EXPECT_EQ(device->end_capture(first).error(), bad_capture);
  ASSERT_TRUE(device->record(outside, second));
  ASSERT_TRUE(device->begin_capture(first));
  EXPECT_EQ(device->begin_capture(second).error(), capturing);
  EXPECT_EQ(device->end_capture(second).error(), bad_capture);
  EXPECT_EQ(device->synchronize(first).error(), capturing);
  EXPECT_EQ(device->destroy(first).error(), capturing);
  EXPECT_EQ(device->wait(first, outside).error(), capturing);
  ASSERT_TRUE(device->record(inside, first));
  EXPECT_EQ(device->synchronize(inside).error(), capturing);
  EXPECT_EQ(device->destroy(inside).error(), capturing);
  EXPECT_TRUE(device->synchronize(second)) << "others go on";
  ASSERT_TRUE(device->wait(second, inside));
  ASSERT_TRUE(device->launch(increment(ptr), second));
  EXPECT_EQ(device->end_capture(first).error(), bad_capture) << "nobody waits for the second";
  EXPECT_TRUE(device->synchronize(first));
  EXPECT_TRUE(device->launch(increment(ptr), second));
  EXPECT_TRUE(device->synchronize(second));
  EXPECT_EQ(*read_counter(*device, ptr), 1);
}

}  // namespace
}  // namespace kvo
