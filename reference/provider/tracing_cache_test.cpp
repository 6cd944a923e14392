#include "reference/provider/tracing_cache.hpp"

#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::provider {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct TracingCacheTest : testing::Test {
  Tensor a = make_tensor({1, 1, 2});
  Tensor b = make_tensor({1, 1, 2});
  Tensor frozen = make_tensor({2, 2});
  std::unique_ptr<Tracing> cache;

  void open(Real real, const std::vector<const Tensor*>& first = {},
            Profile profile = Profile::kOriginal) {
    TracingConfig config{.real = real, .num_layers = 1, .max_seq_len = 2};
    config.pool = block_pool::New{1, 2, 2, 1};
    auto provider = TracingCache::make_real(config, QuirkSet<Quirk>(profile),
                                            QuirkSet<block_pool::Quirk>(profile));
    cache = std::move(*TracingCache::make(std::move(*provider), first));
  }
  Status update(const Tensor& k, const Tensor& v) { return cache->update(0, {.k = &k, .v = &v}); }
  /// "AppendK 0->0": name, inputs and output of each traced operation.
  std::vector<std::string> ops() const {
    std::vector<std::string> lines;
    for (const TraceOp& op : cache->trace().ops) {
      std::string line = op.op.substr(std::string("KVCache").size());
      for (const std::int64_t slot : op.inputs) line += " " + std::to_string(slot);
      lines.push_back(line + "->" + std::to_string(op.output));
    }
    return lines;
  }
};

TEST_F(TracingCacheTest, AnUpdateIsTwoOpsOverEveryRealCache) {  // ZF-68
  for (const Real real : {Real::kKv, Real::kPaged, Real::kTensor}) {
    open(real);
    ASSERT_TRUE(update(a, b));
    EXPECT_THAT(ops(), ElementsAre("AppendK 0->0", "AppendV 1->1"));
    EXPECT_EQ(cache->seq_len(), 1);
  }
}

TEST_F(TracingCacheTest, WhatTheRealCacheRefusesLeavesNoTrace) {  // ZF-68, ZF-69
  open(Real::kKv);
  const Tensor long_rows = make_tensor({1, 3, 2});
  EXPECT_EQ(update(long_rows, long_rows).error(), fail(Code::kFull));
  EXPECT_EQ(*cache->get(0), std::nullopt);
  EXPECT_FALSE(cache->update(0, {}));
  EXPECT_THAT(ops(), IsEmpty());
  EXPECT_EQ(cache->trace().next_slot, 0);
}

TEST_F(TracingCacheTest, EveryQueryMakesTwoNewObjects) {  // ZF-69, ZF-71
  open(Real::kKv);
  ASSERT_TRUE(update(a, b));
  ASSERT_TRUE(cache->get(0).has_value());
  ASSERT_TRUE(cache->get(0).has_value());
  EXPECT_THAT(ops(), ElementsAre("AppendK 0->0", "AppendV 1->1", "GetK->2", "GetV->3", "GetK->4",
                                 "GetV->5"));
  EXPECT_EQ(cache->trace().shapes.back(), (SlotShape{5, {1, 1, 2}}));
}

TEST_F(TracingCacheTest, SlotsFollowIdentityAndFrozenTensorsComeFirst) {  // ZF-71
  open(Real::kKv, {&frozen, &a});
  EXPECT_THAT(cache->trace().frozen_slots, ElementsAre(0, 1));
  ASSERT_TRUE(update(b, a));
  ASSERT_TRUE(update(b, b));
  EXPECT_THAT(ops(), ElementsAre("AppendK 2->2", "AppendV 1->1", "AppendK 2->2", "AppendV 2->2"));
  EXPECT_EQ(cache->trace().next_slot, 3);
  EXPECT_EQ(cache->trace().shapes.front(), (SlotShape{0, {2, 2}}));
}

TEST_F(TracingCacheTest, LengthResetAndTruncateOnlyForward) {  // ZF-70
  open(Real::kKv);
  ASSERT_TRUE(update(a, b));
  EXPECT_TRUE(cache->truncate(0));
  EXPECT_EQ(cache->seq_len(), 0);
  EXPECT_TRUE(cache->reset());
  EXPECT_EQ(ops().size(), 2U);
}

TEST_F(TracingCacheTest, AnAbortOfTheRealCacheIsAnErrorInDocumented) {  // ZF-70
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    open(Real::kKv, {}, profile);
    ASSERT_TRUE(update(a, b));
    EXPECT_TRUE(cache->truncate(-1));
    const auto seen = cache->get(0);
    EXPECT_EQ(seen.has_value(), profile == Profile::kDocumented);
    EXPECT_EQ(ops().size(), 2U);
  }
}

TEST(SlotShape, IsAPairInLogs) {
  SlotShape read;
  ASSERT_TRUE(read.from_json(boost::json::parse("[3,[1,2]]")));
  EXPECT_EQ(read, (SlotShape{3, {1, 2}}));
  EXPECT_EQ(boost::json::serialize(read.to_json()), "[3,[1,2]]");
  for (const char* text : {"3", "[3]", "[3,4]", R"(["a",[1]])"})
    EXPECT_FALSE(read.from_json(boost::json::parse(text))) << text;
}

}  // namespace
}  // namespace kvo::provider
