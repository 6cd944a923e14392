#include "reference/contract/values/attention.hpp"

#include <array>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr double kUnseen = -std::numeric_limits<double>::infinity();
constexpr double kNear = 1e-12;

TEST(Attention, WeighsRowsByTheSoftmaxOfTheirLogits) {
  const Tensor k = tensor_of({2, 1, 4}, std::array{1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 1.0F, 0.0F, 0.0F});
  const Tensor v = tensor_of({2, 1, 1}, std::array{10.0F, 20.0F});
  const std::array<double, 4> query{2 * std::log(3.0), 0, 0, 0};
  const std::array<double, 2> mask{0, 0};
  // Logits log 3 and 0: weights 3/4 and 1/4.
  EXPECT_THAT(attention({query, view_of(k), view_of(v), mask}),
              ElementsAre(DoubleNear(12.5, kNear)));
}

TEST(Attention, DoesNotLookAtMaskedRows) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor k = tensor_of({2, 1, 1}, std::array{nan, 3.0F});
  const Tensor v = tensor_of({2, 1, 2}, std::array{nan, nan, 5.0F, -7.0F});
  const std::array<double, 1> query{1};
  const std::array<double, 2> mask{kUnseen, 0};
  EXPECT_THAT(attention({query, view_of(k), view_of(v), mask}), ElementsAre(5.0, -7.0));
}

TEST(Attention, GivesZerosToATokenThatSeesNothing) {
  const Tensor k = tensor_of({1, 1, 1}, std::array{3.0F});
  const Tensor v = tensor_of({1, 1, 2}, std::array{5.0F, -7.0F});
  const std::array<double, 1> query{1};
  const std::array<double, 1> mask{kUnseen};
  EXPECT_THAT(attention({query, view_of(k), view_of(v), mask}), ElementsAre(0.0, 0.0));
}

TEST(Attention, SharesAKvHeadAmongItsGroup) {
  const Tensor k = tensor_of({1, 2, 1}, std::array{1.0F, 1.0F});
  const Tensor v = tensor_of({1, 2, 1}, std::array{5.0F, 6.0F});
  const std::array<double, 4> query{1, 1, 1, 1};
  const std::array<double, 1> mask{0};
  EXPECT_THAT(attention({query, view_of(k), view_of(v), mask}), ElementsAre(5.0, 5.0, 6.0, 6.0));
}

TEST(Attention, ReadsRowsWhereTheyLie) {
  // Values with the row axis fastest: [kv_head][dim][row].
  const Tensor k = tensor_of({2, 1, 1}, std::array{0.0F, 0.0F});
  const Tensor v = tensor_of({1, 2, 2}, std::array{1.0F, 3.0F, 10.0F, 30.0F});
  const StridedView rows{{2, 1, 2}, {1, 4, 2}, v.dtype, v.bytes.data()};
  const std::array<double, 1> query{1};
  const std::array<double, 2> mask{0, 0};
  EXPECT_THAT(attention({query, view_of(k), rows, mask}), ElementsAre(2.0, 20.0));
}

TEST(Attention, LargeLogitsDoNotOverflow) {
  const Tensor k = tensor_of({2, 1, 1}, std::array{1e30F, -1e30F});
  const Tensor v = tensor_of({2, 1, 1}, std::array{5.0F, 6.0F});
  const std::array<double, 1> query{1e10};
  const std::array<double, 2> mask{0, 0};
  EXPECT_THAT(attention({query, view_of(k), view_of(v), mask}), ElementsAre(5.0));
}

}  // namespace
}  // namespace kvo
