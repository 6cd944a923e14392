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
  static const std::vector<DeviceReport> kNone;
  (void)expect_decode_loops_to_agree(GetParam(), [&](std::uint64_t /*seed*/) {
    return Result<WatchedDevice>({.device = *opened, .reports = []() -> auto& { return kNone; }
});
});
}

INSTANTIATE_TEST_SUITE_P(Loops, CardDecodeLoopTest, testing::ValuesIn(decode_loops()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvo::devices
