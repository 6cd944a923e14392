#include "optimized/memory/pages.hpp"

#include <limits>
#include <new>

#include <gtest/gtest.h>

namespace kvo::optimized {
namespace {

constexpr std::byte kMark{7};

TEST(Pages, AreZeroAndHaveAWholeNumberOfPages) {
  const Pages pages({kPageBytes + 1});
  ASSERT_EQ(pages.size(), 2 * kPageBytes);
  EXPECT_EQ(pages.data()[0], std::byte{0});
  EXPECT_EQ(pages.data()[pages.size() - 1], std::byte{0});
}

TEST(Pages, TakeTheNextSizeWhereTheSystemRefusesOne) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 62U;
  EXPECT_EQ(Pages({kTooMuch, std::size_t{1} << 47U, kPageBytes}).size(), kPageBytes);
  EXPECT_THROW(Pages({kTooMuch}), std::bad_alloc);
  EXPECT_THROW(Pages({std::numeric_limits<std::size_t>::max()}), std::bad_alloc);
}

TEST(Pages, TakenPagesKeepWhatTheyHold) {
  constexpr std::size_t kCount = 5;
  Pages old({kCount * kPageBytes});
  for (std::size_t page = 0; page < kCount; ++page) old.data()[page * kPageBytes] = kMark;
  Pages larger({4 * kCount * kPageBytes});
  larger.take(old);
  EXPECT_EQ(old.size(), 0);
  for (std::size_t page = 0; page < 4 * kCount; ++page)
    EXPECT_EQ(larger.data()[page * kPageBytes], page < kCount ? kMark : std::byte{0}) << page;
  larger.data()[larger.size() - 1] = kMark;
}

TEST(Pages, TouchingChangesNothing) {
  Pages pages({4 * kPageBytes});
  pages.data()[kPageBytes] = kMark;
  pages.touch(1, 100 * kPageBytes);
  EXPECT_EQ(pages.data()[kPageBytes], kMark);
  EXPECT_EQ(pages.data()[2 * kPageBytes], std::byte{0});
}

TEST(Pages, FewAddressesAreSpareWhenManyAreTaken) {
  constexpr std::size_t kSome = std::size_t{256} << 20U;
  EXPECT_LE(spare_addresses(kSome), kSome);
  EXPECT_EQ(spare_addresses(std::size_t{1} << 46U), 0) << "half of all that there are";
}

}  // namespace
}  // namespace kvo::optimized
