// Bytes that are borrowed are read where they are, until they are changed or copied.
#include "reference/contract/values/tensor_bytes.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo {
namespace {

using testing::ElementsAre;

class BorrowedBytes : public testing::Test {
 protected:
  std::array<std::byte, 2> memory_{std::byte{1}, std::byte{2}};
  TensorBytes borrowed_ = TensorBytes::borrowed(memory_);
};

TEST_F(BorrowedBytes, AreReadWhereTheyAre) {
  const TensorBytes moved = std::move(borrowed_);
  EXPECT_EQ(moved.data(), memory_.data());
  memory_[1] = std::byte{7};
  EXPECT_THAT(moved, ElementsAre(std::byte{1}, std::byte{7}));
}

TEST_F(BorrowedBytes, AreCopiedWithTheirTensor) {
  const TensorBytes copy(borrowed_);
  TensorBytes assigned(5);
  assigned = borrowed_;
  memory_[0] = std::byte{7};
  EXPECT_THAT(copy, ElementsAre(std::byte{1}, std::byte{2}));
  EXPECT_EQ(assigned, copy);
}

TEST_F(BorrowedBytes, AreCopiedBeforeTheyChange) {
  borrowed_[0] = std::byte{7};
  EXPECT_THAT(borrowed_, ElementsAre(std::byte{7}, std::byte{2}));
  EXPECT_EQ(memory_[0], std::byte{1});
}

TEST_F(BorrowedBytes, GiveWayToAnotherValue) {
  borrowed_ = TensorBytes(1);
  EXPECT_THAT(borrowed_, ElementsAre(std::byte{0}));
  EXPECT_NE(borrowed_, TensorBytes::borrowed(memory_));
}

}  // namespace
}  // namespace kvo
