#include "tools/probe/trace_plans.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/probe/rows.hpp"

namespace kvo::tools {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using traces::Request;

// Prompts of 40, 40 and 20 tokens in blocks of 16; the first two share two blocks.
std::vector<Request> requests() {
  return {
      {.arrival_us = 3, .input_tokens = 20, .output_tokens = 2, .block_ids = {1, 8}, .line = 3},
      {.arrival_us = 1, .input_tokens = 40, .output_tokens = 3, .block_ids = {1, 2, 3}, .line = 1},
      {.arrival_us = 2, .input_tokens = 40, .output_tokens = 4, .block_ids = {1, 2, 4}, .line = 2}};
}

std::vector<ProbeRequest> all_of(TracePlans& plans) {
  std::vector<ProbeRequest> all;
  while (const auto plan = plans.next())
    for (const auto& wave : plan->waves) all.insert(all.end(), wave.begin(), wave.end());
  return all;
}

TEST(TracePlans, PromptsShareTheBlocksOfTheTrace) {
  const probe::Tables tables;
  TracePlans plans(tables, requests(), {}, 1);
  EXPECT_EQ(plans.scale(), 1);
  const auto all = all_of(plans);
  ASSERT_EQ(all.size(), 3U);
  // In order of arrival. The block of a last token is shared up to this token, which reads far.
  EXPECT_EQ(all[0].prompt.size(), 40U);
  EXPECT_EQ(all[2].prompt.size(), 20U);
  EXPECT_EQ(common_prefix(all[0].prompt, all[1].prompt), 28U);  // two of three blocks of 14
  EXPECT_EQ(common_prefix(all[0].prompt, all[2].prompt), 14U);
  EXPECT_EQ(all[1].tokens, 4U);
  for (const ProbeRequest& request : all) {
    EXPECT_EQ(request.prompt.front(), probe::kBegin);
    EXPECT_GE(std::size_t{1} << tables[request.prompt.back()].token_class, request.prompt.size());
  }
}

TEST(TracePlans, TheSeedDecidesTheTokens) {
  const probe::Tables tables;
  TracePlans one(tables, requests(), {}, 1);
  TracePlans same(tables, requests(), {}, 1);
  TracePlans other(tables, requests(), {}, 2);
  const auto prompt = all_of(one)[0].prompt;
  EXPECT_EQ(prompt, all_of(same)[0].prompt);
  EXPECT_LT(common_prefix(prompt, all_of(other)[0].prompt), 5U);
}

TEST(TracePlans, RequestsWithoutIdsShareNothing) {
  const probe::Tables tables;
  std::vector<Request> without = requests();
  for (Request& request : without) request.block_ids.clear();
  TracePlans plans(tables, without, {}, 1);
  const auto all = all_of(plans);
  EXPECT_LT(common_prefix(all[0].prompt, all[1].prompt), 5U);
}

TEST(TracePlans, LongPromptsAreScaledDownOrSkipped) {
  const probe::Tables tables;
  std::vector<Request> long_ones = requests();
  long_ones.push_back({.arrival_us = 4, .input_tokens = 1000, .output_tokens = 9000});
  long_ones.push_back({.arrival_us = 5});
  TracePlans scaled(tables, long_ones, {.longest = 64}, 1);
  EXPECT_EQ(scaled.scale(), 16);
  const auto all = all_of(scaled);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[3].prompt.size(), 63U);
  EXPECT_EQ(all[3].tokens, 256U);
  EXPECT_THAT(scaled.skipped(), ElementsAre("1 request of the trace: no token of a prompt"));

  TracePlans skipping(tables, long_ones, {.scale = 1, .longest = 64}, 1);
  EXPECT_EQ(all_of(skipping).size(), 3U);
  EXPECT_THAT(skipping.skipped(),
              ElementsAre("1 request of the trace: more than 64 tokens of a prompt",
                          "1 request of the trace: no token of a prompt"));
}

TEST(TracePlans, AWindowHasSinksInIt) {
  const probe::Tables tables({.window = 64});
  TracePlans plans(tables, {{.input_tokens = 300, .output_tokens = 5}}, {}, 1);
  const auto all = all_of(plans);
  for (std::size_t at = 16; at + 1 < 300; at += 16) EXPECT_EQ(all[0].prompt[at], probe::kSink);
}

}  // namespace
}  // namespace kvo::tools
