// reference/contract/device/device_suite.hpp: what every device must do, as a test suite.
//
// device_suite_test.cpp holds the tests; a program that has a device instantiates them for it:
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceSuite, testing::Values(OpenDevice(HostDevice::make)));
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo {

/// A test on a device, which is skipped where that device is not.
struct OnDevice : testing::TestWithParam<OpenDevice> {
  void SetUp() override {
    auto opened = GetParam()();
    if (!opened && opened.error() == fail(Code::kNotSupported))
      GTEST_SKIP() << opened.error().text();
    ASSERT_TRUE(opened) << opened.error().text();
    device = *opened;
  }

  std::shared_ptr<Device> device;
};

struct DeviceSuite : OnDevice {
  DevicePtr cells(std::size_t count);
  void write(DevicePtr to, const std::vector<std::uint32_t>& values, Stream stream = {});
  std::vector<std::uint32_t> read(DevicePtr from, std::size_t count);
};

/// The jobs over addresses. @{
template <class Cell = std::uint32_t>
OffsetCopy<Cell> row_at(DevicePtr buffer, DevicePtr source, DevicePtr counter, std::int64_t dim,
                        std::int64_t rows) {
  return {buffer.as<Cell>(), source.as<const std::uint32_t>(), counter.as<const std::int32_t>(),
          dim, rows};
}
inline IncrementJob increment(DevicePtr counter, std::int32_t by = 1) {
  return {counter.as<std::int32_t>(), by};
}
inline ToHalfJob to_half(DevicePtr to, DevicePtr from, std::int64_t count) {
  return {to.as<std::uint16_t>(), from.as<const std::uint32_t>(), count};
}
inline ToFloatJob to_float(DevicePtr to, DevicePtr from, std::int64_t count) {
  return {to.as<std::uint32_t>(), from.as<const std::uint16_t>(), count};
}
/// @}

/// Writes the last of so many rows, and expects it there and the first one as it was. False: the
/// device has not enough memory.
bool expect_far_row(Device& device, std::int64_t dim, std::int64_t rows);

/// The same memory on a device and on the host.
struct Twins {
  struct Memory {
    DevicePtr card;
    DevicePtr host;
    std::size_t bytes = 0;
  };

  template <class T>
  Memory make(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const Memory made{*card.alloc(std::ssize(bytes)), *host.alloc(std::ssize(bytes)), bytes.size()};
    EXPECT_TRUE(card.to_device(made.card, bytes));
    EXPECT_TRUE(host.to_device(made.host, bytes));
    return made;
  }
  void run(const Job& on_card, const Job& on_host);
  bool equal(const Memory& memory);

  Device& card;
  HostDevice host = {};
};

}  // namespace kvo
