#include "traces/figures/validate.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

/// A request with blocks of ten tokens.
Request request(std::uint64_t line, std::int64_t input_tokens, std::vector<std::uint64_t> ids) {
  return {.arrival_us = static_cast<std::int64_t>(line) * 1000,
          .input_tokens = input_tokens,
          .output_tokens = 1,
          .block_ids = std::move(ids),
          .line = line};
}

Validation validation_of(const std::vector<Request>& requests, std::size_t max_findings = 20) {
  return test::result_of(Validator({.block_size = 10, .max_findings = max_findings}), requests);
}

std::vector<std::string> texts(const Validation& validation) {
  std::vector<std::string> all;
  for (const auto& finding : validation.findings) all.push_back(text("t", finding));
  return all;
}

TEST(Validate, FindsNothingInASoundTrace) {
  const auto found = validation_of(
      {request(1, 25, {0, 1, 2}), request(2, 25, {0, 1, 2}), request(3, 30, {0, 1, 3})});
  EXPECT_EQ(found.requests, 3u);
  EXPECT_TRUE(found.findings.empty());
  EXPECT_EQ(found.errors() + found.warnings(), 0u);
}

TEST(Validate, FindsTooManyAndTooFewIds) {
  const auto found = validation_of({request(1, 20, {0, 1, 2}), request(2, 21, {0, 1})});
  EXPECT_EQ(texts(found),
            (std::vector<std::string>{
                "t:1: error: block-count: 3 ids for 20 tokens in blocks of 10, which are 2 blocks",
                "t:2: error: block-count: 2 ids for 21 tokens in blocks of 10, which are 3 "
                "blocks"}));
  EXPECT_EQ(found.errors(), 2u);
}

TEST(Validate, AsksForNoIdsInAFormatWithoutIds) {
  EXPECT_EQ(validation_of({request(1, 20, {}), request(2, 5, {})}).errors(), 0u);
}

TEST(Validate, AsksForIdsAsSoonAsOneRequestHasSome) {
  const auto found = validation_of({request(1, 20, {}), request(2, 5, {7})});
  EXPECT_EQ(
      texts(found),
      std::vector<std::string>{
          "t:1: error: block-count: 0 ids for 20 tokens in blocks of 10, which are 2 blocks"});
}

TEST(Validate, FindsAnIdBehindTwoOthers) {
  const auto found = validation_of({request(4, 20, {0, 1}), request(5, 20, {2, 1}),
                                    request(6, 20, {3, 1}), request(7, 10, {1})});
  EXPECT_EQ(texts(found), std::vector<std::string>{"t:5: error: two-prefixes: id 1 stands behind "
                                                   "id 2, in line 4 behind id 0"});
  EXPECT_EQ(found.count(FindingKind::kTwoPrefixes), 1u);
}

TEST(Validate, FindsAnIdThatBeginsOnePromptAndContinuesAnother) {
  const auto found = validation_of({request(1, 10, {0}), request(2, 20, {1, 0})});
  EXPECT_EQ(texts(found), std::vector<std::string>{"t:2: error: two-prefixes: id 0 stands behind "
                                                   "id 1, in line 1 behind the beginning"});
}

TEST(Validate, FindsAnIdTwiceInOnePrompt) {
  const auto found = validation_of({request(1, 20, {5, 5})});
  EXPECT_EQ(found.count(FindingKind::kTwoPrefixes), 1u);
}

TEST(Validate, FindsAFullBlockThatWasPartial) {
  const auto found = validation_of({request(1, 13, {0, 1}), request(2, 25, {0, 1, 2})});
  EXPECT_EQ(texts(found), std::vector<std::string>{"t:2: error: two-lengths: id 1 stands for 10 "
                                                   "tokens, in line 1 for 3"});
}

TEST(Validate, FindsTwoPartialBlocksOfDifferentLengths) {
  const auto found =
      validation_of({request(1, 13, {0, 1}), request(2, 14, {0, 1}), request(3, 15, {0, 1})});
  EXPECT_EQ(found.count(FindingKind::kTwoLengths), 1u);
}

TEST(Validate, DoesNotReportMissingTokensAsLengthsToo) {
  const auto found = validation_of({request(1, 5, {0, 1}), request(2, 20, {0, 1})});
  EXPECT_EQ(found.count(FindingKind::kBlockCount), 1u);
  EXPECT_EQ(texts(found).back(),
            "t:2: error: two-lengths: id 0 stands for 10 tokens, in line 1 for 5");
  EXPECT_EQ(found.count(FindingKind::kTwoLengths), 1u);
}

TEST(Validate, WarnsOfRequestsOutOfOrder) {
  auto late = request(2, 10, {1});
  late.arrival_us = 5;
  const auto found = validation_of({request(1, 10, {0}), late, request(3, 10, {2})});
  EXPECT_EQ(texts(found), std::vector<std::string>{
                              "t:2: warning: order: arrives at 5 us, its predecessor at 1000 us"});
  EXPECT_EQ(found.errors(), 0u);
  EXPECT_EQ(found.warnings(), 1u);
}

TEST(Validate, WarnsOfRequestsWithoutTokens) {
  const auto found =
      validation_of({Request{.line = 1}, Request{.arrival_us = 1, .input_tokens = 3, .line = 2}});
  EXPECT_EQ(texts(found),
            (std::vector<std::string>{"t:1: warning: no-input: a prompt of no tokens",
                                      "t:1: warning: no-output: an answer of no tokens",
                                      "t:2: warning: no-output: an answer of no tokens"}));
}

TEST(Validate, KeepsTheFirstFindingsOfEachKindAndCountsAll) {
  std::vector<Request> requests;
  for (std::uint64_t line = 1; line <= 50; ++line) requests.push_back(request(line, 20, {line}));
  requests.push_back(Request{.arrival_us = 1, .output_tokens = 1, .line = 51});
  const auto found = validation_of(requests, 3);
  EXPECT_EQ(found.count(FindingKind::kBlockCount), 50u);
  EXPECT_EQ(found.count(FindingKind::kNoInput), 1u);
  EXPECT_EQ(found.count(FindingKind::kOrder), 1u);
  EXPECT_EQ(found.findings.size(), 5u);
  EXPECT_EQ(found.findings.front().line, 1u);
}

TEST(Validate, SurvivesTheLargestLengthsAndABlockSizeOfZero) {
  Validator validator({.block_size = 0});
  validator.add(request(1, kMaxTokens, {0, 1}));
  EXPECT_EQ(validator.result().count(FindingKind::kBlockCount), 1u);
}

}  // namespace

}  // namespace kvo::traces
