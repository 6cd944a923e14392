#include "optimized/cells/bitmap.hpp"

#include <cstdint>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace kvo::optimized {
namespace {

std::int64_t next_in(const std::set<std::int64_t>& model, std::int64_t from, std::int64_t size) {
  const auto found = model.lower_bound(from);
  return found == model.end() ? size : *found;
}

TEST(CellBitmap, FindsMembersFarApartOverAllLevels) {
  for (const std::int64_t size : {1, 63, 64, 65, 4096, 4097, 100'000, 262'144}) {
    CellBitmap cells(size);
    EXPECT_EQ(cells.next(0), size);
    for (const std::int64_t cell : {std::int64_t{0}, size / 2, size - 1}) cells.insert(cell);
    EXPECT_EQ(cells.first(), 0);
    EXPECT_EQ(cells.last(), size - 1);
    EXPECT_EQ(cells.next(size / 2 + (size > 2 ? 1 : 0)), size - 1);
    EXPECT_EQ(cells.next(size), size);
    EXPECT_TRUE(cells.consistent());
    const CellBitmap full(size, true);
    EXPECT_EQ(full.next_missing(0, size), size);
    EXPECT_EQ(full.last(), size - 1);
    EXPECT_EQ(full.count(), size);
    EXPECT_TRUE(full.consistent());
  }
}

TEST(CellBitmap, AgreesWithASet) {
  constexpr std::int64_t kSize = 9000;
  std::mt19937 engine(7);  // NOLINT(cert-msc51-cpp): the same cells each time
  std::uniform_int_distribution<std::int64_t> any(0, kSize - 1);
  CellBitmap cells(kSize);
  std::set<std::int64_t> model;
  for (int step = 0; step < 20000; ++step) {
    // Few members at first, and few gaps at last.
    const std::int64_t cell = any(engine);
    const bool in = step > 10000 ? step % 8 != 0 : step % 8 == 0;
    cells.put(cell, in);
    if (in) {
      model.insert(cell);
    } else {
      model.erase(cell);
    }
    const std::int64_t from = any(engine);
    ASSERT_EQ(cells.count(), std::ssize(model));
    ASSERT_EQ(cells.has(from), model.contains(from));
    ASSERT_EQ(cells.next(from), next_in(model, from, kSize));
    std::int64_t gap = from;
    while (gap < kSize && model.contains(gap)) ++gap;
    ASSERT_EQ(cells.next_missing(from, kSize), gap);
    if (!model.empty()) {
      ASSERT_EQ(cells.last(), *model.rbegin());
    }
  }
  EXPECT_TRUE(cells.consistent());
}

}  // namespace
}  // namespace kvo::optimized
