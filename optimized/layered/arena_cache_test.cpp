#include "optimized/layered/arena_cache.hpp"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace kvo::optimized {
namespace {

// An engine that saves a sequence before each draft clones it over and over.
TEST(LayeredArenaCache, ClonesOfClonesTakeNoMoreRoomThanTheirRows) {
  const std::array<float, 2> row{1, 2};
  auto made = LayeredArenaCache::make(
      {1, 1, 2}, std::nullopt,
      {layered::Build::kDebug, QuirkSet<layered::Quirk>(Profile::kOriginal)});
  ASSERT_TRUE(made.has_value());
  std::unique_ptr<layered::Cache> cache = std::move(*made);
  for (int generation = 0; generation < 200; ++generation) {
    ASSERT_TRUE(cache->append(0, row, row).has_value());
    cache = cache->clone();  // with room that grew at each step, memory would be gone by now
  }
  EXPECT_EQ(cache->k(0)->size(), 400U);
}

}  // namespace
}  // namespace kvo::optimized
