// A card does what every device must, and its kernels leave what the host leaves.
#include <numeric>

#include <gtest/gtest.h>

#include "cuda/device/open.hpp"
#include "cuda/jobs/jobs_suite.hpp"
#include "reference/contract/device/device_suite.hpp"

namespace kvo::cuda {
namespace {

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceSuite, testing::Values(OpenDevice(open_device)));
INSTANTIATE_TEST_SUITE_P(Cuda, JobsSuite, testing::Values(OpenDevice(open_device)));

struct OnCard : testing::Test {
  void SetUp() override {
    auto opened = open_device();
    if (!opened) GTEST_SKIP() << opened.error().text();
    card = *opened;
  }

  std::shared_ptr<Device> card;
};

TEST_F(OnCard, EveryHalfConvertsAsOnTheHost) {
  Twins twins{*card};
  std::vector<std::uint16_t> halves(0x10000);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  const auto from = twins.make(halves);
  const auto to = twins.make(std::vector<std::uint32_t>(halves.size(), 0xDEADU));
  twins.run(to_float(to.card, from.card, std::ssize(halves)),
            to_float(to.host, from.host, std::ssize(halves)));
  EXPECT_TRUE(twins.equal(to));
}

TEST_F(OnCard, RoundingIsThatOfTheHost) {
  Twins twins{*card};
  std::vector<std::uint32_t> bits(std::size_t{1} << 22U);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint32_t>(i * 1021U);
  const auto from = twins.make(bits);
  const auto to = twins.make(std::vector<std::uint16_t>(bits.size(), 0xFFFFU));
  twins.run(to_half(to.card, from.card, std::ssize(bits)),
            to_half(to.host, from.host, std::ssize(bits)));
  EXPECT_TRUE(twins.equal(to));
}

// Offsets beyond 2^32 cells: 17 GB of the card, skipped where it has less.
TEST_F(OnCard, OffsetsBeyondFourGigacellsAreNotCut) {
  if (!expect_far_row(*card, std::int64_t{1} << 20U, 4100))
    GTEST_SKIP() << "needs 18 GB of free device memory";
}

}  // namespace
}  // namespace kvo::cuda
