#include "optimized/positional/mask.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvo::optimized {
namespace {

/// Rows of a mask and what each has to show.
struct Wanted {
  const SequenceCells* sequence = nullptr;
  std::int64_t first = 0;  ///< the smallest position that is seen
  std::int64_t last = 0;   ///< the largest

  [[nodiscard]] SeenCells seen() const {
    if (sequence == nullptr) return {};
    return {sequence, sequence->index_of(first), sequence->index_of(last + 1)};
  }
  [[nodiscard]] bool sees(std::int64_t cell) const {
    if (sequence == nullptr) return false;
    for (const HeldCell& held : sequence->held())
      if (held.cell == cell) return first <= held.position && held.position <= last;
    return false;
  }
};

void show_all(MaskRows& mask, const MaskRows::Layout& layout, const std::vector<Wanted>& wanted) {
  mask.reserve(layout);
  mask.begin(layout, wanted.empty() ? SeenCells() : wanted.front().seen());
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    std::optional<std::int64_t> like;
    for (std::size_t before = 0; before < row; ++before)
      if (wanted[before].sequence == wanted[row].sequence && wanted[row].sequence != nullptr)
        like = static_cast<std::int64_t>(before);
    mask.show(static_cast<std::int64_t>(row), wanted[row].seen(), like);
  }
}

void expect_shows(const MaskRows& mask, const MaskRows::Layout& layout,
                  const std::vector<Wanted>& wanted) {
  const Tensor shown = materialize(mask.view());
  ASSERT_EQ(shown.shape, (Shape{layout.rows, layout.range.size()}));
  const std::size_t bytes = dtype_bytes(layout.dtype);
  std::size_t at = 0;
  for (std::size_t row = 0; row < wanted.size(); ++row)
    for (std::int64_t cell = layout.range.low; cell <= layout.range.high; ++cell, at += bytes) {
      const float value = load_element(layout.dtype, shown.bytes.data() + at);
      const float rule = wanted[row].sees(cell) ? 0.0F : -std::numeric_limits<float>::infinity();
      ASSERT_EQ(value, rule) << "row " << row << ", cell " << cell;
    }
}

class Masks : public testing::TestWithParam<DType> {};

// Passes of all kinds in one buffer: sequences that grow, lose old cells, and are cut; ranges that
// move; one row and many.
TEST_P(Masks, AgreeWithTheRuleAfterAnyPassBefore) {
  constexpr std::int64_t kCells = 400;
  std::mt19937 engine(11);  // NOLINT(cert-msc51-cpp): the same passes each time
  const auto random = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  };
  CellPool pool(kCells);
  std::vector<SequenceCells> sequences;
  for (int i = 0; i < 3; ++i) sequences.emplace_back(pool.next_version());
  std::vector<std::int32_t> next(3, 0);
  MaskRows mask;
  for (int pass = 0; pass < 3000; ++pass) {
    MaskRows::Layout layout{.rows = random(0, 2) == 0 ? random(0, 6) : 1,
                            .cells = kCells,
                            .range = {random(0, 10) * 4, 399 - random(0, 10) * 4},
                            .dtype = GetParam()};
    std::vector<Wanted> wanted;
    for (std::int64_t row = 0; row < layout.rows; ++row) {
      const auto who = static_cast<std::size_t>(random(0, 3));
      if (who == 3) {
        wanted.push_back({});
        continue;
      }
      SequenceCells& sequence = sequences[who];
      if (random(0, 40) == 0) {
        const auto begin = static_cast<std::int32_t>(random(0, next[who]));
        sequence.cut(begin, begin + 3, std::nullopt, pool);
        next[who] = std::max(0, next[who] - 3);
      }
      if (pool.free() < 5) sequence.evict_before(next[who] - random(10, 100), pool);
      if (random(0, 30) == 0) sequence.compact();
      if (pool.free() > 0) {
        sequence.reserve(1);
        sequence.append({next[who]++, pool.take_lowest()});
        sequence.settle(pool);
      }
      wanted.push_back({&sequence, next[who] - random(1, 60), next[who] - random(0, 3)});
    }
    // All changes come before the mask.
    show_all(mask, layout, wanted);
    expect_shows(mask, layout, wanted);
    if (testing::Test::HasFatalFailure()) FAIL() << "in pass " << pass;
    bool inside = true;
    for (const SequenceCells& sequence : sequences)
      for (const HeldCell& held : sequence.held())
        inside = inside && layout.range.contains(held.cell);
    if (!inside) mask.forget();
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Masks, testing::Values(DType::kF32, DType::kF16));

// Too large for rows of all cells: rows are as wide as the range.
TEST(MaskRows, HasNarrowRowsWhenWholeOnesWouldTakeTooMuch) {
  constexpr std::int64_t kCells = std::int64_t{1} << 28U;
  CellPool pool(64);
  SequenceCells sequence(pool.next_version());
  sequence.reserve(2);
  sequence.append({0, 40});
  sequence.append({1, 41});
  MaskRows mask;
  for (const std::int64_t low : {32, 40}) {
    const MaskRows::Layout layout{.rows = 3, .cells = kCells, .range = {low, 47}};
    const std::vector<Wanted> wanted{{&sequence, 0, 0}, {&sequence, 0, 1}, {}};
    show_all(mask, layout, wanted);
    expect_shows(mask, layout, wanted);
  }
}

// A reserve pass over a pool without cells.
TEST(MaskRows, MayHaveRowsWithoutColumns) {
  CellPool pool(0);
  const SequenceCells sequence(pool.next_version());
  MaskRows mask;
  const MaskRows::Layout layout{.rows = 2, .cells = 0, .range = {0, -1}};
  const std::vector<Wanted> wanted{{&sequence, 0, 0}, {&sequence, 0, 1}};
  show_all(mask, layout, wanted);
  expect_shows(mask, layout, wanted);
}

TEST(MaskRows, AFailedReserveLeavesTheMaskThatIsShown) {
  CellPool pool(64);
  SequenceCells sequence(pool.next_version());
  sequence.reserve(1);
  sequence.append({0, pool.take_lowest()});
  MaskRows mask;
  const MaskRows::Layout layout{.rows = 1, .cells = 64, .range = {0, 63}};
  const std::vector<Wanted> wanted{{&sequence, 0, 0}};
  show_all(mask, layout, wanted);
  mask.reserve({.rows = 500, .cells = 64, .range = {0, 63}});  // and no begin
  expect_shows(mask, layout, wanted);
  show_all(mask, layout, wanted);
  expect_shows(mask, layout, wanted);
}

}  // namespace
}  // namespace kvo::optimized
