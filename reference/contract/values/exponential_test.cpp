// The exponential is right, and its bits are the same wherever this is compiled.
#include "reference/contract/values/exponential.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "reference/contract/values/random.hpp"

namespace kvo {
namespace {

// Numbers between two of the same sign, counted in units of the last place.
std::int64_t apart(double a, double b) {
  return std::abs(std::bit_cast<std::int64_t>(a) - std::bit_cast<std::int64_t>(b));
}

// Over the range of results, and close to 0.
double some_exponent(traces::Random& random) {
  const auto whole = static_cast<double>(random.below(1'000'000)) / 1'000'000;
  return random.chance(20) ? whole - 0.5 : whole * 1454 - 745;
}

TEST(Exponential, IsWithinOneUnitOfTheTrueValue) {
  // The nearest numbers to the true values, computed with 60 digits.
  EXPECT_EQ(exponential(0.0), 1);
  EXPECT_EQ(exponential(-0.0), 1);
  EXPECT_LE(apart(exponential(1), 0x1.5bf0a8b145769p+1), 1);
  EXPECT_LE(apart(exponential(-0.25), 0x1.8ebef9eac820bp-1), 1);
  EXPECT_LE(apart(exponential(-9.5), 0x1.39f38a5498fe2p-14), 1);
  EXPECT_LE(apart(exponential(-20.125), 0x1.f3fe0cb68b20cp-30), 1);
  EXPECT_LE(apart(exponential(-100.3), 0x1.3aab0c9589e7bp-145), 1);
  EXPECT_LE(apart(exponential(-700.1), 0x1.f52f93df4dfcfp-1011), 1);
  EXPECT_LE(apart(exponential(-708.9), 0x0.9ab77c6e3d8a5p-1022), 1);
  EXPECT_LE(apart(exponential(-740), 0x0.0000000000055p-1022), 1);
  EXPECT_LE(apart(exponential(709.78), 0x1.fe9ce5c4c52b4p+1023), 1);
}

TEST(Exponential, IsCloseToTheLibrarys) {
  traces::Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const double x = some_exponent(random);
    ASSERT_LE(apart(exponential(x), std::exp(x)), 1) << x;
  }
}

TEST(Exponential, EndsInZeroInfinityAndNan) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(exponential(-745.2), 0);
  EXPECT_EQ(exponential(-kInfinity), 0);
  EXPECT_EQ(exponential(709.79), kInfinity);
  EXPECT_EQ(exponential(kInfinity), kInfinity);
  const double negative_nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(exponential(negative_nan)),
            std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN()));
}

TEST(Exponential, HasTheSameBitsEverywhere) {
  traces::Random random(2);
  std::uint64_t folded = 0;
  for (int i = 0; i < 100'000; ++i)
    folded =
        std::rotl(folded, 7) ^ std::bit_cast<std::uint64_t>(exponential(some_exponent(random)));
  EXPECT_EQ(folded, 2430609775521506723U);
}

}  // namespace
}  // namespace kvo
