// Replays of request traces: what was put in judges every subject, the reference too.
#include "properties/replay/replay.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "properties/replay/engine.hpp"
#include "traces/figures/generate.hpp"

namespace kvo {
namespace {

const std::vector<traces::Request>& requests() {
  static const auto kRequests = [] {
    traces::GenerateOptions options;
    options.requests = 24;
    options.mean_turn_tokens = 60;
    options.mean_system_tokens = 40;
    options.mean_output_tokens = 40;
    return traces::generate(options).value();
  }();
  return kRequests;
}

// The first half of the trace as one case on the subjects of one kind.
CaseResult replayed(const CacheKind& kind, std::vector<const Subject*> subjects,
                    const replay::SchedulePolicy& schedule = {}) {
  std::vector<traces::Request> half = requests();
  half.resize(half.size() / 2);
  const replay::Replay replay(contracts(), std::move(half),
                              {{.kind = &kind, .subjects = std::move(subjects)}},
                              {.schedule = schedule, .scale = 1, .invariants_every = 1});
  return run_case(replay.plan(0), {.attempts = 0});
}

void expect_all_agree(const CaseResult& result) {
  for (const SubjectResult& subject : result.subjects)
    EXPECT_EQ(subject.verdict.outcome, Outcome::kAgrees)
        << subject.subject << ": " << subject.verdict.text();
}

// One test a kind, so that they run side by side.
class ReplayOn : public testing::TestWithParam<const CacheKind*> {};

TEST_P(ReplayOn, EverySubjectShowsWhatWasPutIn) {
  const CaseResult result = replayed(*GetParam(), contracts().subjects_without_card(*GetParam()));
  // A generation is one operation a request; other caches see every row of it, one at a time or in
  // batches.
  const bool whole_texts = GetParam()->contract == "generation";
  EXPECT_GT(result.operations, whole_texts ? requests().size() / 2 : 300U);
  expect_all_agree(result);
}

TEST(Replay, APoolTooSmallForAllPreemptsAndRecovers) {
  const CacheKind* paged = contracts().find_kind("provider", "paged");
  ASSERT_NE(paged, nullptr);
  // Steps of a second: many requests are there at once.
  const CaseResult result =
      replayed(*paged, contracts().subjects_of(*paged), {.step_us = 1'000'000});
  expect_all_agree(result);
  EXPECT_NE(std::ranges::find(result.labels, replay::kPreempted), result.labels.end());
}

// Conversations that grow beyond their context, in blocks small enough to be shared in part; a few
// seconds of the trace a step, so that they come while others run.
CaseResult chatted(const CacheKind& kind, std::vector<const Subject*> subjects) {
  static const auto kRequests = [] {
    traces::GenerateOptions options;
    options.requests = 40;
    options.mean_turn_tokens = 30;
    options.mean_system_tokens = 40;
    options.mean_output_tokens = 20;
    options.continued_percent = 70;
    options.system_prompts = 2;
    options.block_size = 8;
    return traces::generate(options).value();
  }();
  const replay::Replay replay(
      contracts(), kRequests, {{.kind = &kind, .subjects = std::move(subjects)}},
      {.schedule = {.max_running = 4, .chunk_tokens = 16, .step_us = 200'000},
       .lowering = {.num_heads = 1},
       .scale = 1,
       .invariants_every = 1});
  return run_case(replay.plan(0), {.attempts = 0});
}

// What a chat must lead each cache to: windows make space, others run full.
std::vector<std::string_view> reached_in_a_chat(std::string_view cache) {
  if (cache == "swa" || cache == "swa_mem")
    return {"context shifted", "prefix copied from another sequence",
            "prefix found, but evicted in part", "prefix of the slot kept"};
  if (cache == "wrapper")
    return {"context shifted", "pool full, and room made", "prefix of the slot kept"};
  return {"pool full, and room made", "prefix copied from another sequence",
          "prefix of the slot kept", replay::kPreempted};
}

class ChatOn : public testing::TestWithParam<const CacheKind*> {};

TEST_P(ChatOn, EverySubjectKeepsWhatWasPutInThroughEveryTurn) {
  const CaseResult result = chatted(*GetParam(), contracts().subjects_of(*GetParam()));
  EXPECT_GT(result.operations, 1'000U);
  expect_all_agree(result);
  EXPECT_THAT(result.labels, testing::IsSupersetOf(reached_in_a_chat(GetParam()->cache)));
}

// Cases of a replay on a kind with a lowering, on one without, and on another one with one.
replay::Replay windows_of(std::vector<traces::Request> all, replay::ReplayOptions options) {
  const auto comparison = [](const char* contract, const char* cache) {
    const CacheKind* kind = contracts().find_kind(contract, cache);
    return Comparison{.kind = kind, .subjects = contracts().subjects_of(*kind)};
  };
  return {contracts(),
          std::move(all),
          {comparison("provider", "contiguous"), comparison("provider", "context"),
           comparison("positional", "causal")},
          std::move(options)};
}

TEST(ReplayPlan, EveryWindowIsACaseOnEveryKindThatHasALowering) {
  const replay::Replay replay = windows_of(
      requests(),
      {.lowering = {.requests_per_case = 10}, .seed = 7, .profile = Profile::kDocumented});
  ASSERT_EQ(replay.kinds().size(), 2U);
  ASSERT_EQ(replay.cases(), 6U) << "24 requests by 10";
  std::vector<std::string> names;
  for (std::uint64_t index = 0; index < replay.cases(); ++index) {
    const CasePlan plan = replay.plan(index);
    names.push_back(plan.kind->name() + " " + plan.name);
    EXPECT_EQ(plan.setup.profile, Profile::kDocumented);
    EXPECT_EQ(plan.note,
              "lowered from a trace, policy 4: 2 layers, 2 heads of 4, blocks of 16, rows f32, "
              "masks f32, 8 slots, chunks of 64, arrivals by 1, pool 40 %");
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "provider.contiguous requests0-9", "positional.causal requests0-9",
                       "provider.contiguous requests10-19", "positional.causal requests10-19",
                       "provider.contiguous requests20-23", "positional.causal requests20-23"}));
}

TEST(ReplayPlan, LoweringsOfOneKindHaveCasesOfTheirOwnOfTheirOwnLength) {
  const CacheKind* trie = contracts().find_kind("snapshot", "trie");
  const CacheKind* kv = contracts().find_kind("snapshot", "kv");
  ASSERT_NE(trie, nullptr);
  const replay::Replay replay(contracts(), requests(), {{.kind = kv}, {.kind = trie}},
                              {.lowering = {.requests_per_case = 1}, .seed = 7});
  std::vector<std::string> names;
  for (std::uint64_t index = 0; index < replay.cases(); ++index) {
    const CasePlan plan = replay.plan(index);
    if (plan.kind == trie) names.push_back(plan.name);
    if (index < 3) {
      EXPECT_EQ(plan.kind, index == 0 ? kv : trie) << "all from the first request on";
    }
  }
  EXPECT_EQ(replay.cases(), 24U + 4U);
  EXPECT_EQ(names, (std::vector<std::string>{"kv-requests0-15", "mixed-requests0-15",
                                             "kv-requests16-23", "mixed-requests16-23"}));
}

TEST(ReplayPlan, TheOracleJudgesWhereThereIsOne) {
  const replay::Replay replay = windows_of(requests(), {});
  EXPECT_EQ(replay.plan(0).options.oracle, nullptr);
  EXPECT_NE(replay.plan(1).options.oracle, nullptr);
  const CaseResult result = run_case(replay.plan(1), {.attempts = 0});
  for (const SubjectResult& subject : result.subjects) {
    EXPECT_GT(subject.evidence.rows_judged, 0U) << subject.subject;
    EXPECT_EQ(subject.verdict.outcome, Outcome::kAgrees) << subject.verdict.text();
  }
}

TEST(ReplayPlan, TheScaleFollowsFromTheKindItsSizesAndAllRequests) {
  std::vector<traces::Request> longer = requests();
  for (traces::Request& request : longer) request.input_tokens *= 10'000;
  const replay::Replay chosen = windows_of(longer, {});
  EXPECT_GT(chosen.kinds()[0].scale, 1);
  EXPECT_GT(chosen.kinds()[1].scale, chosen.kinds()[0].scale) << "its cost grows with the cells";
  const replay::Replay given = windows_of(longer, {.scale = 3});
  const replay::Replay few = windows_of(longer, {.requests = 3});
  const replay::Replay large = windows_of(longer, {.lowering = {.num_layers = 64}});
  EXPECT_EQ(few.requests().size(), 3U);
  for (std::size_t kind = 0; kind < chosen.kinds().size(); ++kind) {
    EXPECT_EQ(given.kinds()[kind].scale, 3);
    EXPECT_EQ(few.kinds()[kind].scale, chosen.kinds()[kind].scale);
    EXPECT_GT(large.kinds()[kind].scale, chosen.kinds()[kind].scale);
  }
}

// Rows that are read, and the longest sequence, as the schedule has them.
std::pair<double, std::int64_t> work_of(const std::vector<traces::Request>& all,
                                        std::int64_t scale) {
  replay::Schedule schedule(all, {.scale = scale}, 1);
  std::map<std::int64_t, std::int64_t> lengths;
  double rows = 0;
  std::int64_t longest = 0;
  while (schedule.next()) {
    for (const std::int64_t slot : schedule.step().begins) lengths[slot] = 0;
    for (const replay::Turn& turn : schedule.step().turns) {
      std::int64_t& length = lengths[turn.slot];
      length += turn.append - turn.rejected;
      longest = std::max(longest, length);
      if (turn.read) rows += static_cast<double>(length);
    }
  }
  return {rows, longest};
}

TEST(ReplayPlan, RequestsWithoutEndLeaveWorkThatEnds) {
  for (const auto& [input, output] : {std::pair(std::int64_t{10}, traces::kMaxTokens),
                                      std::pair(traces::kMaxTokens, std::int64_t{1})}) {
    const std::vector<traces::Request> all(3, {.input_tokens = input, .output_tokens = output});
    const replay::Replay replay = windows_of(all, {});
    for (const replay::ReplayedKind& kind : replay.kinds()) {
      const auto [rows, longest] = work_of(all, kind.scale);
      EXPECT_LE(rows, 1e9) << kind.comparison.kind->name();
      EXPECT_LE(longest, 1 << 20) << kind.comparison.kind->name();
      EXPECT_GE(longest, 1 << 10) << kind.comparison.kind->name();
    }
  }
}

TEST(ReplayPlan, RequestsComeInOrderOfArrival) {
  std::vector<traces::Request> reversed = requests();
  std::ranges::reverse(reversed);
  const replay::Replay replay = windows_of(reversed, {});
  EXPECT_TRUE(std::ranges::is_sorted(replay.requests(), {}, &traces::Request::arrival_us));
}

TEST(ReplayPlan, NothingToReplayIsNoCase) {
  EXPECT_EQ(windows_of({}, {}).cases(), 0U);
  EXPECT_EQ(replay::Replay(contracts(), requests(), {}).cases(), 0U);
}

std::vector<const CacheKind*> kinds_with_lowering() {
  std::vector<const CacheKind*> kinds;
  for (const CacheKind* kind : contracts().kinds())
    if (!contracts().lowerings_of(*kind).empty()) kinds.push_back(kind);
  return kinds;
}

// Those whose caches hold many sequences, and whose oracle follows them.
std::vector<const CacheKind*> kinds_with_sequences() {
  std::vector<const CacheKind*> kinds = kinds_with_lowering();
  std::erase_if(kinds, [](const CacheKind* kind) { return kind->contract != "positional"; });
  return kinds;
}

std::string name_of(const testing::TestParamInfo<const CacheKind*>& info) {
  return std::string(info.param->contract) + "_" + std::string(info.param->cache);
}

INSTANTIATE_TEST_SUITE_P(Each, ReplayOn, testing::ValuesIn(kinds_with_lowering()), name_of);
INSTANTIATE_TEST_SUITE_P(Each, ChatOn, testing::ValuesIn(kinds_with_sequences()), name_of);

}  // namespace
}  // namespace kvo
