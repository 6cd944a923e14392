#include "optimized/memory/arena.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "optimized/memory/poison.hpp"

namespace kvo::optimized {
namespace {

constexpr float kUntouched = -1;

TEST(CopyRows, CopiesEveryWidthAndLeavesTheGapsAlone) {
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t width : {0, 1, 3, 15, 16, 31, 32, 64, 80, 96, 128, 129, 256}) {
    for (const std::int64_t gap : {0, 5}) {
      const std::int64_t stride = width + gap;
      std::vector<float> from(static_cast<std::size_t>(kRows * width + 1));
      std::iota(from.begin(), from.end(), 1.0F);
      std::vector<float> to(static_cast<std::size_t>(kRows * stride + 1), kUntouched);
      copy_rows({to.data(), stride}, {from.data(), width}, kRows, width);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const auto row = stride > 0 ? static_cast<std::int64_t>(i) / stride : kRows;
        const auto at = static_cast<std::int64_t>(i) - row * stride;
        const bool inside = row < kRows && at < width;
        EXPECT_EQ(to[i], inside ? static_cast<float>(row * width + at + 1) : kUntouched)
            << "width " << width << ", gap " << gap << ", cell " << i;
      }
    }
  }
}

TEST(Arena, GivesDisjointBuffersOfOneAllocation) {
  Arena arena;
  const Buffer a = arena.take(8, 2);
  const Buffer b = arena.take(8, 2);
  EXPECT_EQ(a.storage, b.storage);
  EXPECT_EQ(b.data() - a.data(), 8 + static_cast<std::ptrdiff_t>(guard_cells(8)));
  EXPECT_NE(arena.take(8, 2).storage, a.storage) << "two were wanted";
  EXPECT_NE(arena.take(4, 2).storage, a.storage) << "another size";
}

TEST(Arena, GivesALargeBufferAnAllocationOfItsOwn) {
  Arena arena;
  const Buffer large = arena.take(kArenaCells + 1, 100);
  EXPECT_EQ(large.storage->size(), kArenaCells + 1 + guard_cells(kArenaCells + 1));
  EXPECT_EQ(arena.take(0, 100).storage->size(), 0);
}

#ifndef KVO_ADDRESS_SANITIZER  // which ends the process there
TEST(Arena, RefusesSizesThatNoMemoryHas) {
  Arena arena;
  EXPECT_THROW((void)arena.take(std::size_t{1} << 62U, 100), std::bad_alloc);
  EXPECT_EQ(arena.storage, nullptr);
}
#else
TEST(Arena, ReportsWhoWritesWhatItHoldsBack) {
  Arena arena;
  const Buffer a = arena.take(8, 2);
  const std::vector<float> row(8, 1.0F);
  const Rows2d<const float> from{row.data(), 4};
  copy_rows({a.data(), 4}, from, 2, 4);
  EXPECT_DEATH(copy_rows({a.data() + 4, 4}, from, 2, 4), "use-after-poison") << "one row beyond";
  EXPECT_DEATH(copy_rows({a.data() + 4, 8}, from, 2, 4), "use-after-poison") << "a far one";
  float* const held_back = a.data() + 8 + guard_cells(8);
  EXPECT_DEATH(copy_rows({held_back, 4}, from, 1, 4), "use-after-poison") << "the next buffer";
  (void)arena.take(8, 2);
  copy_rows({held_back, 4}, from, 2, 4);
}
#endif

// K and V, written whole, and where they lie.
std::array<const float*, 2> written_sides(const std::array<Buffer, 2>& sides, std::size_t cells) {
  std::fill_n(sides[0].data(), cells, 1.0F);
  std::fill_n(sides[1].data(), cells, 2.0F);
  EXPECT_EQ(sides[0].data()[cells - 1], 1.0F) << "V begins within K";
  EXPECT_TRUE(guard_holds(sides[0].data(), cells) && guard_holds(sides[1].data(), cells));
  return {sides[0].data(), sides[1].data()};
}

TEST(ResultSides, LargeOnesLieWhereTheLastLayUnlessSomebodyHasIt) {
  constexpr std::size_t kLarge = (std::size_t{17} << 20U) / sizeof(float);
  ResultSides results;
  const auto first = written_sides(results.take(kLarge), kLarge);
  const auto longer = results.take(kLarge + 1'024);
  EXPECT_EQ(written_sides(longer, kLarge + 1'024)[0], first[0]);

  const auto another = results.take(kLarge);  // while somebody has `longer`
  EXPECT_NE(written_sides(another, kLarge)[0], longer[0].data());
  EXPECT_EQ(longer[1].data()[0], 2.0F);
}

TEST(ResultSides, AreNeitherTooShortNorKeptForeverOfALengthThatHasPassed) {
  constexpr std::size_t kLarge = (std::size_t{17} << 20U) / sizeof(float);
  ResultSides results;
  const std::size_t first = results.take(kLarge)[0].storage->size();
  EXPECT_GE(results.take(3 * kLarge)[0].storage->size(), 6 * kLarge);
  EXPECT_EQ(results.take(kLarge)[0].storage->size(), first);
  EXPECT_EQ(written_sides(results.take(3), 3).size(), 2U);
}

TEST(MakeCells, GivesMemoryThatCanBeWrittenAtBothEnds) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{4} << 20U}) {
    const Cells cells = make_cells(count);
    cells[0] = 1;
    cells[count - 1] = 2;
    EXPECT_EQ(cells[count - 1], 2);
  }
}

}  // namespace
}  // namespace kvo::optimized
