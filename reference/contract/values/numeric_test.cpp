#include "reference/contract/values/numeric.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/values/random.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo {
namespace {

using traces::Random;

constexpr std::uint32_t kPatterns = 0x10000;

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// NaNs become quiet; everything else comes back as it was.
std::uint16_t quieted(std::uint16_t bits, std::uint16_t infinity, std::uint16_t quiet) {
  return (bits & 0x7FFFU) > infinity ? static_cast<std::uint16_t>(bits | quiet) : bits;
}

// Every f32 at, just below and just above the places where a rounding to the narrower type, whose
// patterns Bits hold, changes.
template <class Bits, class Check>
void for_every_edge(float (*wide)(Bits), Check&& check) {
  constexpr std::uint32_t kPositive = (std::numeric_limits<Bits>::max() / 2) + 1U;
  for (std::uint32_t pattern = 0; pattern + 1 < kPositive; ++pattern) {
    const float low = wide(static_cast<Bits>(pattern));
    const float high = wide(static_cast<Bits>(pattern + 1));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const auto middle = static_cast<float>((double{low} + double{high}) / 2);
    for (const float edge : {low, middle, high})
      for (const float value : {std::nextafter(edge, -1e38F), edge, std::nextafter(edge, 1e38F)})
        for (const float sign : {1.0F, -1.0F}) check(sign * value);
  }
}

TEST(SixteenBits, EveryPatternComesBack) {
  for (std::uint32_t pattern = 0; pattern < kPatterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    ASSERT_EQ(f16_of(f32_of_f16(bits)), quieted(bits, 0x7C00U, 0x200U)) << pattern;
    ASSERT_EQ(bf16_of(f32_of_bf16(bits)), quieted(bits, 0x7F80U, 0x40U)) << pattern;
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

// ---- f8 ----

struct F8Type {
  std::uint8_t (*narrow)(float);
  float (*wide)(std::uint8_t);
  int exponent_bits;
  float most;
  int infinities;
  int nans;
};
constexpr F8Type kE4m3{f8_e4m3_of, f32_of_f8_e4m3, 4, 448.0F, 0, 2};
constexpr F8Type kE5m2{f8_e5m2_of, f32_of_f8_e5m2, 5, 57344.0F, 2, 6};

// The value that the bits of a code say, in double.
double spelled(const F8Type& type, std::uint8_t code) {
  const int fraction_bits = 7 - type.exponent_bits;
  const int exponent = (code & 0x7F) >> fraction_bits;
  const int fraction = code & ((1 << fraction_bits) - 1);
  const int bias = (1 << (type.exponent_bits - 1)) - 1;
  const double significand = (exponent > 0 ? 1.0 : 0.0) + std::ldexp(fraction, -fraction_bits);
  const double magnitude = std::ldexp(significand, std::max(exponent, 1) - bias);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

class F8 : public testing::TestWithParam<F8Type> {};

TEST_P(F8, EveryCodeIsWhatItsBitsSpell) {
  int infinities = 0;
  int nans = 0;
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<std::uint8_t>(code);
    const float value = GetParam().wide(bits);
    EXPECT_EQ(std::signbit(value), code >= 128) << code;
    infinities += std::isinf(value) ? 1 : 0;
    nans += std::isnan(value) ? 1 : 0;
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(double{value}, spelled(GetParam(), bits)) << code;
    EXPECT_EQ(GetParam().narrow(value), bits) << "comes back";
    EXPECT_LE(std::fabs(value), GetParam().most);
  }
  EXPECT_EQ(infinities, GetParam().infinities);
  EXPECT_EQ(nans, GetParam().nans);
}

// By search among all finite codes: the nearest, on a tie the even one, that is the one with an
// even last bit.
std::uint8_t nearest(const F8Type& type, float value) {
  std::uint8_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  const double magnitude = std::min(std::fabs(double{value}), double{type.most});
  for (int code = 0; code < 128; ++code) {
    const double of = spelled(type, static_cast<std::uint8_t>(code));
    if (of > type.most) continue;
    const double distance = std::fabs(magnitude - of);
    if (distance < least || (distance == least && code % 2 == 0)) {
      best = static_cast<std::uint8_t>(code);
      least = distance;
    }
  }
  return std::signbit(value) ? best | 0x80U : best;
}

TEST_P(F8, IsTheNearestValueEvenOnATieAndLimited) {
  std::vector<float> tried{0.0F, 1e-40F, 1e-20F, 3e38F};
  for_every_edge(GetParam().wide, [&](float value) { tried.push_back(value); });
  for (const float edge : {448.0F, 464.0F, 480.0F, 57344.0F, 61440.0F, 65536.0F})
    for (const float value : {std::nextafter(edge, 0.0F), edge, std::nextafter(edge, 1e38F)})
      tried.push_back(value);
  Random random(11);
  for (int i = 0; i < 3'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32U));
    const auto value = std::bit_cast<float>(bits);
    if (std::isfinite(value)) tried.push_back(value);
  }
  for (const float value : tried)
    for (const float sign : {1.0F, -1.0F})
      ASSERT_EQ(GetParam().narrow(sign * value), nearest(GetParam(), sign * value)) << value;
}

TEST_P(F8, InfinitiesAreLimitedAndNansStay) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(GetParam().wide(GetParam().narrow(kInfinity)), GetParam().most);
  EXPECT_EQ(GetParam().wide(GetParam().narrow(-kInfinity)), -GetParam().most);
  for (const std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0x7FA00000U, 0xFFFFFFFFU, 0xFF800001U})
    EXPECT_EQ(GetParam().narrow(std::bit_cast<float>(bits)), 0x7FU) << bits;
  EXPECT_TRUE(std::isnan(GetParam().wide(0x7F)));
  EXPECT_EQ(GetParam().narrow(-0.0F), 0x80U);
}

INSTANTIATE_TEST_SUITE_P(Both, F8, testing::Values(kE4m3, kE5m2),
                         [](const auto& made) { return made.index == 0 ? "e4m3" : "e5m2"; });

// ---- Groups ----

using Values = std::vector<float>;

Values shown(const StorageFormat& format, const Values& row) {
  std::vector<std::byte> stored(stored_bytes(format, row.size()));
  encode(format, row, stored.data());
  Values back(row.size());
  decode(format, stored.data(), back);
  return back;
}

// The bits, so that NaNs and signs of zero count.
std::vector<std::uint32_t> bits_of_all(const Values& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(bits_of(value));
  return bits;
}

std::vector<int> bytes_of(const StorageFormat& format, const Values& row) {
  std::vector<std::uint8_t> stored(stored_bytes(format, row.size()));
  encode(format, row, std::as_writable_bytes(std::span(stored)).data());
  return {stored.begin(), stored.end()};
}

constexpr StorageFormat kQ8{StorageType::kQ8};
constexpr StorageFormat kQ4{StorageType::kQ4};
constexpr StorageFormat kQ8Offset{StorageType::kQ8, 32, true};
constexpr StorageFormat kQ4Offset{StorageType::kQ4, 32, true};

TEST(Groups, CodesAreThoseOfGgml) {
  // Scales 1, 1, 2, 1; the second group has one element.
  EXPECT_EQ(bytes_of(kQ8, {127, -126.5F, 0.49999997F, 0.5F, -0.5F}),
            (std::vector<int>{0x00, 0x3C, 127, 0x81, 0, 1, 0xFF}));
  EXPECT_EQ(bytes_of(kQ4, {8, -1, 7, -7, 0.5F}), (std::vector<int>{0x00, 0xBC, 0xF0, 0x89, 0x01}));
  EXPECT_EQ(bytes_of(kQ8Offset, {10, 520, 11, 12, 10.5F}),
            (std::vector<int>{0x00, 0x40, 0x00, 0x49, 0, 255, 1, 1, 0}));
  EXPECT_EQ(bytes_of(kQ4Offset, {-4, 11, -3.5F, 0}),
            (std::vector<int>{0x00, 0x3C, 0x00, 0xC4, 0x10, 0x4F}));
}

TEST(Groups, TheFirstOfTheLargestMagnitudeTellsTheScaleOfQ4) {
  EXPECT_EQ(shown(kQ4, {8, -8, 1}), (Values{8, -7, 1}));
  EXPECT_EQ(shown(kQ4, {-8, 8, 1}), (Values{-8, 7, 1}));
}

TEST(Groups, TheLastOneHasWhatIsLeft) {
  Values row(70, 0.25F);
  row[33] = 1'000;
  row[40] = 5.5F;
  for (const StorageFormat& format : {kQ8, kQ4, kQ8Offset, kQ4Offset}) {
    const Values back = shown(format, row);
    EXPECT_NEAR(back[0], 0.25, 0.001);
    EXPECT_GT(std::fabs(back[40] - 5.5F), 1) << "shares a scale with 1000";
    EXPECT_NEAR(back[69], 0.25, 0.001) << "is of a group of six";
    const Values tail(row.begin() + 64, row.end());
    EXPECT_EQ(shown(format, tail), Values(back.begin() + 64, back.end()));
  }
  EXPECT_EQ(stored_bytes(kQ8, 70), 70U + 3 * 2);
  EXPECT_EQ(stored_bytes(kQ4Offset, 65), 32U + 1 + 3 * 4);
  EXPECT_EQ(stored_bytes(kQ8, 0), 0U);
}

class EveryGroup : public testing::TestWithParam<std::tuple<StorageType, std::int64_t, bool>> {
 protected:
  static StorageFormat format() {
    return {std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam())};
  }
};

