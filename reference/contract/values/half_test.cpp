#include "reference/contract/values/half.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kvo {
namespace {

constexpr std::uint32_t kPatterns = 0x10000;

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// NaNs become quiet; everything else comes back as it was.
std::uint16_t quieted(std::uint16_t bits, std::uint16_t infinity, std::uint16_t quiet) {
  return (bits & 0x7FFFU) > infinity ? static_cast<std::uint16_t>(bits | quiet) : bits;
}

// Every f32 at, just below and just above the places where a rounding to the narrower type changes.
template <class Wide, class Check>
void for_every_edge(Wide&& wide, Check&& check) {
  for (std::uint32_t pattern = 0; pattern + 1 < 0x7FFFU; ++pattern) {
    const float low = wide(static_cast<std::uint16_t>(pattern));
    const float high = wide(static_cast<std::uint16_t>(pattern + 1));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const auto middle = static_cast<float>((double{low} + double{high}) / 2);
    for (const float edge : {low, middle, high})
      for (const float value : {std::nextafter(edge, -1e38F), edge, std::nextafter(edge, 1e38F)})
        for (const float sign : {1.0F, -1.0F}) check(sign * value);
  }
}

TEST(Half, EveryPatternComesBack) {
  for (std::uint32_t pattern = 0; pattern < kPatterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    ASSERT_EQ(f16_of(f32_of_f16(bits)), quieted(bits, 0x7C00U, 0x200U)) << pattern;
  }
}

TEST(Half, TiesGoToEven) {
  EXPECT_EQ(f32_of_f16(f16_of(2049.0F)), 2048.0F);
  EXPECT_EQ(f32_of_f16(f16_of(2051.0F)), 2052.0F);
  EXPECT_EQ(f16_of(0x1p-25F), 0x0000U);
  EXPECT_EQ(f16_of(0x3p-25F), 0x0002U);
}

TEST(Half, SubnormalsAreKept) {
  EXPECT_EQ(f32_of_f16(0x0001U), 0x1p-24F);
  EXPECT_EQ(f16_of(0x1p-24F), 0x0001U);
  EXPECT_EQ(f16_of(std::nextafter(0x1p-25F, 1.0F)), 0x0001U);
  EXPECT_EQ(f16_of(std::nextafter(0x1p-14F, 0.0F)), 0x0400U);
  EXPECT_EQ(f16_of(-std::numeric_limits<float>::denorm_min()), 0x8000U);
}

TEST(Half, TooLargeIsInfinity) {
  EXPECT_EQ(f16_of(65504.0F), 0x7BFFU);
  EXPECT_EQ(f16_of(std::nextafter(65520.0F, 0.0F)), 0x7BFFU);
  EXPECT_EQ(f16_of(65520.0F), 0x7C00U);
  EXPECT_EQ(f16_of(-std::numeric_limits<float>::infinity()), 0xFC00U);
}

TEST(Half, ANanKeepsItsSignAndUpperPayload) {
  EXPECT_EQ(f16_of(std::bit_cast<float>(0xFF802000U)), 0xFE01U);
  EXPECT_EQ(bits_of(f32_of_f16(0x7E01U)), 0x7FC02000U);
}

#ifdef __FLT16_MANT_DIG__
TEST(Half, TheCompilerRoundsTheSame) {
  const auto compiled = [](float value) {
    return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
  };
  for_every_edge(f32_of_f16,
                 [&](float value) { ASSERT_EQ(f16_of(value), compiled(value)) << value; });
  for (std::uint32_t pattern = 0; pattern < kPatterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    if (std::isnan(f32_of_f16(bits))) continue;
    const auto wide = static_cast<float>(std::bit_cast<_Float16>(bits));
    ASSERT_EQ(bits_of(f32_of_f16(bits)), bits_of(wide)) << pattern;
  }
}
#endif

TEST(Bfloat, EveryPatternComesBack) {
  for (std::uint32_t pattern = 0; pattern < kPatterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    ASSERT_EQ(bf16_of(f32_of_bf16(bits)), quieted(bits, 0x7F80U, 0x40U)) << pattern;
  }
}

TEST(Bfloat, IsTheNearerNeighbourAndEvenOnATie) {
  for_every_edge(f32_of_bf16, [&](float value) {
    const std::uint32_t below = bits_of(value) & 0xFFFF0000U;
    const std::uint32_t rest = bits_of(value) & 0xFFFFU;
    const bool up = rest > 0x8000U || (rest == 0x8000U && (below & 0x10000U) != 0);
    ASSERT_EQ(std::uint32_t{bf16_of(value)}, (below + (up ? 0x10000U : 0U)) >> 16U) << value;
  });
}

TEST(Bfloat, TooLargeIsInfinity) {
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::max()), 0x7F80U);
}

}  // namespace
}  // namespace kvo
