#include "optimized/views/paged_views_cache.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace kvo::optimized {
namespace {

views::Options some(std::int64_t head_dim, std::int64_t tokens) {
  views::Options options{.num_layers = 2,
                         .block_size = 64,
                         .num_kv_heads = 2,
                         .head_dim = head_dim,
                         .max_seq_len = tokens,
                         .blocks = 2 * (tokens / 64 + 1)};
  options.devices.resize(2);
  return options;
}

Tensor numbered_rows(std::int64_t tokens, std::int64_t width) {
  Tensor rows = make_tensor({tokens, width});
  float next = 0;
  for (float& cell : rows.floats()) cell = ++next;
  return rows;
}

// Many tokens at once are written past the processor's caches if a head is a multiple of 16 bytes.
TEST(PagedViewsCache, PacksManyTokensRightAtEveryHeadSize) {
  for (const std::int64_t dim : {3, 4, 8}) {
    const std::int64_t tokens = (std::int64_t{1} << 20U) / dim + 5;
    const auto pool = make_paged_views(some(dim, tokens));
    const std::unique_ptr<views::Cache> cache = pool->make_cache();
    const Tensor rows = numbered_rows(tokens, 2 * dim);
    ASSERT_TRUE(cache->append(0, rows, rows).has_value());
    std::int64_t wrong = 0;
    std::int64_t seen = 0;
    for (const views::PackedView& view : cache->views_packed(0))
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t t = 0; t < view.length; ++t, ++seen)
          for (std::int64_t d = 0; d < dim; ++d) {
            const auto at = static_cast<std::size_t>((h * view.block_size + t) * dim + d);
            const auto from = static_cast<std::size_t>(((view.start + t) * 2 + h) * dim + d);
            wrong += view.k[at] == rows.floats()[from] && view.v[at] == view.k[at] ? 0 : 1;
          }
    EXPECT_EQ(wrong, 0) << dim;
    EXPECT_EQ(seen, 2 * tokens);
  }
}

TEST(PagedViewsCache, ViewsOfDifferentLayersAndSequencesNeverAlias) {
  const auto pool = make_paged_views(some(4, 700));
  const std::unique_ptr<views::Cache> one = pool->make_cache();
  const Tensor rows = numbered_rows(300, 8);
  for (const std::int64_t layer : {0, 1}) ASSERT_TRUE(one->append(layer, rows, rows).has_value());
  ASSERT_TRUE(one->commit(300).has_value());
  const std::unique_ptr<views::Cache> other = one->fork(100).value();
  const Tensor more = numbered_rows(40, 8);
  for (const std::int64_t layer : {0, 1}) ASSERT_TRUE(other->append(layer, more, more).has_value());
  std::map<const std::byte*, int> shown;
  for (const std::int64_t layer : {0, 1}) {
    for (const views::View& view : one->views(layer)) ++shown[view.k];
    for (const views::View& view : one->views(layer)) ++shown[view.v];
    for (const views::View& view : other->views(layer)) ++shown[view.k];
  }
  const auto shared = std::ranges::count_if(shown, [](const auto& at) { return at.second > 1; });
  EXPECT_EQ(shared, 2) << "the one block of each layer that the fork has whole";
}

TEST(PagedViewsCache, BlocksDoNotMoveAndAllComeBack) {
  const auto pool = make_paged_views(some(4, 100'000));
  const std::unique_ptr<views::Cache> cache = pool->make_cache();
  const std::int64_t before = pool->free_blocks();
  const Tensor rows = numbered_rows(1'000, 8);
  std::vector<const std::byte*> seen;
  for (int step = 0; step < 90; ++step) {
    for (const std::int64_t layer : {0, 1})
      ASSERT_TRUE(cache->append(layer, rows, rows).has_value());
    ASSERT_TRUE(cache->commit(1'000).has_value());
    const auto views = cache->views(0);
    for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(views[i].k, seen[i]);
    seen.clear();
    for (const views::View& view : views) seen.push_back(view.k);
  }
  const std::unique_ptr<views::Cache> fork = cache->fork(50'000).value();
  cache->free();
  EXPECT_LT(pool->free_blocks(), before);
  fork->free();
  EXPECT_EQ(pool->free_blocks(), before);
  EXPECT_EQ(pool->broken_invariant(), std::nullopt);
}

}  // namespace
}  // namespace kvo::optimized
