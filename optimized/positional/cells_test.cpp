#include "optimized/positional/cells.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::optimized {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::pair<int, int>> pairs(std::span<const HeldCell> cells) {
  std::vector<std::pair<int, int>> found;
  for (const HeldCell& held : cells) found.emplace_back(held.position, held.cell);
  return found;
}

TEST(FreeCells, FindsTheLowestOverAllLevels) {
  for (const std::int64_t count : {1, 63, 64, 65, 4096, 4097, 300000}) {
    FreeCells free(count);
    EXPECT_EQ(free.size(), count);
    for (std::int64_t cell = 0; cell < count; ++cell) {
      ASSERT_EQ(free.lowest(), cell);
      free.take(cell);
    }
    EXPECT_EQ(free.size(), 0);
    free.give(count - 1);
    EXPECT_EQ(free.lowest(), count - 1);
    EXPECT_TRUE(free.consistent());
  }
}

TEST(FreeCells, AgreesWithASet) {
  constexpr std::int64_t kCount = 9000;
  std::mt19937 engine(7);  // NOLINT(cert-msc51-cpp): the same cells each time
  std::uniform_int_distribution<std::int64_t> any(0, kCount - 1);
  FreeCells free(kCount);
  std::set<std::int64_t> model;
  for (std::int64_t cell = 0; cell < kCount; ++cell) model.insert(model.end(), cell);
  for (int step = 0; step < 50000; ++step) {
    const std::int64_t cell = step % 3 == 0 && !model.empty() ? *model.begin() : any(engine);
    ASSERT_EQ(free.contains(cell), model.contains(cell));
    if (model.erase(cell) > 0) {
      free.take(cell);
    } else {
      model.insert(cell);
      free.give(cell);
    }
    ASSERT_EQ(free.size(), std::ssize(model));
    if (!model.empty()) {
      ASSERT_EQ(free.lowest(), *model.begin());
    }
  }
  EXPECT_TRUE(free.consistent());
}

/// A sequence that owns a cell for each of these positions, in this order.
SequenceCells sequence_at(const std::vector<std::int32_t>& positions, CellPool& pool) {
  SequenceCells sequence(pool.next_version());
  sequence.reserve(positions.size());
  for (const std::int32_t position : positions) sequence.append({position, pool.take_lowest()});
  sequence.settle(pool);
  return sequence;
}

TEST(SequenceCells, SortsWhatComesOutOfOrder) {
  CellPool pool(8);
  SequenceCells sequence = sequence_at({5, 3, 9, 3}, pool);
  EXPECT_THAT(pairs(sequence.held()),
              ElementsAre(std::pair(3, 1), std::pair(3, 3), std::pair(5, 0), std::pair(9, 2)));
  EXPECT_EQ(sequence.range(), (CellRange{0, 3}));
  EXPECT_THAT(pairs(sequence.from(4)), ElementsAre(std::pair(5, 0), std::pair(9, 2)));
}

TEST(SequenceCells, KeepsItsVersionWhileCellsComeBehindAndLeaveInFront) {
  CellPool pool(300);
  SequenceCells sequence = sequence_at({0, 1, 2}, pool);
  const std::uint64_t version = sequence.version();
  const std::uint64_t index = sequence.index_of(2);
  for (std::int32_t position = 3; position < 300; ++position) {
    sequence.reserve(1);
    sequence.append({position, pool.take_lowest()});
    sequence.settle(pool);
    sequence.evict_before(position - 2, pool);
    sequence.compact();
  }
  EXPECT_EQ(sequence.version(), version);
  EXPECT_EQ(sequence.index_of(299), index + 297);
  EXPECT_GT(sequence.oldest_known(), index);
  EXPECT_EQ(sequence.held().size(), 3U);
  EXPECT_EQ(pool.free(), 297);
}

TEST(SequenceCells, RestoresWhatWasEvicted) {
  CellPool pool(4);
  SequenceCells sequence = sequence_at({0, 1, 2, 3}, pool);
  const auto before = pairs(sequence.held());
  const std::size_t evicted = sequence.evict_before(3, pool);
  EXPECT_EQ(evicted, 3U);
  EXPECT_EQ(pool.free(), 3);
  sequence.restore(evicted, pool);
  EXPECT_EQ(pairs(sequence.held()), before);
  EXPECT_EQ(pool.free(), 0);
}

