#include "tools/probe/smaller_plan.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::tools {
namespace {

using testing::Each;
using testing::SizeIs;

// Texts of different values behind one token that begins them.
ProbeRequest request_of(std::size_t size, std::uint32_t number) {
  ProbeRequest request{{probe::kBegin}, 16};
  while (request.prompt.size() < size)
    request.prompt.push_back(probe::kFirstValue + probe::kValues * number +
                             static_cast<probe::Token>(request.prompt.size() % probe::kValues));
  return request;
}

TEST(SmallerPlan, LeavesOutRequestsThatDoNotMatter) {
  ProbeWaves waves;
  for (std::uint32_t number = 0; number < 8; ++number) waves.push_back({request_of(100, number)});
  // Wrong if a text of class 3 comes before, and both have 20 tokens.
  const LastIsWrong wrong = [](const ProbeWaves& all) {
    return std::ranges::any_of(all, [&](const auto& wave) {
      const ProbeTokens& prompt = wave[0].prompt;
      return (prompt.back() - probe::kFirstValue) / probe::kValues == 3 && prompt.size() >= 20 &&
             all.back().back().prompt.size() >= 20;
    });
  };
  const ProbeWaves small = smaller_waves(waves, 200, wrong);
  EXPECT_THAT(small, SizeIs(2));
  for (const auto& wave : small) {
    EXPECT_THAT(wave, SizeIs(1));
    EXPECT_THAT(wave[0].prompt, SizeIs(20));
    EXPECT_EQ(wave[0].tokens, 1U);
  }
  EXPECT_EQ(small.back()[0].prompt.back(), waves.back()[0].prompt.back());
}

TEST(SmallerPlan, LeavesRequestsThatMatterTogetherInOneWave) {
  ProbeWaves waves{{request_of(50, 0)}, {request_of(50, 1), request_of(50, 2)}};
  for (std::uint32_t number = 3; number < 9; ++number) waves[1].push_back(request_of(60, number));
  const LastIsWrong wrong = [](const ProbeWaves& all) { return all.back().size() >= 3; };
  EXPECT_FALSE(wrong(one_by_one(waves)));
  EXPECT_THAT(one_by_one(waves), SizeIs(9));
  EXPECT_THAT(one_by_one(waves), Each(SizeIs(1)));
  const ProbeWaves small = smaller_waves(waves, 200, wrong);
  ASSERT_THAT(small, SizeIs(1));
  ASSERT_THAT(small[0], SizeIs(3));
  EXPECT_EQ(small[0].back().prompt.back(), waves[1].back().prompt.back());
  for (const ProbeRequest& request : small[0]) EXPECT_THAT(request.prompt, SizeIs(2));
}

TEST(SmallerPlan, AsksAtMostSoOften) {
  std::size_t asked = 0;
  const ProbeWaves waves(6, {request_of(200, 1)});
  (void)smaller_waves(waves, 15, [&](const ProbeWaves&) { return ++asked % 2 == 0; });
  EXPECT_EQ(asked, 15U);
}

TEST(SmallerPlan, OtherValuesShareWhatTheseShare) {
  const ProbeWaves waves{{request_of(50, 1)}, {request_of(80, 1), request_of(80, 2)}};
  const ProbeWaves other = with_other_values(waves, 7);
  EXPECT_NE(other[0][0].prompt, waves[0][0].prompt);
  EXPECT_EQ(common_prefix(other[0][0].prompt, other[1][0].prompt), 50U);
  EXPECT_EQ(common_prefix(other[1][0].prompt, other[1][1].prompt), 1U);
}

}  // namespace
}  // namespace kvo::tools
