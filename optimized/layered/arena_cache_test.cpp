#include "optimized/layered/arena_cache.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "optimized/memory/pages.hpp"
#include "optimized/memory/poison.hpp"

namespace kvo::optimized {
namespace {

// An engine that saves a sequence before each draft clones it over and over.
TEST(LayeredArenaCache, ClonesOfClonesTakeNoMoreRoomThanTheirRows) {
  const Tensor row = tensor_of({2}, std::array<float, 2>{1, 2});
  auto made = LayeredArenaCache::make(
      {1, 1, 2}, std::nullopt,
      {layered::Build::kDebug, QuirkSet<layered::Quirk>(Profile::kOriginal)});
  ASSERT_TRUE(made.has_value());
  std::unique_ptr<layered::Cache> cache = std::move(*made);
  for (int generation = 0; generation < 200; ++generation) {
    ASSERT_TRUE(cache->append({.k = row, .v = row}).has_value());
    cache = cache->clone();  // with room that grew at each step, memory would be gone by now
  }
  EXPECT_EQ(cache->k({})->size(), 400U * sizeof(float));
}

constexpr std::size_t kWidth = 1'024;

std::unique_ptr<layered::Cache> cache_of_two_layers() {
  return LayeredArenaCache::make(
             {2, 1, kWidth}, std::nullopt,
             {layered::Build::kRelease, QuirkSet<layered::Quirk>(Profile::kDocumented)})
      .value();
}

// Element i of the side of a layer: another number everywhere.
float element(std::uint64_t layer, std::size_t which, std::size_t i) {
  return static_cast<float>(i * 4 + layer * 2 + which);
}

void append_token(layered::Cache& cache, std::size_t token) {
  layered::Append op{.k = make_tensor({kWidth}), .v = make_tensor({kWidth})};
  for (op.layer = 0; op.layer < 2; ++op.layer) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      op.k.floats()[i] = element(op.layer, 0, token * kWidth + i);
      op.v.floats()[i] = element(op.layer, 1, token * kWidth + i);
    }
    if (!cache.append(op)) throw std::logic_error("append");
  }
  if (!cache.advance()) throw std::logic_error("advance");
}

// Sides that do not hold so many tokens and no more.
int wrong_sides(const layered::Cache& cache, std::size_t tokens) {
  int wrong = 0;
  for (std::uint64_t layer = 0; layer < 2; ++layer)
    for (const std::size_t which : {0U, 1U}) {
      const std::span<const float> side = layered::floats_of(
          (which == 0 ? cache.k({.layer = layer}) : cache.v({.layer = layer})).value());
      bool same = side.size() == tokens * kWidth;
      for (std::size_t i = 0; same && i < side.size(); ++i)
        same = side[i] == element(layer, which, i);
      wrong += same ? 0 : 1;
    }
  return wrong;
}

TEST(LayeredArenaCache, ACopyTakesTheMemoryOfTheLastOneThatEnded) {
  const auto cache = cache_of_two_layers();
  append_token(*cache, 0);
  auto copy = cache->clone();
  const std::byte* const there = copy->k({})->data();
  copy.reset();
  append_token(*cache, 1);
  copy = cache->clone();
  EXPECT_NE(copy->k({})->data(), there) << "two tokens need more than one";
  const std::byte* const larger = copy->k({})->data();
  copy.reset();
  copy = cache->clone();
  EXPECT_EQ(copy->k({})->data(), larger);
  const auto second = copy->clone();
  EXPECT_NE(second->k({})->data(), larger) << "the first copy has it";
  for (std::size_t token = 2; token < 40; ++token) append_token(*copy, token);
  EXPECT_EQ(wrong_sides(*copy, 40), 0);
  EXPECT_EQ(wrong_sides(*second, 2), 0);
  EXPECT_EQ(wrong_sides(*cache, 2), 0);
}

TEST(LayeredArenaCache, ALongSideStaysWhereItIs) {
  const auto cache = cache_of_two_layers();
  append_token(*cache, 0);
  append_token(*cache, 1);
  const std::byte* const there = cache->k({})->data();
  for (std::size_t token = 2; token < 600; ++token) append_token(*cache, token);
  EXPECT_EQ(wrong_sides(*cache, 600), 0);
  EXPECT_EQ(wrong_sides(*cache->clone(), 600), 0);
  if (guard_cells(1) == 0) {
    EXPECT_EQ(cache->k({})->data(), there);
  }
}

#ifndef KVO_SANITIZED
// Status 0: all that was appended is there after the memory has run out, too.
[[noreturn]] void fill_memory() {
  constexpr std::size_t kRoom = std::size_t{160} << 20U;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{pages * kPageBytes + kRoom, pages * kPageBytes + kRoom};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  const auto cache = cache_of_two_layers();
  std::size_t tokens = 0;
  try {
    for (; tokens < kRoom; ++tokens) append_token(*cache, tokens);
  } catch (const std::bad_alloc&) {
    // Growth without copies leaves most of the room to rows.
    const bool enough = tokens * 4 * kWidth * sizeof(float) > kRoom / 3;
    // The last token may be there in part.
    cache->clear();
    for (std::size_t token = 0; token < tokens / 2; ++token) append_token(*cache, token);
    std::_Exit(enough ? wrong_sides(*cache, tokens / 2) : 3);
  }
  std::_Exit(4);
}

TEST(LayeredArenaCache, GrowsUntilLimitedAddressesAreUsedUp) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(fill_memory(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace kvo::optimized
