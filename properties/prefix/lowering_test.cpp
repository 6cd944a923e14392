// Request traces on contract `prefix`: what the lowerings emit, and what their figures rest on.
#include "properties/prefix/lowering.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "properties/replay/driven.hpp"
#include "reference/prefix/operations.hpp"
#include "traces/figures/statistics.hpp"

namespace kvo::prefix {
namespace {

using replay::chats;
using replay::driven;
using replay::Driven;
using replay::LoweringInput;
using replay::request;
using replay::SchedulePolicy;
using testing::ElementsAre;
using testing::IsSupersetOf;
using traces::Request;
using Lines = std::vector<std::string>;

constexpr std::int64_t kNoLimit = 200;  // percent of what all takes, where a pool is ample

LoweringInput input_of(const std::vector<Request>& requests, SchedulePolicy schedule = {},
                       std::int64_t pool_percent = kNoLimit, std::uint64_t seed = 1) {
  return {.requests = requests,
          .schedule = schedule,
          .policy = {.block_size = 4, .pool_percent = pool_percent},
          .seed = seed};
}

// Queries are left out.
std::string text_of(const Op& op) {
  const auto some = [](std::int64_t count) { return " x" + std::to_string(count); };
  if (const auto* made = op.as<MakeRequest>()) return "request" + some(std::ssize(made->tokens));
  if (const auto* made = op.as<FileRequest>()) return "request" + some(std::ssize(made->tokens));
  if (const auto* made = op.as<Append>()) return "append" + some(std::ssize(made->tokens));
  if (const auto* made = op.as<Allocate>())
    return "allocate" + some(made->tokens) +
           (made->hit_tokens ? " behind" + some(*made->hit_tokens) : "");
  if (const auto* made = op.as<Extend>())
    return "extend" + some(made->tokens) + (made->append.empty() ? "" : " decoded");
  if (op.as<MatchBlocks>() != nullptr) return "match";
  if (op.as<Admit>() != nullptr) return "admit";
  if (op.as<Checkpoint>() != nullptr) return "checkpoint";
  if (op.as<FreeRequest>() != nullptr) return "free";
  if (const auto* made = op.as<Finish>())
    return made->keep == std::optional(false) ? "finish unfiled" : "finish";
  if (op.as<Withdraw>() != nullptr) return "withdraw";
  if (const auto* made = op.as<SetRequest>())
    return made->status == std::optional(RequestStatus::kPreempted) ? "preempted" : "";
  return "";
}

constexpr SchedulePolicy kOneByOne{
    .max_running = 1, .chunk_tokens = 4, .draft_every = 0, .cancel_every = 0};

// ---- The steps of a request ----

TEST(BlocksLowering, WhatWasHitIsNotComputed) {
  const std::vector<Request> all{request(10, 2, {1, 2}), request(10, 0, {1, 3})};
  EXPECT_THAT(driven("prefix.blocks full", input_of(all, kOneByOne)).lines(text_of),
              ElementsAre("request x10", "match", "allocate x4", "allocate x4", "allocate x2",
                          "append x1", "allocate x1", "append x1", "allocate x1", "free",
                          // Of five tokens in common one block of four is whole.
                          "request x10", "match", "allocate x4 behind x4", "allocate x2", "free"));
}

TEST(BlocksLowering, DraftsAreAppendedOnceTheyAreAccepted) {
  SchedulePolicy drafts = kOneByOne;
  drafts.draft_every = 1;
  drafts.draft_tokens = 3;
  const std::vector<Request> all{request(3, 30)};
  const Driven seen = driven("prefix.blocks full", input_of(all, drafts));
  std::int64_t appended = 0;
  std::int64_t computed = 0;
  for (const Op& op : seen.ops) {
    if (const auto* made = op.as<Allocate>(); made != nullptr && computed >= 3) {
      EXPECT_EQ(made->tokens, 3);
    }
    if (const auto* made = op.as<Append>()) appended += std::ssize(made->tokens);
    if (const auto* made = op.as<SetRequest>()) computed = made->computed.value_or(0);
  }
  EXPECT_EQ(computed, 33);
  EXPECT_EQ(appended, 30);
}

TEST(RadixLowering, AChunkOfAPromptIsFiledAndADecodedTokenIsNot) {
  const std::vector<Request> all{request(10, 2, {1, 2}), request(10, 0, {1, 3})};
  EXPECT_THAT(
      driven("prefix.radix tokens", input_of(all, kOneByOne)).lines(text_of),
      ElementsAre("request x10", "admit", "extend x4", "checkpoint", "extend x4", "checkpoint",
                  "extend x2", "checkpoint", "extend x1 decoded", "extend x1 decoded", "finish",  //
                  "request x10", "admit", "extend x4", "checkpoint", "extend x1", "checkpoint",
                  "finish"));
}

TEST(PrefixLowerings, ACancelledRequestGivesBackWhatItHas) {
  SchedulePolicy cancelled = kOneByOne;
  cancelled.cancel_every = 1;
  const std::vector<Request> all{request(12, 3, {1, 2, 3}), request(12, 3, {1, 2, 4})};
  const Driven blocks = driven("prefix.blocks full", input_of(all, cancelled));
  EXPECT_THAT(blocks.lines(text_of), ElementsAre("request x12", "match", "allocate x4", "free",  //
                                                 "request x12", "match", "free"));
  const Driven radix = driven("prefix.radix tokens", input_of(all, cancelled));
  EXPECT_THAT(radix.lines(text_of), ElementsAre("request x12", "admit", "extend x4", "checkpoint",
                                                "finish", "request x12", "admit", "withdraw"));
  for (const Driven& seen : {blocks, radix}) EXPECT_TRUE(seen.labels.contains(kCancelled));
}

// ---- A pool that is too small ----

// A seed by which `full` and `tokens` have room for one long request and little else.
constexpr std::uint64_t kTight = 4;
constexpr SchedulePolicy kTwoSlots{
    .max_running = 2, .chunk_tokens = 4, .draft_every = 0, .cancel_every = 0};

TEST(PrefixLowerings, WhoeverWasLetInLastGivesWayAndGoesOnWithWhatItDecoded) {
  const std::vector<Request> all{request(8, 24, {1}), request(8, 24, {2})};
  for (const char* name : {"prefix.blocks full", "prefix.radix tokens"}) {
    Driven seen = driven(name, input_of(all, kTwoSlots, 50, kTight));
    EXPECT_EQ(seen.figures["preemptions"], 1) << name;
    EXPECT_THAT(seen.labels, IsSupersetOf({kThrownOut, kResumed})) << name;
    EXPECT_GT(seen.figures["tokens of resumed requests"], 8) << name << ": with what it decoded";
    EXPECT_GT(seen.figures["tokens of resumed requests hit"], 0) << name;
    const Lines lines = seen.lines(text_of);
    EXPECT_EQ(std::ranges::count(lines, "request x8"), 2) << name << ": it is not made anew";
    std::int64_t decoded = 0;
    for (const Op& op : seen.ops) {
      if (const auto* made = op.as<Append>()) decoded += std::ssize(made->tokens);
      if (const auto* made = op.as<Extend>()) decoded += made->append.empty() ? 0 : 1;
    }
    EXPECT_EQ(decoded, 48) << name << ": each token of an answer once";
  }
}

TEST(PrefixLowerings, ARequestThatIsNotLetInPreemptsNobody) {
  const std::vector<Request> all{request(30, 2, {1}), request(30, 2, {2}), request(30, 2, {3})};
  SchedulePolicy schedule = kTwoSlots;
  schedule.chunk_tokens = 30;
  for (const char* name : {"prefix.blocks full", "prefix.radix tokens"}) {
    Driven seen = driven(name, input_of(all, schedule, 50, kTight));
    EXPECT_TRUE(seen.labels.contains(kWaits)) << name;
    EXPECT_EQ(seen.figures["preemptions"], 0) << name;
    EXPECT_EQ(seen.figures["requests"], 3) << name;
  }
}

TEST(PrefixLowerings, SmallPoolsEvictAndHitLess) {
  for (const char* name : {"prefix.blocks full", "prefix.radix tokens", "prefix.blocks window",
                           "prefix.radix pages"}) {
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const std::uint64_t ample =
          kTight +
          (std::string_view(name).ends_with('w') || std::string_view(name).ends_with("pages") ? 0
                                                                                              : 1);
      Driven open = driven(name, input_of(chats(), {}, kNoLimit, ample), profile);
      Driven seen = driven(name, input_of(chats(), {}, 10, ample), profile);
      EXPECT_GT(seen.figures["evictions"], 10) << name;
      EXPECT_EQ(open.figures["evictions"], 0) << name;
      EXPECT_GT(seen.figures["prompt tokens hit"], 0) << name;
      EXPECT_LT(seen.figures["prompt tokens hit"], open.figures["prompt tokens hit"]) << name;
      EXPECT_LE(open.figures["prompt tokens hit"], open.figures["prompt tokens hit at best"])
          << name;
      EXPECT_LE(open.figures["prompt blocks hit"], open.figures["prompt blocks hit at best"])
          << name;
      EXPECT_LE(open.figures["requests that hit"], open.figures["requests that hit at best"])
          << name;
      EXPECT_EQ(seen.figures["prompt tokens hit at best"],
                open.figures["prompt tokens hit at best"])
          << "what is known does not depend on what was evicted";
    }
  }
}

// ---- Figures ----

// A tree of single tokens serves all that was there before, but for a prompt's last token.
TEST(PrefixLowerings, WithoutALimitATreeHitsAllThatIsKnown) {
  SchedulePolicy serial = kOneByOne;
  serial.chunk_tokens = 64;
  Driven seen = driven("prefix.radix tokens", input_of(chats(), serial));
  EXPECT_GT(seen.figures["prompt tokens hit"], seen.figures["prompt tokens"] / 4);
  EXPECT_EQ(seen.figures["prompt tokens hit"], seen.figures["prompt tokens hit at best"]);
  EXPECT_EQ(seen.figures["requests that hit"], seen.figures["requests that hit at best"]);
  EXPECT_EQ(seen.figures["requests"], std::ssize(chats()));
}

TEST(PrefixLowerings, AtBestIsWhatTheTraceSaysHoweverItIsCut) {
  traces::StatisticsCounter counter;
  for (const Request& one : chats()) counter.add(one);
  const auto wanted = counter.result();
  ASSERT_GT(wanted.prefix_hits, 0U);
  for (const std::int64_t per_case : {3, 1000}) {
    const CacheKind& kind = blocks_kind();
    const replay::Replay replay(contracts(), chats(),
                                {{.kind = &kind, .reference = &contracts().reference_of(kind)}},
                                {.lowering = {.requests_per_case = per_case}, .scale = 1});
    std::map<std::string, std::int64_t> sums;
    for (std::uint64_t index = 0; index < replay.cases(); ++index)
      for (const Figure& figure : run_case(replay.plan(index), {.attempts = 0}).figures)
        sums[figure.name] += figure.value;
    for (const char* name : {"full: ", "window: "}) {
      EXPECT_EQ(sums[std::string(name) + "prompt blocks"], wanted.block_references) << per_case;
      EXPECT_EQ(sums[std::string(name) + "prompt blocks hit at best"], wanted.prefix_hits)
          << per_case;
    }
  }
}

TEST(PrefixLowerings, WithoutIdsNothingIsHitButByWhoeverResumes) {
  std::vector<Request> all = chats();
  for (Request& one : all) one.block_ids.clear();
  for (const replay::Lowering& lowering : lowerings()) {
    Driven seen = driven(lowering.full_name(), input_of(all));
    EXPECT_EQ(seen.figures["prompt tokens hit"], 0);
    EXPECT_EQ(seen.figures["prompt tokens hit at best"], 0);
  }
}

// ---- All ----

// Alone, a faulty cache is its own judge: only what was put in can tell.
TEST(PrefixLowerings, AFaultyJudgeIsCaught) {
  for (const char* name :
       {"prefix.blocks@mutant:pinned_stays_free", "prefix.blocks@mutant:key_stays_in_index"}) {
    EXPECT_TRUE(
        replay::caught_alone(name, {.lowering = {.pool_percent = 20}, .scale = 1, .seed = kTight}))
        << name;
  }
}

}  // namespace
}  // namespace kvo::prefix