TEST_P(EveryGroup, ZeroBytesAreZeroesAndZeroesZeroBytesButForTheCodeOfZero) {
  const Values row(200, 0.0F);
  Values back(row.size(), 1.0F);
  const std::vector<std::byte> zeroes(stored_bytes(format(), row.size()));
  decode(format(), zeroes.data(), back);
  EXPECT_EQ(bits_of_all(back), bits_of_all(row));
  EXPECT_EQ(bits_of_all(shown(format(), row)), bits_of_all(row));
  EXPECT_EQ(bits_of_all(shown(format(), Values(200, -0.0F))), bits_of_all(row));
}

TEST_P(EveryGroup, OneWithoutANumberHasNone) {
  const auto most = static_cast<std::size_t>(format().group);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::nanf(""), -std::nanf("1")}) {
    Values row(2 * most, 0.0F);
    row[most + 7] = bad;
    const Values back = shown(format(), row);
    for (std::size_t i = 0; i < row.size(); ++i)
      ASSERT_EQ(bits_of(back[i]), bits_of(i < most ? 0.0F : std::nanf(""))) << i;
  }
}

TEST_P(EveryGroup, WhatIsTooLargeIsLimited) {
  Values row(32, 0.0F);
  row[0] = -3e38F;
  row[1] = 3e38F;
  const Values back = shown(format(), row);
  const bool four = format().type == StorageType::kQ4;
  const float most = format().offset ? (four ? 14.0F : 254.0F) : (four ? 7.0F : 127.0F);
  EXPECT_EQ(back[1], most * 65504.0F);
  EXPECT_LE(back[0], -65504.0F);
}

