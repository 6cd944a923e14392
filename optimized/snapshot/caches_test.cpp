// What lock-step cannot see: where rows lie, and what they cost.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "optimized/subjects.hpp"

namespace kvo::optimized {
namespace {

using snapshot::Array;
using snapshot::Cache;
using snapshot::Pair;
using snapshot::Quirk;
using snapshot::SnapshotPtr;

constexpr QuirkSet<Quirk> kDocumented(Profile::kDocumented);
constexpr std::int64_t kHeads = 2;

// `count` tokens of two heads; all cells of a token hold its number, from `first` on.
Array tokens(std::int64_t first, std::int64_t count, std::int64_t dim = 2) {
  Tensor made = make_tensor({1, kHeads, count, dim});
  for (std::int64_t head = 0; head < kHeads; ++head)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t d = 0; d < dim; ++d)
        made.floats()[static_cast<std::size_t>((head * count + i) * dim + d)] =
            static_cast<float>(first + i);
  return snapshot::array_of(std::move(made));
}

constexpr std::int64_t kBytesOfAToken = 2 * kHeads * 2 * std::int64_t{sizeof(float)};

class Caches : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Cache> kv(const StorageFormat& storage = {}) const {
    return make_.kv(storage, kDocumented);
  }
  [[nodiscard]] std::unique_ptr<Cache> ring(std::int64_t window) const {
    return make_.rotating(window, {}, kDocumented);
  }
  [[nodiscard]] std::int64_t live_tokens() const {
    EXPECT_EQ(live_->now() % kBytesOfAToken, 0);
    return live_->now() / kBytesOfAToken;
  }
  static void add(Cache& cache, std::int64_t first, std::int64_t count, std::int64_t dim = 2) {
    const Array rows = tokens(first, count, dim);
    ASSERT_TRUE(cache.update(rows, rows).has_value());
  }
  static const std::byte* place(const Cache& cache) { return cache.state()->first->view.data; }
  // The tokens that the first head's keys show.
  static std::vector<int> shown(const Array& keys) {
    const Tensor all = materialize(keys.view);
    std::vector<int> seen;
    for (std::int64_t i = 0; i < all.shape[2]; ++i)
      seen.push_back(static_cast<int>(all.floats()[static_cast<std::size_t>(i * all.shape[3])]));
    return seen;
  }

  LiveBytesPtr live_ = std::make_shared<LiveBytes>();
  snapshot::MakeCaches make_ = snapshot_caches(live_);
};

TEST_F(Caches, SharedRowsCountOnce) {
  const auto cache = kv();
  add(*cache, 0, 100);
  EXPECT_EQ(live_tokens(), 100);
  SnapshotPtr whole = cache->snapshot(0).value();
  const SnapshotPtr end = cache->snapshot(60).value();
  EXPECT_EQ(live_tokens(), 100);
  const auto halves = cache->split(whole, 40).value();
  whole = cache->merge(halves.first, halves.second).value();
  const auto fork = kv();
  EXPECT_TRUE(fork->restore(whole, 100).value());
  EXPECT_EQ(live_tokens(), 100) << "split, merged and restored";
  add(*cache, 100, 1);
  EXPECT_EQ(live_tokens(), 101) << "the first writer goes on in place";
  add(*fork, 200, 1);
  EXPECT_EQ(live_tokens(), 101 + 101) << "the second one moves";
  EXPECT_EQ(shown(*cache->state()->first).back(), 100);
  EXPECT_EQ(shown(*fork->state()->first).back(), 200);
}

TEST_F(Caches, BytesGoBackToZero) {
  {
    const auto cache = kv();
    const auto small = ring(8);
    add(*cache, 0, 20);
    add(*small, 0, 20);
    const SnapshotPtr one = cache->snapshot(5).value();
    const SnapshotPtr two = small->snapshot(0).value();
    cache->free();
    small->free();
    EXPECT_EQ(live_tokens(), 20 + 20) << "a snapshot of most rows holds its block";
    EXPECT_TRUE(one->close().has_value());
    EXPECT_TRUE(two->close().has_value());
    EXPECT_EQ(live_tokens(), 0) << "closed, though somebody still knows them";
    add(*cache, 0, 3);
    EXPECT_EQ(live_tokens(), 3);
  }
  EXPECT_EQ(live_tokens(), 0);
}

TEST_F(Caches, AFewKeptRowsDoNotHoldAWholeBlock) {
  const auto cache = kv();
  add(*cache, 0, 1000);
  const SnapshotPtr few = cache->snapshot(990).value();
  const SnapshotPtr more = cache->snapshot(900).value();
  EXPECT_EQ(live_tokens(), 1000);
  cache->free();
  EXPECT_EQ(live_tokens(), 10 + 100) << "each took its own with it";
  EXPECT_EQ(shown(few->content().first).front(), 990);
  EXPECT_EQ(shown(more->content().first).front(), 900);
}

TEST_F(Caches, HalfABlockStaysWhereItIs) {
  const auto cache = kv();
  add(*cache, 0, 1000);
  const SnapshotPtr half = cache->snapshot(400).value();
  const std::byte* const at = half->content().first.view.data;
  cache->free();
  EXPECT_EQ(live_tokens(), 1000);
  EXPECT_EQ(half->content().first.view.data, at);
}

