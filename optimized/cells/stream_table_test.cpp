#include "optimized/cells/stream_table.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::optimized {
namespace {

using cells::Range;
using cells::WindowType;
using testing::ElementsAre;

std::vector<int> listed(const OwnedCells& its) {
  std::vector<int> found;
  for (const CellAt& each : its.all()) found.push_back(each.cell);
  return found;
}

void take(StreamTable& table, std::int32_t cell, std::int32_t pos, std::int32_t seq) {
  table.reserve(seq, 1);
  table.take(cell, pos, seq);
}

TEST(OwnedCells, UsesTheRoomOfWhatWasGivenUp) {
  OwnedCells its;
  its.reserve(4);
  for (std::int32_t i = 0; i < 4; ++i) its.insert({i, i});
  const CellAt* const place = its.all().data();
  for (std::int32_t i = 4; i < 400; ++i) {
    its.erase(0, 1);
    its.erase(0, 1);
    its.reserve(2);
    its.insert({i, 1});
    its.insert({i - 1, 7});
    ASSERT_TRUE(its.sorted());
  }
  EXPECT_GE(its.all().data(), place);
  EXPECT_LT(its.all().data(), place + 8);
}

TEST(StreamTable, APositionThatMovesIsInOrderForAllOwners) {
  StreamTable table(8, {}, {});
  for (std::int32_t cell = 0; cell < 4; ++cell) take(table, cell, cell, 0);
  table.share(0, 1, {0, 4});
  take(table, 4, 4, 1);
  EXPECT_EQ(table.add(0, {0, 3}, 4), StreamTable::kNone);
  EXPECT_THAT(listed(table.of(1)), ElementsAre(3, 0, 4, 1, 2));
  EXPECT_EQ(table.add(1, {0, 5}, -4), 3);
  EXPECT_THAT(listed(table.of(0)), ElementsAre(0, 1, 2));
  EXPECT_EQ(table.broken(), std::nullopt);
}

TEST(StreamTable, PositionsThatADivisionMakesEqualAreOrderedByCell) {
  StreamTable table(8, {}, {});
  for (std::int32_t i = 0; i < 4; ++i) take(table, 3 - i, i, 0);
  table.divide(0, {0, 4}, 2, false);
  EXPECT_THAT(listed(table.of(0)), ElementsAre(2, 3, 0, 1));
  EXPECT_EQ(table.shift(0), -2);
  EXPECT_EQ(table.broken(), std::nullopt);
}

TEST(StreamTable, ASearchTakesWhatFellOutOfItsOwnersWindow) {
  StreamTable table(4, {}, {WindowType::kStandard, 2});
  for (std::int32_t i = 0; i < 4; ++i) take(table, i, i, 0);
  std::vector<std::int32_t> slots(3);
  ASSERT_TRUE(table.search(2, slots));
  EXPECT_THAT(slots, ElementsAre(2, 0, 1));
  table.remove_range(0, 2, 4);
  ASSERT_TRUE(table.search(0, slots));
  EXPECT_THAT(slots, ElementsAre(0, 2, 3));
  table.share(0, 1, {0, 1});
  EXPECT_FALSE(table.search(0, slots));
  EXPECT_EQ(table.broken(), std::nullopt);
}

// Usable cells, looked through one by one.
std::vector<std::int32_t> usable_in(const StreamTable& table, const cells::Window& window) {
  std::vector<std::int32_t> usable;
  for (std::int32_t cell = 0; cell < table.size(); ++cell) {
    const std::int32_t owner = table.sole_owner(cell);
    const bool open = owner >= 0 && window.masks(table.pos(cell), table.extremes(owner).max + 1);
    if (!table.is_used(cell) || open) usable.push_back(cell);
  }
  return usable;
}

class StreamTableWindows : public testing::TestWithParam<cells::Window> {};

TEST_P(StreamTableWindows, StaysConsistentInAnyOrderOfCalls) {
  constexpr std::int32_t kCells = 200;
  std::mt19937 engine(11);  // NOLINT(cert-msc51-cpp): the same calls each time
  const auto any = [&](std::int32_t end) {
    return std::uniform_int_distribution<std::int32_t>(0, end - 1)(engine);
  };
  StreamTable table(kCells, {0, 4}, GetParam());
  for (int step = 0; step < 4000; ++step) {
    const std::int32_t seq = any(4);
    const std::int32_t begin = any(60);
    const Range range{begin, begin + any(30)};
    switch (any(9)) {
      case 0:
        table.remove_range(seq, range.begin, range.end);
        break;
      case 1:
        table.add(seq, range, any(40) - 20);
        break;
      case 2:
        table.divide(seq, range, 1 + any(3), step % 2 == 0);
        break;
      case 3:
        table.share(seq, (seq + 1 + any(3)) % 4, range);
        break;
      case 4:
        if (step % 16 == 0) table.keep(seq);
        break;
      case 5:
        if (step % 4 == 0) table.remove_range(range.begin, range.end);
        break;
      default:
        if (const std::int32_t cell = any(kCells); !table.is_used(cell))
          take(table, cell, any(80), seq);
    }
    const std::vector<std::int32_t> usable = usable_in(table, GetParam());
    std::vector<std::int32_t> slots(usable.size());
    ASSERT_EQ(table.usable(), std::ssize(usable));
    ASSERT_TRUE(table.search(0, slots));
    ASSERT_EQ(slots, usable);
    ASSERT_EQ(table.broken(), std::nullopt) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StreamTableWindows,
                         testing::Values(cells::Window{}, cells::Window{WindowType::kStandard, 7},
                                         cells::Window{WindowType::kChunked, 8},
                                         cells::Window{WindowType::kSymmetric, 9}));

}  // namespace
}  // namespace kvo::optimized