TEST_P(EveryGroup, WhatIsTooSmallIsItsOffset) {
  Values row(32, 0.0F);
  row[3] = 1e-9F;
  EXPECT_EQ(bits_of_all(shown(format(), row)), bits_of_all(Values(32, 0.0F)));
  for (float& value : row) value += 1.0F;
  if (format().offset) {
    EXPECT_EQ(shown(format(), row), Values(32, 1.0F));
  }
}

// Rows of many kinds: wide, one-sided, tiny, subnormal, few values, one that stands out.
Values drawn_row(Random& random) {
  Values row(1 + random.below(150));
  const auto kind = random.below(6);
  for (float& value : row) {
    const float unit = static_cast<float>(random.below(1U << 24U)) * 0x1p-24F;
    if (kind == 0) value = 2 * unit - 1;
    if (kind == 1) value = 1'000 + unit;
    if (kind == 2) value = (2 * unit - 1) * 1e-6F;
    if (kind == 3) value = (2 * unit - 1) * 1e-39F;
    if (kind == 4) value = static_cast<float>(random.below(3)) - 1.0F;
    if (kind == 5) value = random.below(40) == 0 ? -5e4F * unit : unit;
  }
  return row;
}

template <class Visit>
void for_each_piece(const StorageFormat& format, std::size_t elements, Visit&& visit) {
  const auto most = static_cast<std::size_t>(format.group);
  for (std::size_t first = 0; first < elements; first += most)
    visit(first, std::min(most, elements - first));
}

TEST_P(EveryGroup, ErrorsStayWithinTheBound) {
  Random random(5);
  double tightest = 0;
  for (int i = 0; i < 400; ++i) {
    const Values row = drawn_row(random);
    const Values back = shown(format(), row);
    for_each_piece(format(), row.size(), [&](std::size_t first, std::size_t count) {
      const double bound = error_bound(format(), std::span(row).subspan(first, count));
      ASSERT_TRUE(std::isfinite(bound));
      for (std::size_t at = first; at < first + count; ++at) {
        const double error = std::fabs(double{back[at]} - double{row[at]});
        ASSERT_LE(error, bound) << row[at] << " in a row of " << row.size();
        if (bound > 0) tightest = std::max(tightest, error / bound);
      }
    });
  }
  EXPECT_GT(tightest, 0.8) << "the bound says little";
}

