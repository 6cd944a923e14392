// Why prompts are not reused: each reason by a script, and that reasons add up in random cases.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {
namespace {

using testing::ElementsAre;

std::vector<Lookup> lookups_of(const CacheKind& kind, const Record& config,
                               const std::vector<Op>& script) {
  const Setup setup{.profile = Profile::kOriginal, .config = config};
  const auto session = contracts().reference_of(kind).open(setup).value();
  const auto history = history_oracle(kind, setup);
  EXPECT_TRUE(history->keep_lookups());
  Probe probe;
  for (const Op& op : script) (void)history->check(op, session->apply(op, probe));
  return {history->lookups().begin(), history->lookups().end()};
}

/// What the last lookup of a script missed: "2-3 evicted at op 5 for request 1".
std::vector<std::string> missed(const std::vector<Op>& script, BlocksConfig config = {}) {
  config.num_blocks = 5;
  config.block_size = 2;
  config.max_model_len = 16;
  std::vector<std::string> texts;
  const auto lookups = lookups_of(blocks_kind(), Record::of(config), script);
  for (const MissedTokens& tokens : lookups.back().missed)
    texts.push_back(std::to_string(tokens.begin) + "-" + std::to_string(tokens.end - 1) + " " +
                    tokens.text());
  return texts;
}

Op made(std::int64_t request, const Tokens& tokens) {
  return Op::of(MakeRequest{.request = request, .tokens = tokens});
}
Op stored(std::int64_t request, std::int64_t tokens) {
  return Op::of(Allocate{.request = request, .tokens = tokens});
}
Op matched(std::int64_t request) {
  return Op::of(MatchBlocks{.request = request});
}

TEST(Misses, NeverSeen) {
  EXPECT_THAT(missed({made(0, {1, 2, 3}), stored(0, 3), made(1, {4, 2, 3}), matched(1)}),
              ElementsAre("0-2 never seen"));
}
TEST(Misses, Diverged) {
  EXPECT_THAT(
      missed({made(0, {1, 2, 3, 4, 5}), stored(0, 5), made(1, {1, 2, 3, 9, 9}), matched(1)}),
      ElementsAre("2-2 block goes on otherwise", "3-4 diverged at token 3 from request 0"));
}
TEST(Misses, OtherNamespace) {
  EXPECT_THAT(
      missed({made(0, {1, 2, 3}), stored(0, 3),
              Op::of(MakeRequest{.request = 1, .tokens = {1, 2, 4}, .salt = "b"}), matched(1)}),
      ElementsAre("0-1 other namespace than request 0", "2-2 diverged at token 2 from request 0"));
}
TEST(Misses, Evicted) {
  EXPECT_THAT(
      missed({made(0, {1, 2, 3}), stored(0, 3), Op::of(FreeRequest{.request = 0}),
              made(1, {5, 5, 5, 5, 5, 5, 5}), stored(1, 7), made(2, {1, 2, 3}), matched(2)}),
      ElementsAre("0-1 evicted at op 4 for request 1", "2-2 last block not full"));
}
TEST(Misses, LastBlocks) {
  const std::vector<Op> first{made(0, {1, 2, 3, 4}), stored(0, 4)};
  std::vector<Op> script = first;
  script.insert(script.end(), {made(1, {1, 2, 3}), matched(1)});
  EXPECT_THAT(missed(script), ElementsAre("2-2 last block not full"));
  script = first;
  script.insert(script.end(), {made(1, {1, 2, 3, 4}), matched(1)});
  EXPECT_THAT(missed(script), ElementsAre("2-3 block of the last token"));
}
TEST(Misses, NotStoredYet) {
  EXPECT_THAT(missed({made(0, {1, 2, 3}), made(1, {1, 2, 3}), matched(1)}),
              ElementsAre("0-1 not stored yet", "2-2 last block not full"));
}
TEST(Misses, BehindAGap) {
  EXPECT_THAT(missed({made(0, {1, 2, 3, 4, 5}), stored(0, 5), Op::of(EvictBlocks{.blocks = Ids{1}}),
                      made(1, {1, 2, 3, 4, 6}), matched(1)}),
              ElementsAre("0-1 evicted at op 2", "2-3 behind a gap",
                          "4-4 diverged at token 4 from request 0"));
}
TEST(Misses, DraftHeads) {
  EXPECT_THAT(missed({made(0, {1, 2, 3, 4, 5}), stored(0, 5), made(1, {1, 2, 3, 4, 5}), matched(1)},
                     {.eagle = true}),
              ElementsAre("2-3 draft heads", "4-4 last block not full"));
}
TEST(Misses, NotLookedUp) {
  EXPECT_THAT(missed({made(0, {1, 2, 3}), stored(0, 3),
                      Op::of(MakeRequest{.request = 1, .tokens = {1, 2, 3}, .skip_reading = true}),
                      matched(1)}),
              ElementsAre("0-2 not looked up"));
}
TEST(Misses, OfATree) {
  const auto lookups = lookups_of(
      radix_kind(), Record::of(RadixConfig{.slots = 3}),
      {Op::of(FileRequest{.request = 0, .tokens = {1, 2, 3}}), Op::of(Admit{.request = 0}),
       Op::of(Extend{.request = 0, .tokens = 3}), Op::of(Finish{.request = 0, .keep = true}),
       Op::of(EvictUnits{.tokens = 3}), Op::of(FileRequest{.request = 1, .tokens = {1, 2, 4}}),
       Op::of(Admit{.request = 1})});
  ASSERT_EQ(lookups.size(), 2U);
  ASSERT_EQ(lookups[1].missed.size(), 2U);
  EXPECT_EQ(lookups[1].missed[0].text(), "evicted at op 4");
  EXPECT_EQ(lookups[1].missed[1].text(), "diverged at token 2 from request 0");
}

TEST(Misses, AddUpInRandomCases) {
  const Law& law = *contracts().find_law("agrees_with_reference");
  std::size_t lookups = 0;
  std::size_t explained = 0;
  for (const CacheKind* kind : contracts().kinds()) {
    const MakeOracle make = contracts().oracle_of(*kind);
    const auto any = make != nullptr ? make(*kind, {}) : nullptr;
    if (any == nullptr || !any->keep_lookups()) continue;
    ++explained;
    const std::size_t before = lookups;
    const Subject& reference = contracts().reference_of(*kind);
    for (std::uint64_t index = 0; index < 60; ++index) {
      const CasePlan plan =
          random_case(contracts(), law, {&reference}, 1, index, Profile::kOriginal, Scale::kSmall);
      const auto session = reference.open(plan.setup);
      if (!session) continue;
      const auto history = make(*kind, plan.setup);
      (void)history->keep_lookups();
      const auto ops = plan.ops();
      Probe probe;
      Labels unused;
      while (const auto op = ops->next()) {
        const Observation seen = (*session)->apply(*op, probe);
        (void)history->check(*op, seen);
        ops->observe(*op, seen, unused);
      }
      for (const Lookup& lookup : history->lookups()) {
        std::int64_t at = lookup.reused;
        for (const MissedTokens& tokens : lookup.missed) {
          EXPECT_EQ(tokens.begin, at) << plan.name << ", op " << lookup.operation;
          EXPECT_GT(tokens.end, tokens.begin);
          at = tokens.end;
        }
        EXPECT_EQ(at, lookup.tokens) << plan.name << ", op " << lookup.operation;
        ++lookups;
      }
    }
    EXPECT_GT(lookups - before, 50U) << kind->name();
  }
  EXPECT_GE(explained, 10U);
}

}  // namespace
}  // namespace kvo::prefix
