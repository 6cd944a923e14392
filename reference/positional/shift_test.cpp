#include "reference/positional/shift.hpp"

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::positional {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr float kNear = 1e-5F;

std::vector<float> shifted(const ShiftConfig& config, const Shape& shape, std::vector<float> keys,
                           const std::vector<std::int32_t>& offsets) {
  const Status done = make_shift(config)(0, shape, keys, offsets);
  EXPECT_TRUE(done.has_value());
  return keys;
}

std::vector<float> turned(std::vector<float> head, std::int32_t offset,
                          std::optional<float> base = std::nullopt) {
  const Shape shape{1, 1, std::ssize(head)};
  return shifted({.kind = ShiftKind::kRope, .base = base}, shape, std::move(head), {offset});
}

float norm(const std::vector<float>& head) {
  float sum = 0;
  for (const float x : head) sum += x * x;
  return std::sqrt(sum);
}

const std::vector<float> kHead{0.5F, -1.25F, 3.0F, 0.75F, 2.0F, -0.5F};

TEST(ShiftAdd, AddsTheOffsetOfTheCellToItsWholeRow) {
  EXPECT_THAT(shifted({.kind = ShiftKind::kAdd, .scale = 0.5F}, {3, 2, 2},
                      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {-2, 0, 4}),
              ElementsAre(0, 1, 2, 3, 5, 6, 7, 8, 11, 12, 13, 14));
}

TEST(ShiftAdd, CountsOneAPositionWithoutAScale) {
  EXPECT_THAT(shifted({.kind = ShiftKind::kAdd}, {1, 1, 1}, {10}, {-3}), ElementsAre(7));
}

TEST(ShiftAdd, ComputesInF32) {
  // 2^24 + 1 is no f32.
  EXPECT_THAT(shifted({.kind = ShiftKind::kAdd}, {1, 1, 1}, {0x1p24F}, {1}), ElementsAre(0x1p24F));
}

TEST(ShiftRope, TurnsATwoElementHeadByTheOffset) {
  const std::vector<float> head = turned({1, 0}, 3);
  EXPECT_FLOAT_EQ(head[0], std::cos(3.0F));
  EXPECT_FLOAT_EQ(head[1], std::sin(3.0F));
  EXPECT_FLOAT_EQ(turned({0, 1}, 3)[0], -std::sin(3.0F));
}

TEST(ShiftRope, PairsTheHalvesAndSlowsDownByTheBase) {
  // Pairs (0, 2) and (1, 3); the second turns by offset * 100^(-1/2).
  const std::vector<float> head = turned({1, 1, 0, 0}, -2, 100.0F);
  EXPECT_THAT(head,
              ElementsAre(FloatNear(std::cos(2.0F), kNear), FloatNear(std::cos(0.2F), kNear),
                          FloatNear(-std::sin(2.0F), kNear), FloatNear(-std::sin(0.2F), kNear)));
}

TEST(ShiftRope, UsesTheUsualBaseWhenNoneIsGiven) {
  EXPECT_EQ(turned(kHead, 5), turned(kHead, 5, 10'000.0F));
  EXPECT_NE(turned(kHead, 5), turned(kHead, 5, 500.0F));
}

TEST(ShiftRope, TwoTurnsAreOneTurnBySum) {
  for (const auto& [a, b] : {std::pair{3, 4}, std::pair{-7, 2}, std::pair{100, -100}})
    EXPECT_THAT(turned(turned(kHead, a), b), Pointwise(FloatNear(kNear), turned(kHead, a + b)));
}

TEST(ShiftRope, ByZeroChangesNoBit) {
  EXPECT_EQ(turned(kHead, 0), kHead);
}

TEST(ShiftRope, KeepsTheNorm) {
  EXPECT_NEAR(norm(turned(kHead, 11)), norm(kHead), kNear);
  EXPECT_GT(std::abs(turned(kHead, 11)[0] - kHead[0]), 0.1F);
}

TEST(ShiftRope, LeavesAnOddLastElement) {
  const std::vector<float> head = turned({1, 0, 7}, 2);
  EXPECT_FLOAT_EQ(head[0], std::cos(2.0F));
  EXPECT_EQ(head[2], 7);
  EXPECT_THAT(turned({7}, 2), ElementsAre(7));
}

TEST(ShiftRope, TurnsEachCellByItsOwnOffsetInEveryHead) {
  const std::vector<float> keys =
      shifted({.kind = ShiftKind::kRope}, {2, 2, 2}, {1, 0, 0, 1, 1, 0, 0, 1}, {0, 1});
  const float c = std::cos(1.0F);
  const float s = std::sin(1.0F);
  EXPECT_THAT(keys, Pointwise(FloatNear(kNear), std::vector<float>{1, 0, 0, 1, c, s, -s, c}));
}

TEST(ShiftFail, AnswersItsMessageAndTouchesNothing) {
  std::vector<float> keys{1, 2};
  const std::array<std::int32_t, 2> offsets{-1, -1};
  const Status done =
      make_shift({.kind = ShiftKind::kFail, .message = "no"})(0, {2, 1, 1}, keys, offsets);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code_text(), "other:no");
  EXPECT_THAT(keys, ElementsAre(1, 2));
  const Status wordless = make_shift({.kind = ShiftKind::kFail})(0, {2, 1, 1}, keys, offsets);
  EXPECT_FALSE(wordless.has_value());
}

TEST(ShiftNoted, IsToldOfACallBeforeItHappens) {
  std::vector<std::string> order;
  const Shift inner = [&](std::int64_t, const Shape&, std::span<float> keys,
                          std::span<const std::int32_t>) -> Status {
    order.emplace_back("call");
    keys[0] = 9;
    return fail_other("late");
  };
  std::vector<std::int32_t> told;
  const Shift watched = noted(
      inner, [&](std::int64_t layer, const Shape& shape, std::span<const std::int32_t> offsets) {
        order.emplace_back("note");
        EXPECT_EQ(layer, 5);
        EXPECT_EQ(shape, (Shape{2, 1, 1}));
        told.assign(offsets.begin(), offsets.end());
      });
  std::vector<float> keys{1, 2};
  const std::array<std::int32_t, 2> offsets{-1, 0};
  const Status done = watched(5, {2, 1, 1}, keys, offsets);
  EXPECT_THAT(order, ElementsAre("note", "call"));
  EXPECT_THAT(told, ElementsAre(-1, 0));
  EXPECT_THAT(keys, ElementsAre(9, 2));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code_text(), "other:late");
}

TEST(ShiftBegun, TellsWhatTheFunctionDoes) {
  const std::array<std::int32_t, 1> offsets{-2};
  const auto begun = [&](const ShiftConfig& config) {
    return make_begin_shift(config)(3, {1, 1, 2}, offsets);
  };
  EXPECT_EQ(std::get<AddedOffset>(*begun({.kind = ShiftKind::kAdd})).scale, 1.0F);
  EXPECT_EQ(std::get<AddedOffset>(*begun({.kind = ShiftKind::kAdd, .scale = 0.5F})).scale, 0.5F);
  EXPECT_EQ(std::get<TurnedPairs>(*begun({.kind = ShiftKind::kRope})).base, 10'000.0);
  EXPECT_EQ(std::get<TurnedPairs>(*begun({.kind = ShiftKind::kRope, .base = 7.0F})).base, 7.0);
  const auto refused = begun({.kind = ShiftKind::kFail, .message = "no"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code_text(), "other:no");
}

TEST(ShiftBegun, IsNotedAsACall) {
  std::vector<std::int32_t> told;
  const BeginShift begin =
      noted(make_begin_shift({.kind = ShiftKind::kFail}),
            [&](std::int64_t layer, const Shape& shape, std::span<const std::int32_t> offsets) {
              EXPECT_EQ(layer, 3);
              EXPECT_EQ(shape, (Shape{2, 1, 2}));
              told.assign(offsets.begin(), offsets.end());
            });
  const std::array<std::int32_t, 2> offsets{-2, 0};
  EXPECT_FALSE(begin(3, {2, 1, 2}, offsets).has_value());
  EXPECT_THAT(told, ElementsAre(-2, 0));
}

}  // namespace
}  // namespace kvo::positional
