#include <gtest/gtest.h>

#include "reference/block_pool/stack_pool.hpp"
#include "reference/provider/context_cache.hpp"
#include "reference/provider/contiguous_cache.hpp"
#include "reference/provider/tensor_cache.hpp"

namespace kvo::provider {
namespace {

struct ContextTest : testing::TestWithParam<Profile> {
  QuirkSet<Quirk> quirks{GetParam()};
  std::shared_ptr<const Context> empty = CacheContext::make(quirks);
  std::shared_ptr<Contiguous> kv = *ContiguousCache::make({1, 1}, quirks);
  std::shared_ptr<Provider> other = *TensorCache::make({.num_layers = 1, .dtype = ""}, quirks);
};

TEST_P(ContextTest, NothingIsFoundWhereNothingWasStored) {  // ZF-72
  EXPECT_FALSE(empty->get_cache(DType::kF32).found);
  EXPECT_FALSE(empty->get_kv_cache().found);
  EXPECT_FALSE(empty->with_cache(nullptr)->get_cache(DType::kF32).found);
}

TEST_P(ContextTest, AnInnerContextShadowsAndAnOuterOneStays) {  // ZF-72
  const auto outer = empty->with_cache(kv);
  const auto inner = outer->with_cache(other);
  EXPECT_EQ(inner->get_cache(DType::kF32).cache, other);
  EXPECT_EQ(outer->get_cache(DType::kF32).cache, kv);
  EXPECT_EQ(outer->with_kv_cache(kv)->get_cache(DType::kF32).cache, kv);
}

TEST_P(ContextTest, OnlyTheStoredElementTypeIsFound) {  // ZF-73
  EXPECT_FALSE(empty->with_cache(kv)->get_cache(DType::kF16).found);
}

TEST_P(ContextTest, ANullKvCacheCountsAsFoundOnlyInOriginal) {  // ZF-73
  const auto context = empty->with_cache(other)->with_kv_cache(nullptr);
  EXPECT_EQ(context->get_cache(DType::kF32).found, GetParam() == Profile::kOriginal);
  EXPECT_EQ(context->get_cache(DType::kF32).cache, nullptr) << "the outer cache stays shadowed";
  EXPECT_FALSE(context->get_kv_cache().found);
}

TEST_P(ContextTest, AKvCacheIsFoundByItsOwnType) {  // ZF-74
  EXPECT_EQ(empty->with_cache(kv)->get_kv_cache().cache, kv);
  EXPECT_FALSE(empty->with_cache(other)->get_kv_cache().found);
}

INSTANTIATE_TEST_SUITE_P(Profiles, ContextTest,
                         testing::Values(Profile::kOriginal, Profile::kDocumented),
                         [](const auto& profile) {
                           return profile.param == Profile::kOriginal ? "original" : "documented";
                         });

}  // namespace
}  // namespace kvo::provider
