// properties/campaign/day.hpp: tests that take long, of which a third has its day.
#pragma once

#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace kvo {

/// Skips the parameters of its tests that another day has. The day is GTEST_RANDOM_SEED; without it
/// none is skipped.
template <class Parameter>
class TestWithDay : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    constexpr int kParts = 3;
    const int day = GTEST_FLAG_GET(random_seed);
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    if (day != 0 && std::accumulate(name.begin(), name.end(), day) % kParts != 0)
      GTEST_SKIP() << "another day has it";
  }
};

}  // namespace kvo
