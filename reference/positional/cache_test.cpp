// Guards of the public calls that no recorded operation can express.
#include "reference/positional/cache.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reference/positional/causal_cache.hpp"
#include "reference/positional/wrapper_cache.hpp"

namespace kvo::positional {
namespace {

std::string code_of(const Status& done) {
  return done ? "ok" : done.error().code_text();
}

TEST(PositionalContract, RefusesRowsWhoseValuesDoNotFillTheShapeOK50) {
  const auto cache = *CausalCache::make({.members = {MemberOptions{}}});
  const std::vector<std::int32_t> positions{0, 1};
  const std::vector<std::int64_t> sequences{0, 0};
  ASSERT_EQ(code_of(cache->init({.capacity = 4})), "ok");
  ASSERT_EQ(code_of(cache->start_forward({.positions = positions, .sequences = sequences})), "ok");
  const std::vector<float> four(4, 1.0F);
  const Rows whole{.tokens = 2, .heads = 1, .dim = 2, .values = four};
  const Rows overstated{.tokens = 2, .heads = 1, .dim = 3, .values = four};
  const Rows huge{.tokens = 2, .heads = kMaxPosition, .dim = std::int64_t{1} << 40, .values = four};
  EXPECT_EQ(code_of(cache->put(overstated, whole)), "precondition");
  EXPECT_EQ(code_of(cache->put(whole, overstated)), "precondition");
  EXPECT_EQ(code_of(cache->put(huge, whole)), "precondition");
  EXPECT_FALSE(cache->get().has_value()) << "the layer has no storage yet";
  EXPECT_EQ(code_of(cache->put(whole, whole)), "ok");
}

TEST(PositionalContract, RefusesSetupsBelowZeroAndWrappersOfNothing) {
  EXPECT_FALSE(CausalCache::make({.members = {{.kind = MemberKind::kSwa, .window = -1}}}));
  EXPECT_FALSE(
      CausalCache::make({.members = {{.kind = MemberKind::kSwaMem, .window = 1, .memory = -1}}}));
  EXPECT_TRUE(CausalCache::make({.members = {{.kind = MemberKind::kChunked, .chunk = -1}}}));
  EXPECT_FALSE(WrapperCache::make({}));
}

TEST(PositionalContract, NamesEveryQuirkOnce) {
  std::vector<std::string> names;
  for (const QuirkInfo& quirk : kQuirkRows) {
    EXPECT_EQ(std::ranges::count(names, quirk.name()), 0) << quirk.name();
    EXPECT_TRUE(quirk.rule.starts_with("OK-")) << quirk.name();
    names.push_back(quirk.name());
  }
  EXPECT_EQ(names.front(), "full_evicts");
  EXPECT_EQ(names.back(), "removal_half_done");
}

}  // namespace
}  // namespace kvo::positional
