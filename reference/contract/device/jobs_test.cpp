// The kernels' logic, verified on the host: any order of items leaves the same memory.
#include "reference/contract/device/jobs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/values/numeric.hpp"

namespace kvo {
namespace {

template <class Job>
void run_shuffled(const Job& job, unsigned seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(job.items()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937(seed));
  PlainMemory memory;
  for (const std::int64_t item : order) job.run(item, memory);
}

constexpr std::uint32_t kPoison = 0x7FC0DEADU;

TEST(OffsetCopyJob, WritesOneRowAtTheCounterInAnyOrder) {
  constexpr std::int64_t kDim = 7;
  constexpr std::int64_t kRows = 5;
  std::vector<std::uint32_t> source(kDim);
  std::iota(source.begin(), source.end(), 100U);
  for (std::int32_t counter = 0; counter < kRows; ++counter) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      std::vector<std::uint32_t> buffer(kDim * kRows, kPoison);
      run_shuffled(OffsetCopyJob{buffer.data(), source.data(), &counter, kDim, kRows}, seed);
      for (std::int64_t i = 0; i < kDim * kRows; ++i) {
        const bool inside = i / kDim == counter;
        EXPECT_EQ(buffer[static_cast<std::size_t>(i)],
                  inside ? 100U + static_cast<std::uint32_t>(i % kDim) : kPoison);
      }
    }
  }
}

TEST(OffsetCopyJob, WritesNothingAtTheEndOrBeyond) {
  const std::vector<std::uint32_t> source(3, 1);
  for (const std::int32_t counter : {4, 5, 1'000'000}) {
    std::vector<std::uint32_t> buffer(12, kPoison);
    run_shuffled(OffsetCopyJob{buffer.data(), source.data(), &counter, 3, 4}, 1);
    EXPECT_EQ(std::ranges::count(buffer, kPoison), 12);
  }
}

TEST(OffsetCopyHalfJob, Converts) {
  const std::vector<std::uint32_t> source{std::bit_cast<std::uint32_t>(1.0F),
                                          std::bit_cast<std::uint32_t>(-2.5F)};
  std::vector<std::uint16_t> buffer(6, 0x7E01U);
  const std::int32_t counter = 2;
  run_shuffled(OffsetCopyHalfJob{buffer.data(), source.data(), &counter, 2, 3}, 1);
  EXPECT_EQ(buffer,
            (std::vector<std::uint16_t>{0x7E01U, 0x7E01U, 0x7E01U, 0x7E01U, 0x3C00U, 0xC100U}));
}

TEST(IncrementJob, AddsOnce) {
  std::int32_t counter = 41;
  run_shuffled(IncrementJob{&counter, 1}, 1);
  EXPECT_EQ(counter, 42);
}

TEST(HalfBits, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t half = 0; half <= 0xFFFFU; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    const std::uint32_t wide = float_of_half_bits(bits);
    EXPECT_EQ(wide, std::bit_cast<std::uint32_t>(f32_of_f16(bits)));
    if (!std::isnan(std::bit_cast<float>(wide))) {
      EXPECT_EQ(half_of_float_bits(wide), bits);
    }
  }
}

// Around every half there are floats that round down, tie, and round up.
TEST(HalfBits, RoundsLikeTheReference) {
  for (std::uint32_t half = 0; half <= 0xFFFFU; ++half) {
    const std::uint32_t base = float_of_half_bits(static_cast<std::uint16_t>(half));
    for (const std::uint32_t more : {0U, 1U, 0xFFFU, 0x1000U, 0x1001U, 0x1FFFU}) {
      const std::uint32_t bits = base + more;
      ASSERT_EQ(half_of_float_bits(bits), f16_of(std::bit_cast<float>(bits))) << std::hex << bits;
    }
  }
}

TEST(HalfBits, RoundsSmallNumbersLikeTheReference) {
  for (std::uint32_t bits = 0x32000000U; bits < 0x39000000U; bits += 977U)
    ASSERT_EQ(half_of_float_bits(bits), f16_of(std::bit_cast<float>(bits))) << std::hex << bits;
}

// Every upper half with the lower halves where a rounding changes.
TEST(CellBits, RoundLikeTheReference) {
  for (std::uint32_t upper = 0; upper <= 0xFFFFU; ++upper)
    for (const std::uint32_t lower : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      const std::uint32_t bits = upper << 16U | lower;
      const auto value = std::bit_cast<float>(bits);
      ASSERT_EQ(brain_of_float_bits(bits), bf16_of(value)) << std::hex << bits;
      ASSERT_EQ(e4m3_of_float_bits(bits), f8_e4m3_of(value)) << std::hex << bits;
      ASSERT_EQ(e5m2_of_float_bits(bits), f8_e5m2_of(value)) << std::hex << bits;
    }
}

TEST(CellBits, AreReadAsTheReferenceReadsThem) {
  for (std::uint32_t cell = 0; cell <= 0xFFFFU; ++cell) {
    const auto brain = static_cast<std::uint16_t>(cell);
    ASSERT_EQ(float_of_brain_bits(brain), std::bit_cast<std::uint32_t>(f32_of_bf16(brain)));
    if (cell > 0xFFU) continue;
    const auto small = static_cast<std::uint8_t>(cell);
    ASSERT_EQ(float_of_e4m3_bits(small), std::bit_cast<std::uint32_t>(f32_of_f8_e4m3(small)));
    ASSERT_EQ(float_of_e5m2_bits(small), std::bit_cast<std::uint32_t>(f32_of_f8_e5m2(small)));
  }
}

TEST(ConversionJobs, UndoEachOther) {
  std::vector<std::uint16_t> halves(0x7C00U);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::vector<std::uint32_t> wide(halves.size());
  std::vector<std::uint16_t> back(halves.size());
  const auto count = static_cast<std::int64_t>(halves.size());
  run_shuffled(ToFloatJob{wide.data(), halves.data(), count}, 5);
  run_shuffled(ToHalfJob{back.data(), wide.data(), count}, 6);
  EXPECT_EQ(back, halves);
}

}  // namespace
}  // namespace kvo