TEST_F(Caches, AnArrayThatSomebodyKeepsDoesNotChange) {
  const auto cache = ring(4);
  add(*cache, 0, 4);
  const Array before = *cache->state()->first;
  add(*cache, 4, 1);
  EXPECT_EQ(shown(before), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(shown(*cache->state()->first), (std::vector{4, 1, 2, 3}));
  // The snapshot of a moved block outlives the move.
  const auto plain = kv();
  add(*plain, 0, 50);
  const SnapshotPtr kept = plain->snapshot(45).value();
  const Array looked_at = kept->content().first;
  plain->free();
  EXPECT_EQ(shown(looked_at), shown(kept->content().first));
  EXPECT_NE(looked_at.view.data, kept->content().first.view.data);
}

TEST_F(Caches, LargeRowsDoNotMoveAsTheyGrow) {
  constexpr std::int64_t kDim = kLargeRow / (kHeads * std::int64_t{sizeof(float)});
  const auto cache = kv();
  add(*cache, 0, 1, kDim);
  const std::byte* const at = place(*cache);
  SnapshotPtr kept;
  for (int i = 1; i < 3000; ++i) {
    add(*cache, i, 1, kDim);
    if (i == 700) kept = cache->snapshot(0).value();
  }
  EXPECT_EQ(place(*cache), at);
  EXPECT_EQ(shown(kept->content().first).size(), 701U);
}

TEST_F(Caches, ARingIsWrittenInPlace) {
  constexpr std::int64_t kWindow = 300;
  const auto cache = ring(kWindow);
  add(*cache, 0, kWindow);
  add(*cache, kWindow, 1);
  const std::byte* const at = place(*cache);
  for (int i = 1; i < 3 * kWindow; ++i) add(*cache, kWindow + i, 1);
  EXPECT_EQ(place(*cache), at);
  EXPECT_EQ(live_tokens(), kWindow);
  const SnapshotPtr kept = cache->snapshot(0).value();
  add(*cache, 0, 1);
  EXPECT_NE(place(*cache), at) << "the snapshot has the old place";
  EXPECT_EQ(live_tokens(), 2 * kWindow);
}

TEST_F(Caches, ASnapshotRestoredWhereItIsCopiesNothing) {
  const auto cache = kv();
  add(*cache, 0, 10);
  const SnapshotPtr end = cache->snapshot(6).value();
  const std::byte* const at = place(*cache);
  EXPECT_TRUE(cache->restore(nullptr, 6).value());
  EXPECT_TRUE(cache->restore(end, 10).value());
  EXPECT_EQ(place(*cache), at);
  EXPECT_EQ(live_tokens(), 10);
  // Not so if something else stands in front of it.
  EXPECT_TRUE(cache->restore(nullptr, 5).value());
  add(*cache, 55, 1);
  EXPECT_TRUE(cache->restore(end, 10).value());
  EXPECT_EQ(shown(*cache->state()->first), (std::vector{0, 1, 2, 3, 4, 55, 6, 7, 8, 9}));
  EXPECT_EQ(shown(end->content().first), (std::vector{6, 7, 8, 9}));
}

TEST_F(Caches, CodesCostWhatTheyTake) {
  const StorageFormat storage{StorageType::kQ4, 32, true};
  constexpr std::int64_t kRow = 16 + 4 + 1 + 4;  // of 33 elements
  {
    const auto cache = kv(storage);
    add(*cache, 0, 10, 33);
    add(*cache, 10, 1, 33);
    EXPECT_EQ(live_->now(), 11L * 2 * kHeads * kRow);
    const SnapshotPtr kept = cache->snapshot(4).value();
    EXPECT_EQ(snapshot::size_of(kept), 7L * 2 * kHeads * kRow);
    EXPECT_EQ(snapshot::shown(kept->content().first).shape, (Shape{1, kHeads, 7, 33}));
  }
  EXPECT_EQ(live_->now(), 0);
}

// Only with a quirk: values without keys come back as they are stored, from memory of the encoder.
TEST_F(Caches, EncodedRowsThatSomebodyKeepsDoNotChange) {
  QuirkSet<Quirk> silent(Profile::kDocumented);
  silent.add(Quirk::kMisfitIsSilent);
  const auto cache = make_.kv({StorageType::kQ8}, silent);
  const auto seen = cache->update(tokens(0, 0), tokens(5, 2));
  ASSERT_TRUE(seen.has_value());
  const Tensor before = snapshot::shown((*seen)->v);
  add(*cache, 70, 3);
  EXPECT_EQ(snapshot::shown((*seen)->v), before);
}

TEST_F(Caches, WhatDoesNotFitInMemoryIsRefused) {
  const RowForm huge{1, std::int64_t{1} << 40U, std::int64_t{1} << 40U, DType::kF32};
  EXPECT_THROW(Block(huge, 1, Block::Growth::kGrows, live_), std::bad_alloc);
  EXPECT_EQ(live_->now(), 0);
}

}  // namespace
}  // namespace kvo::optimized
