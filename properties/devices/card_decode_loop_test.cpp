// The same on a card; skipped without one.
#include <gtest/gtest.h>

#include "cuda/device/open.hpp"
#include "properties/devices/decode_loop.hpp"

namespace kvo::devices {
namespace {

struct CardDecodeLoopTest : testing::TestWithParam<DecodeLoop> {};

TEST_P(CardDecodeLoopTest, Agrees) {
  const auto opened = cuda::open_device();
  if (!opened) GTEST_SKIP() << opened.error().text();
  const std::vector<DeviceReport> none;
  std::int64_t replays = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("script " + std::to_string(seed));
    replays += expect_decode_loop_to_agree(
        GetParam(), {*opened, [&]() -> const std::vector<DeviceReport>& { return none; }}, seed);
  }
  EXPECT_GT(replays, 1000);
}

INSTANTIATE_TEST_SUITE_P(Loops, CardDecodeLoopTest, testing::ValuesIn(decode_loops()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
