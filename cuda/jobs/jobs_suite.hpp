// cuda/jobs/jobs_suite.hpp: the jobs on any device, against what plain loops leave.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/device/device_suite.hpp"
#include "reference/contract/values/random.hpp"

namespace kvo::cuda {

/// jobs_suite_test.cpp holds the tests; a program that has a device instantiates them for it.
struct JobsSuite : OnDevice {
  template <class T>
  DevicePtr put(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto made = device->alloc(static_cast<std::int64_t>(bytes.size()));
    EXPECT_TRUE(made) << made.error().text();
    if (!made) return {};
    EXPECT_TRUE(device->to_device(*made, bytes));
    return *made;
  }
  template <class T>
  std::vector<T> get(DevicePtr from, std::size_t count) {
    std::vector<T> values(count);
    const Status done = device->to_host(std::as_writable_bytes(std::span(values)), from);
    EXPECT_TRUE(done) << done.error().text();
    return values;
  }
  void run(const Job& job) {
    const Status done = device->run(job);
    EXPECT_TRUE(done) << done.error().text();
  }
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1));
  }

  traces::Random random{11};
};

}  // namespace kvo::cuda
