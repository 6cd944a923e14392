// A radix tree whose every unit is a node of its own, on a stack that is too small to recurse.
#include <functional>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "optimized/prefix/radix_cache.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/prefix/radix_cache.hpp"

namespace kvo::prefix {
namespace {

// To a depth of a million the usual stack of 8 MiB has 8 bytes a node, and so has this one.
constexpr std::int64_t kDepth = 30'000;
constexpr std::size_t kStack = std::size_t{256} << 10U;

void on_a_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread = {};
  const auto start = [](void* its) -> void* {
    (*static_cast<std::function<void()>*>(its))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

void walk_lock_and_evict(const MakeRadix& make) {
  const auto cache = make({.slots = kDepth}, {}).value();
  const Tokens tokens(kDepth, 1);
  const auto taken = cache->alloc(kDepth).value();
  const Ids slots(taken.begin(), taken.end());
  TouchTokens touch{.tokens = tokens};
  const auto filed = cache->insert({.tokens = tokens, .slots = slots}).value();
  // From the end: each lookup splits the node at the root, and passes no other.
  for (std::int64_t length = kDepth - 1; length > 0; --length) {
    touch.limit = length;
    ASSERT_TRUE(cache->touch(touch));
  }
  ASSERT_EQ(std::ssize(cache->state().nodes), kDepth);
  EXPECT_THAT(cache->match({.tokens = tokens})->slots, testing::ElementsAreArray(slots));
  EXPECT_THAT(*cache->all_slots(), testing::ElementsAreArray(slots));
  EXPECT_EQ(*cache->lock(*filed.node), -kDepth);
  EXPECT_EQ(cache->evict(1)->tokens, 0);
  EXPECT_EQ(*cache->unlock(*filed.node), kDepth);
  EXPECT_EQ(cache->evict(kDepth)->tokens, kDepth);
  EXPECT_EQ(cache->broken_invariant(), std::nullopt);
}

class DeepTree : public testing::TestWithParam<std::pair<const char*, MakeRadix>> {};

TEST_P(DeepTree, IsWalkedLockedAndEvictedPX64PX70PX73) {
  on_a_small_stack([&] { walk_lock_and_evict(GetParam().second); });
}

// With all that is in it.
TEST_P(DeepTree, IsGivenUp) {
  on_a_small_stack([&] {
    const auto cache = GetParam().second({.slots = kDepth}, {}).value();
    const Tokens tokens(kDepth, 1);
    const auto slots = cache->alloc(kDepth).value();
    ASSERT_TRUE(cache->insert({.tokens = tokens, .slots = Ids(slots.begin(), slots.end())}));
    TouchTokens touch{.tokens = tokens};
    for (std::int64_t length = kDepth - 1; length > 0; --length) {
      touch.limit = length;
      ASSERT_TRUE(cache->touch(touch));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Each, DeepTree,
                         testing::Values(std::pair{"reference", MakeRadix(RadixManager::make)},
                                         std::pair{"optimized",
                                                   MakeRadix(optimized::PrefixRadixCache::make)}),
                         [](const auto& made) { return made.param.first; });

}  // namespace
}  // namespace kvo::prefix
