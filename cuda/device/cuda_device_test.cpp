// A card does what every device must, and its kernels leave what the host leaves.
#include <numeric>

#include <gtest/gtest.h>

#include "cuda/device/open.hpp"
#include "cuda/jobs/jobs_suite.hpp"
#include "reference/contract/device/device_suite.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/jobs.hpp"

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
  /// Memory of that content on both devices.
  struct Both {
    DevicePtr card;
    DevicePtr host;
  };
  template <class T>
  Both both(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto size = static_cast<std::int64_t>(bytes.size());
    const Both made{*card->alloc(size), *host.alloc(size)};
    EXPECT_TRUE(card->to_device(made.card, bytes));
    EXPECT_TRUE(host.to_device(made.host, bytes));
    return made;
  }
  bool equal(const Both& memory, std::size_t bytes) {
    std::vector<std::byte> on_card(bytes);
    std::vector<std::byte> on_host(bytes);
    EXPECT_TRUE(card->to_host(on_card, memory.card));
    EXPECT_TRUE(host.to_host(on_host, memory.host));
    return on_card == on_host;
  }

  std::shared_ptr<Device> card;
  HostDevice host;
};

TEST_F(OnCard, EveryHalfConvertsAsOnTheHost) {
  std::vector<std::uint16_t> halves(0x10000);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  const auto count = static_cast<std::int64_t>(halves.size());
  const Both from = both(halves);
  const Both to = both(std::vector<std::uint32_t>(halves.size(), 0xDEADU));
  const auto job = [&](DevicePtr a, DevicePtr b) {
    return ToFloatJob{a.as<std::uint32_t>(), b.as<const std::uint16_t>(), count};
  };
  EXPECT_TRUE(card->run(job(to.card, from.card)));
  EXPECT_TRUE(host.run(job(to.host, from.host)));
  EXPECT_TRUE(equal(to, halves.size() * 4));
}

TEST_F(OnCard, RoundingIsThatOfTheHost) {
  std::vector<std::uint32_t> bits(std::size_t{1} << 22U);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint32_t>(i * 1021U);
  const auto count = static_cast<std::int64_t>(bits.size());
  const Both from = both(bits);
  const Both to = both(std::vector<std::uint16_t>(bits.size(), 0xFFFFU));
  const auto job = [&](DevicePtr a, DevicePtr b) {
    return ToHalfJob{a.as<std::uint16_t>(), b.as<const std::uint32_t>(), count};
  };
  EXPECT_TRUE(card->run(job(to.card, from.card)));
  EXPECT_TRUE(host.run(job(to.host, from.host)));
  EXPECT_TRUE(equal(to, bits.size() * 2));
}

// Offsets beyond 2^32 cells: 17 GB of the card, skipped where it has less.
TEST_F(OnCard, OffsetsBeyondFourGigacellsAreNotCut) {
  constexpr std::int64_t kDim = std::int64_t{1} << 20U;
  constexpr std::int64_t kRows = 4100;
  const auto buffer = card->alloc(kDim * kRows * 4);
  if (!buffer) GTEST_SKIP() << "needs 18 GB of free device memory";
  std::vector<std::uint32_t> row(kDim);
  std::iota(row.begin(), row.end(), 7U);
  const Both source = both(row);
  const DevicePtr counter = *card->alloc(4);
  EXPECT_TRUE(write_counter(*card, counter, kRows - 1));
  EXPECT_TRUE(
      card->run(OffsetCopyJob{buffer->as<std::uint32_t>(), source.card.as<const std::uint32_t>(),
                              counter.as<const std::int32_t>(), kDim, kRows}));
  std::vector<std::uint32_t> last(kDim);
  EXPECT_TRUE(
      card->to_host(std::as_writable_bytes(std::span(last)), *buffer + (kRows - 1) * kDim * 4));
  EXPECT_EQ(last, row);
}

}  // namespace
}  // namespace kvo::cuda