// Codes are the nearest to what the scale tells, found by trying all of them.
TEST_P(EveryGroup, NoOtherCodeIsMuchNearer) {
  Random random(6);
  const bool four = format().type == StorageType::kQ4;
  for (int i = 0; i < 60; ++i) {
    const Values row = drawn_row(random);
    const Values back = shown(format(), row);
    std::vector<std::byte> stored(stored_bytes(format(), row.size()));
    encode(format(), row, stored.data());
    std::size_t byte = 0;
    for_each_piece(format(), row.size(), [&](std::size_t first, std::size_t count) {
      const auto f16_at = [&](std::size_t at) {
        return double{load_element(DType::kF16, stored.data() + at)};
      };
      const double step = f16_at(byte);
      const double offset = format().offset ? f16_at(byte + 2) : 0;
      byte += (format().offset ? 4 : 2) + (four ? (count + 1) / 2 : count);
      int low = format().offset ? 0 : four ? -8 : -127;
      int high = format().offset ? (four ? 15 : 255) : (four ? 7 : 127);
      // A code is told by the scale before it is rounded: off by 2^-11 at most, and by 2^-25.
      const double slack = high * std::max(std::fabs(step) * 0x1p-10, 0x1p-24) +
                           std::max(std::fabs(offset) * 0x1p-10, format().offset ? 0x1p-24 : 0.0);
      for (std::size_t at = first; at < first + count; ++at) {
        double least = std::numeric_limits<double>::infinity();
        for (int code = low; code <= high; ++code)
          least = std::min(least, std::fabs(double{row[at]} - (code * step + offset)));
        ASSERT_LE(std::fabs(double{row[at]} - double{back[at]}), least + slack) << row[at];
      }
    });
  }
}

TEST_P(EveryGroup, WhatIsShownIsStoredAsItIs) {
  if (format().offset) return;  // its largest element is rounded, and so may be its scale
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    const Values back = shown(format(), drawn_row(random));
    ASSERT_EQ(bits_of_all(shown(format(), back)), bits_of_all(back));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryGroup,
                         testing::Combine(testing::Values(StorageType::kQ8, StorageType::kQ4),
                                          testing::Values(32, 64, 128), testing::Bool()),
                         [](const auto& made) {
                           return std::string(std::get<0>(made.param) == StorageType::kQ8 ? "q8"
                                                                                          : "q4") +
                                  "_" + std::to_string(std::get<1>(made.param)) +
                                  (std::get<2>(made.param) ? "_offset" : "");
                         });

TEST(Storage, ErrorsOfFloatsStayWithinTheBound) {
  Random random(8);
  for (const StorageType type : {StorageType::kF32, StorageType::kF16, StorageType::kBf16,
                                 StorageType::kF8E4m3, StorageType::kF8E5m2})
    for (int i = 0; i < 2'000; ++i) {
      const auto value =
          std::bit_cast<float>(static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32U)));
      const Values one{i % 2 == 0 ? value : std::fmod(value, 400.0F)};
      const double bound = error_bound({type}, one);
      if (std::isinf(bound)) continue;
      ASSERT_LE(std::fabs(double{shown({type}, one)[0]} - double{one[0]}), bound) << one[0];
    }
}

TEST(Storage, AFormatThatIsNoneIsRefused) {
  EXPECT_TRUE(check({StorageType::kQ4, 128, true}).has_value());
  EXPECT_TRUE(check({StorageType::kF16}).has_value());
  EXPECT_EQ(check({StorageType::kQ8, 48}).error(), fail(Code::kOutOfRange));
  EXPECT_EQ(check({StorageType::kQ8, 0}).error(), fail(Code::kOutOfRange));
  EXPECT_EQ(check({StorageType::kF16, 64}).error(), fail(Code::kOutOfRange));
  EXPECT_EQ(check({StorageType::kF16, 32, true}).error(), fail(Code::kOutOfRange));
}

TEST(Storage, WhatIsShownAreTheCellsOrTheDecodedGroup) {
  const Values row{1.1F, -2.3F, 1000.0F};
  for (const StorageFormat& format :
       {StorageFormat{StorageType::kBf16}, StorageFormat{StorageType::kF8E4m3}, kQ8, kQ4Offset}) {
    const DType dtype = dtype_of(format.type);
    std::vector<std::byte> cells(row.size() * dtype_bytes(dtype));
    show_stored(format, row, cells.data());
    const Values back = shown(format, row);
    for (std::size_t i = 0; i < row.size(); ++i)
      EXPECT_EQ(load_element(dtype, cells.data() + i * dtype_bytes(dtype)), back[i]);
  }
}

}  // namespace
}  // namespace kvo
