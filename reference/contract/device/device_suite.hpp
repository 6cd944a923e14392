// reference/contract/device/device_suite.hpp: what every device must do, as a test suite.
//
// device_suite_test.cpp holds the tests; a program that has a device instantiates them for it:
// It is skipped where that device is not.
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceSuite, testing::Values(OpenDevice(HostDevice::make)));
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/device/device.hpp"

namespace kvo {

struct DeviceSuite : testing::TestWithParam<OpenDevice> {
  void SetUp() override {
    auto opened = GetParam()();
    if (!opened && opened.error() == fail(Code::kNotSupported))
      GTEST_SKIP() << opened.error().text();
    ASSERT_TRUE(opened) << opened.error().text();
    device = *opened;
  }

  DevicePtr cells(std::size_t count);
  void write(DevicePtr to, const std::vector<std::uint32_t>& values, Stream stream = {});
  std::vector<std::uint32_t> read(DevicePtr from, std::size_t count);

  std::shared_ptr<Device> device;
};

}  // namespace kvo