TEST(SequenceCells, CutMovesWhatLiesBehind) {
  CellPool pool(8);
  SequenceCells sequence = sequence_at({0, 1, 2, 3, 4}, pool);
  const std::uint64_t version = sequence.version();
  sequence.cut(1, 3, std::nullopt, pool);
  EXPECT_THAT(pairs(sequence.held()),
              ElementsAre(std::pair(0, 0), std::pair(1, 3), std::pair(2, 4)));
  EXPECT_NE(sequence.version(), version);
  EXPECT_EQ(pool.free(), 5);
  sequence.cut(0, 1, std::nullopt, pool);
  EXPECT_EQ(sequence.range(), (CellRange{3, 4}));
  sequence.cut(2, 1, std::nullopt, pool);  // OK-68: up
  EXPECT_THAT(pairs(sequence.held()), ElementsAre(std::pair(0, 3), std::pair(2, 4)));
}

TEST(SequenceCells, CutWithALimitStopsInTheMiddleAndKeepsTheRange) {
  CellPool pool(8);
  SequenceCells sequence = sequence_at({4, 0, 1, 5}, pool);  // cells 0 .. 3
  sequence.cut(0, 2, 2, pool);
  EXPECT_THAT(pairs(sequence.held()),
              ElementsAre(std::pair(1, 2), std::pair(2, 0), std::pair(5, 3)));
  EXPECT_EQ(sequence.range(), (CellRange{0, 3}));
  EXPECT_FALSE(sequence.range_is_hull());
}

TEST(SequenceCells, CoversOnlyWithoutHoles) {
  CellPool pool(8);
  const SequenceCells sequence = sequence_at({1, 2, 2, 3, 5}, pool);
  EXPECT_TRUE(sequence.covers(1, 4));
  EXPECT_TRUE(sequence.covers(2, 4));
  EXPECT_TRUE(sequence.covers(7, 7));
  EXPECT_FALSE(sequence.covers(0, 2));
  EXPECT_FALSE(sequence.covers(3, 6));
  EXPECT_FALSE(sequence.covers(5, 7));
}

TEST(SequenceCells, ReplaceSharesBeforeItReleases) {
  CellPool pool(4);
  SequenceCells sequence = sequence_at({0, 1, 2}, pool);
  const auto prefix = sequence.held().first(2);
  sequence.replace({prefix.begin(), prefix.end()}, pool);
  EXPECT_EQ(sequence.range(), (CellRange{0, 1}));
  EXPECT_EQ(pool.owners(0), 1U);
  EXPECT_EQ(pool.free(), 2);
  sequence.replace({}, pool);
  EXPECT_THAT(pairs(sequence.held()), IsEmpty());
  EXPECT_EQ(pool.free(), 4);
}

// Blocks that are filled, evicted in part, forgotten, sorted anew, cut and replaced.
TEST(SequenceCells, KnowsTheHullOfItsEnd) {
  constexpr std::int32_t kCells = 2'000;
  std::mt19937 engine(5);  // NOLINT(cert-msc51-cpp): the same cells each time
  const auto below = [&](std::int32_t limit) {
    return std::uniform_int_distribution<std::int32_t>(0, limit - 1)(engine);
  };
  CellPool pool(kCells);
  SequenceCells sequence(pool.next_version());
  std::int32_t next = 0;
  int whole_blocks = 0;
  for (int step = 0; step < 20'000; ++step) {
    const int what = below(100);
    if (what < 90 && pool.free() > 0) {
      sequence.reserve(1);
      const bool late = what < 2 && next > 3;
      sequence.append({late ? next - 3 : next, pool.take_lowest()});
      next += late ? 0 : 1;
      sequence.settle(pool);
    } else if (what < 97) {
      (void)sequence.evict_before(next - 1 - below(900), pool);
      sequence.compact();
    } else if (what < 99 && next > 10) {
      sequence.cut(next - 9, next - 5, std::nullopt, pool);
      next -= 4;
    } else {
      const auto held = sequence.held();
      sequence.replace({held.begin() + static_cast<std::ptrdiff_t>(held.size() / 3), held.end()},
                       pool);
    }
    const std::int32_t from = next - below(1'200);
    const auto cells = sequence.from(from);
    ASSERT_EQ(sequence.hull_from(from), hull_of(cells)) << "step " << step;
    whole_blocks += cells.size() > 200 ? 1 : 0;
  }
  EXPECT_GT(whole_blocks, 300);
}

}  // namespace
}  // namespace kvo::optimized
