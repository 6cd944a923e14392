#include "reference/provider/quirks.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "reference/block_pool/quirks.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::provider {
namespace {

// A paged cache and its pool are told their quirks by name together.
TEST(ProviderQuirks, NoNameIsUsedTwiceNeitherByThePool) {
  std::set<std::string> names;
  for (const QuirkInfo& row : joined(kQuirkRows, block_pool::kQuirkRows)) {
    EXPECT_TRUE(names.insert(row.name()).second) << row.name();
    EXPECT_TRUE(row.rule.starts_with("ZF-")) << row.name();
  }
}

TEST(ProviderQuirks, EveryRowConcernsAKind) {
  std::set<Quirk> listed;
  const auto add = [&](const auto& quirks) { listed.insert(quirks.begin(), quirks.end()); };
  add(kContiguousQuirks);
  add(kPagedQuirks);
  add(kDeviceQuirks);
  add(kTensorQuirks);
  add(kContextQuirks);
  EXPECT_EQ(listed.size(), kQuirkRows.size());
  EXPECT_TRUE(std::ranges::all_of(kTracingQuirks, [&](Quirk q) { return listed.contains(q); }));
}

TEST(ProviderQuirks, ACaseHasThoseOfItsProfileAndThoseThatItNames) {
  const auto set = [](Profile profile, std::vector<std::string> names) {
    return quirks_of<Quirk>({.profile = profile, .quirks = std::move(names)}, kQuirkRows,
                            block_pool::kQuirkRows);
  };
  EXPECT_TRUE(set(Profile::kOriginal, {})->has(Quirk::kNullKvFound));
  const auto named = set(Profile::kDocumented, {"flat_storage", "alloc_keeps_used"});
  EXPECT_TRUE(named->has(Quirk::kFlatStorage));
  EXPECT_FALSE(named->has(Quirk::kSharedScratch));
  EXPECT_EQ(set(Profile::kDocumented, {"flat"}).error(), fail(Code::kNotSupported));
}

}  // namespace
}  // namespace kvo::provider
