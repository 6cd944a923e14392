#include "reference/contract/values/strided_view.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo {
namespace {

using testing::ElementsAre;

Tensor counting(Shape shape) {
  Tensor tensor = make_tensor(std::move(shape));
  float next = 0;
  for (float& element : tensor.floats()) element = next++;
  return tensor;
}

// Elements 0, 1, 2, ... in a type of two bytes; the bits count.
Tensor counting_bits(Shape shape, DType dtype) {
  Tensor tensor = make_tensor(std::move(shape), dtype);
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) tensor.bytes[i] = std::byte(i);
  return tensor;
}

TEST(StridedView, OfAWholeTensorShowsThatTensor) {
  for (const Tensor& tensor :
       {counting({2, 3, 4}), counting({5}), counting({1, 1, 1, 1}),
        counting_bits({3, 2}, DType::kF16), counting_bits({2, 2}, DType::kBF16)})
    EXPECT_EQ(materialize(view_of(tensor)), tensor);
  const Tensor tensor = counting({2, 3, 4});
  EXPECT_EQ(view_of(tensor).strides, (Shape{12, 4, 1}));
}

TEST(StridedView, KeepsEveryBit) {
  Tensor tensor = make_tensor({2});
  tensor.floats()[0] = std::bit_cast<float>(0x7FC12345U);  // a NaN with a payload
  tensor.floats()[1] = -0.0F;
  EXPECT_EQ(materialize(view_of(tensor)).bytes, tensor.bytes);
}

TEST(StridedView, PermutesByItsStrides) {
  const Tensor tensor = counting({2, 3});
  const StridedView transposed{{3, 2}, {1, 3}, tensor.dtype, tensor.bytes.data()};
  const Tensor shown = materialize(transposed);
  EXPECT_EQ(shown.shape, (Shape{3, 2}));
  EXPECT_THAT(shown.floats(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(StridedView, PermutesElementsOfTwoBytes) {
  const Tensor tensor = counting_bits({2, 2}, DType::kF16);
  const StridedView transposed{{2, 2}, {1, 2}, tensor.dtype, tensor.bytes.data()};
  EXPECT_THAT(materialize(transposed).bytes,
              ElementsAre(std::byte(0), std::byte(1), std::byte(4), std::byte(5), std::byte(2),
                          std::byte(3), std::byte(6), std::byte(7)));
}

TEST(StridedView, ShowsAPartOfWiderRows) {
  const Tensor tensor = counting({3, 4});
  const StridedView part{
      {2, 2}, {4, 1}, tensor.dtype, tensor.bytes.data() + sizeof(float)};  // columns 1 and 2
  EXPECT_THAT(materialize(part).floats(), ElementsAre(1, 2, 5, 6));
}

TEST(StridedView, ReadsNothingOfAnEmptyAxis) {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 2}}) {
    StridedView view{shape, Shape(shape.size(), 1), DType::kF16, nullptr};
    const Tensor shown = materialize(view);
    EXPECT_EQ(shown.shape, shape);
    EXPECT_EQ(shown.dtype, DType::kF16);
    EXPECT_TRUE(shown.bytes.empty());
  }
}

float stored(DType dtype, float value) {
  std::array<std::byte, 4> place{};
  store_element(dtype, value, place.data());
  return load_element(dtype, place.data());
}

TEST(Element, KeepsF32) {
  EXPECT_EQ(stored(DType::kF32, 0.1F), 0.1F);
}

TEST(Element, RoundsTiesToEvenInF16) {
  EXPECT_EQ(stored(DType::kF16, 1 + 0x1p-11F), 1.0F);
  EXPECT_EQ(stored(DType::kF16, 1 + 0x3p-11F), 1 + 0x1p-9F);
  EXPECT_EQ(stored(DType::kF16, 1 + 0x1.8p-11F), 1 + 0x1p-10F) << "beyond the tie: up";
  EXPECT_EQ(stored(DType::kF16, 65520.0F), std::numeric_limits<float>::infinity());
}

TEST(Element, RoundsTiesToEvenInBf16) {
  EXPECT_EQ(stored(DType::kBF16, 1 + 0x1p-8F), 1.0F);
  EXPECT_EQ(stored(DType::kBF16, 1 + 0x3p-8F), 1 + 0x1p-6F);
  EXPECT_EQ(stored(DType::kBF16, 1 + 0x1.8p-8F), 1 + 0x1p-7F) << "beyond the tie: up";
  EXPECT_EQ(stored(DType::kBF16, -3.0e38F), std::bit_cast<float>(0xFF62'0000U));
}

TEST(Element, WritesNoMoreThanItsBytes) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    std::array<std::byte, 4> place{};
    place.fill(std::byte(0xAB));
    store_element(dtype, -std::numeric_limits<float>::infinity(), place.data());
    std::uint16_t bits = 0;
    std::memcpy(&bits, place.data(), sizeof(bits));
    EXPECT_EQ(bits, dtype == DType::kF16 ? 0xFC00 : 0xFF80);
    EXPECT_EQ(place[2], std::byte(0xAB));
  }
}

}  // namespace
}  // namespace kvo
