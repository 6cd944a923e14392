#include "optimized/memory/convert.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <boost/describe/enum_to_string.hpp>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "reference/contract/values/random.hpp"

namespace kvo::optimized {
namespace {

using traces::Random;

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

/// Those that the processor has and the converters are compiled for, and the plain loops.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> all;
  constexpr std::int64_t kFallBack = HWY_SSSE3 | HWY_AVX3_DL | HWY_SCALAR;
  for (std::int64_t left = hwy::SupportedTargets() & ~kFallBack; left != 0; left &= left - 1)
    all.push_back(left & -left);
  return all;
}

class Convert : public testing::TestWithParam<StorageFormat> {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
  static const StorageFormat& format() { return GetParam(); }

  // Compares rows of `dim` elements with those of the plain converters, on every target.
  static void compare(std::size_t dim, const std::vector<float>& rows) {
    const std::size_t bytes = stored_bytes(format(), dim);
    const std::size_t count = rows.size() / dim;
    std::vector<std::byte> want(count * bytes + 1, kGuard);
    std::vector<float> shown(rows.size() + 1, kGuardFloat);
    for (std::size_t row = 0; row < count; ++row) {
      encode(format(), std::span(rows).subspan(row * dim, dim), &want[row * bytes]);
      decode(format(), &want[row * bytes], std::span(shown).subspan(row * dim, dim));
    }
    for (const std::int64_t target : targets()) {
      hwy::SetSupportedTargetsForTest(target);
      std::vector<std::byte> got(want.size(), kGuard);
      encode_rows(format(), dim, rows, got.data());
      ASSERT_EQ(first_difference(std::as_bytes(std::span(got)), want), want.size())
          << "a byte of " << bytes << " a row of " << dim << " on " << hwy::TargetName(target);
      compare_decoded(dim, want, shown, target);
    }
  }
  // `want` and `rows` have one guard more than what is decoded.
  static void compare_decoded(std::size_t dim, const std::vector<std::byte>& rows,
                              const std::vector<float>& want, std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    std::vector<float> got(want.size(), kGuardFloat);
    decode_rows(format(), dim, rows.data(), std::span(got).first(want.size() - 1));
    const auto want_bytes = std::as_bytes(std::span(want));
    const std::size_t at = first_difference(std::as_bytes(std::span(got)), want_bytes);
    ASSERT_EQ(at, want_bytes.size()) << "rows of " << dim << " on " << hwy::TargetName(target)
                                     << ": " << got[at / 4] << ", want " << want[at / 4];
  }

 private:
  static std::size_t first_difference(std::span<const std::byte> a, std::span<const std::byte> b) {
    if (std::memcmp(a.data(), b.data(), a.size()) == 0) return a.size();
    return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  }

  static constexpr std::byte kGuard{0x5A};
  static constexpr float kGuardFloat = 7.0F;
};

// Every upper half with the lower halves where a rounding changes, and some between.
std::vector<float> floats_of_all_kinds() {
  std::vector<float> all;
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper)
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x2000U, 0x5A5AU,
                                      0x7FFFU, 0x8000U, 0x8001U, 0xF000U, 0xFFFFU})
      all.push_back(std::bit_cast<float>(upper << 16U | lower));
  return all;
}

TEST_P(Convert, FloatsOfAllKindsAreThoseOfTheReference) {
  if (in_groups(format().type)) return;
  compare(128, floats_of_all_kinds());
}

TEST_P(Convert, EveryCellIsReadAsTheReferenceReadsIt) {
  const std::size_t width = stored_bytes(format(), 1);
  if (in_groups(format().type) || width > 2) return;
  std::vector<std::byte> cells;
  for (std::uint32_t code = 0; code < (1U << (8 * width)); ++code)
    for (std::size_t i = 0; i < width; ++i)
      cells.push_back(static_cast<std::byte>(code >> (8 * i)));
  std::vector<float> want(cells.size() / width + 1, 7.0F);
  decode(format(), cells.data(), std::span(want).first(want.size() - 1));
  for (const std::int64_t target : targets()) compare_decoded(1, cells, want, target);
}

float drawn(Random& random, std::uint64_t kind) {
  const float unit = static_cast<float>(random.below(1U << 24U)) * 0x1p-24F;
  switch (kind) {
    case 0:
      return 2 * unit - 1;
    case 1:
      return 1'000 + unit;  // one-sided
    case 2:
      return (2 * unit - 1) * 0x1p-20F;  // scales near the subnormals of f16
    case 3:
      return (2 * unit - 1) * 1e-39F;
    case 4:
      return static_cast<float>(random.below(33)) / 2 - 8;  // ties
    case 5:
      return random.below(9) == 0 ? -0.0F : 0.0F;
    case 6:
      return std::ldexp(2 * unit - 1, static_cast<int>(random.below(254)) - 126);
    default:
      return random.below(60) == 0 ? (random.below(2) == 0 ? std::nanf("") : -kFloatInfinity)
                                   : unit;
  }
}

TEST_P(Convert, DrawnRowsAreThoseOfTheReference) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t dim = i % 3 == 0 ? 128 : 1 + random.below(150);
    const std::uint64_t kind = random.below(8);
    std::vector<float> rows(dim * (1 + random.below(3)));
    for (float& value : rows) value = drawn(random, kind);
    compare(dim, rows);
    if (HasFatalFailure()) return;
  }
}

// Groups that lie one behind the other are encoded many at a time: most of them alike here, so that
// some are, and single ones that are told otherwise among them.
TEST_P(Convert, ManyWholeGroupsAreThoseOfTheReference) {
  Random random(4);
  for (int i = 0; i < 150; ++i) {
    const std::size_t dim = 128 * (1 + random.below(2));
    const std::uint64_t usual = random.below(7);
    std::vector<float> rows(dim * (1 + random.below(80)));
    for (std::size_t group = 0; group < rows.size(); group += 32) {
      const std::uint64_t kind = random.below(40) == 0 ? random.below(9) : usual;
      const float sign = random.below(2) == 0 ? -1.0F : 1.0F;
      for (std::size_t at = group; at < group + 32; ++at)
        rows[at] = sign * drawn(random, std::min<std::uint64_t>(kind, 7));
      // Both signs of the largest magnitude, the positive one in front or behind.
      if (kind == 8) rows[group + random.below(16)] = -(rows[group + 16] = 3 * sign);
    }
    compare(dim, rows);
    if (HasFatalFailure()) return;
  }
}

std::vector<StorageFormat> formats() {
  std::vector<StorageFormat> all;
  for (const StorageType type : {StorageType::kF32, StorageType::kF16, StorageType::kBf16,
                                 StorageType::kF8E4m3, StorageType::kF8E5m2})
    all.push_back({type});
  for (const StorageType type : {StorageType::kQ8, StorageType::kQ4})
    for (const std::int64_t group : {32, 64, 128})
      for (const bool offset : {false, true}) all.push_back({type, group, offset});
  return all;
}

std::string format_name(const testing::TestParamInfo<StorageFormat>& made) {
  const StorageFormat& format = made.param;
  const std::string name = boost::describe::enum_to_string(format.type, "");
  if (!in_groups(format.type)) return name;
  return name + "_" + std::to_string(format.group) + (format.offset ? "_offset" : "");
}

INSTANTIATE_TEST_SUITE_P(All, Convert, testing::ValuesIn(formats()), format_name);

}  // namespace
}  // namespace kvo::optimized
