// Sizes that differ from case to case: all that vary do, the others do not.
#include "properties/replay/variation.hpp"

#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/describe/json.hpp"

namespace kvo::replay {
namespace {

constexpr std::uint64_t kCases = 4;

// The members of both policies, by name, as a run file has them.
boost::json::object members_of(const Policies& policies) {
  boost::json::object all = write_json(policies.schedule).as_object();
  const boost::json::value lowering = write_json(policies.lowering);
  for (const auto& [name, value] : lowering.as_object()) all.emplace(name, value);
  return all;
}

std::set<std::string> values_of(std::string_view member, const Members& varied_members,
                                std::uint64_t first_case) {
  std::set<std::string> values;
  for (std::uint64_t number = first_case; number < first_case + kCases; ++number)
    values.insert(boost::json::serialize(
        members_of(varied({}, varied_members, 1, "provider.paged", number)).at(member)));
  return values;
}

TEST(Variation, EveryMemberVariesWithinAsManyCasesAsItHasValues) {
  EXPECT_THAT(
      varying_members(),
      testing::ElementsAre("block_size", "burst", "chunk_tokens", "head_dim", "mask", "max_running",
                           "num_heads", "num_layers", "pool_percent", "storage"));
  for (const std::uint64_t first_case : {0U, 4U, 400U}) {
    for (const std::string& member : varying_members()) {
      const bool four = member == "block_size" || member == "head_dim";
      const std::size_t least = four ? 4 : member == "mask" ? 2 : 3;
      EXPECT_GE(values_of(member, varying_members(), first_case).size(), least)
          << member << " from case " << first_case;
    }
  }
}

TEST(Variation, APinnedMemberStaysWhatIsGiven) {
  for (const std::string& pinned : varying_members()) {
    Members others = varying_members();
    others.erase(pinned);
    EXPECT_THAT(values_of(pinned, others, 0),
                testing::ElementsAre(boost::json::serialize(members_of({}).at(pinned))));
  }
  EXPECT_EQ(members_of(varied({}, {}, 1, "provider.paged", 3)), members_of({}));
}

TEST(Variation, FollowsFromSeedLoweringAndCase) {
  const auto all = [](std::uint64_t seed, std::string_view lowering) {
    std::string text;
    for (std::uint64_t number = 0; number < kCases; ++number)
      text += sizes_text(varied({}, varying_members(), seed, lowering, number)) + "\n";
    return text;
  };
  EXPECT_EQ(all(1, "provider.paged"), all(1, "provider.paged"));
  EXPECT_NE(all(1, "provider.paged"), all(2, "provider.paged"));
  EXPECT_NE(all(1, "provider.paged"), all(1, "views.paged"));
}

TEST(Variation, ABatchOfAllSlotsHasAThousandTokensAtMost) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Policies policies = varied({}, varying_members(), 1, "positional.causal", number);
    EXPECT_LE(policies.schedule.max_running * policies.schedule.chunk_tokens, 1'000);
    EXPECT_GE(policies.schedule.chunk_tokens, 1);
  }
}

}  // namespace
}  // namespace kvo::replay
