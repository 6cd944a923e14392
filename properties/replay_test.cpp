// Replays of request traces: what was put in judges every subject, the reference too.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/all_subjects.hpp"
#include "properties/laws.hpp"
#include "properties/run_case.hpp"
#include "reference/positional/contract.hpp"
#include "traces/generate.hpp"
#include "traces/lowering.hpp"

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

CaseResult replayed(const traces::Lowering& lowering, std::vector<const Subject*> subjects,
                    const traces::SchedulePolicy& schedule = {}) {
  const traces::LoweringInput input{
      .requests = requests(), .schedule = schedule, .policy = {}, .seed = 1};
  CasePlan plan{.kind = lowering.kind,
                .name = "replay",
                .setup = lowering.setup(input),
                .subjects = std::move(subjects)};
  plan.ops = [&] { return lowering.lower(input); };
  return run_case(plan, {.attempts = 0});
}

TEST(Replay, EverySubjectShowsWhatWasPutIn) {
  for (const traces::Lowering& lowering : traces::lowerings()) {
    const CaseResult result = replayed(lowering, subjects_of(*lowering.kind));
    EXPECT_GT(result.operations, 1'000U) << lowering.kind->name();
    for (const SubjectResult& subject : result.subjects)
      EXPECT_EQ(subject.verdict.outcome, Outcome::kAgrees)
          << subject.subject << ": " << subject.verdict.text();
  }
}

// Alone, a faulty cache is its own judge: only what was put in can tell.
TEST(Replay, AFaultyJudgeIsCaught) {
  for (const char* name :
       {"provider.paged@mutant:values_channel_minor", "provider.paged@mutant:table_taken_for_run",
        "layered.vector@mutant:clear_keeps_rows", "provider.tensor@mutant:prefill_keeps_counter",
        "provider.device@mutant:heads_forgotten"}) {
    const Subject* mutant = find_subject(name);
    ASSERT_NE(mutant, nullptr) << name;
    const traces::Lowering* lowering = traces::lowering_of(*mutant->kind);
    ASSERT_NE(lowering, nullptr) << name;
    EXPECT_TRUE(replayed(*lowering, {mutant}).subjects.front().verdict.failed()) << name;
  }
}

TEST(Replay, APoolTooSmallForAllPreemptsAndRecovers) {
  const traces::Lowering* lowering = traces::lowering_of(*find_kind("provider", "paged"));
  ASSERT_NE(lowering, nullptr);
  // Steps of a second: many requests are there at once.
  const CaseResult result =
      replayed(*lowering, subjects_of(*lowering->kind), {.step_us = 1'000'000});
  for (const SubjectResult& subject : result.subjects)
    EXPECT_EQ(subject.verdict.outcome, Outcome::kAgrees) << subject.verdict.text();
  EXPECT_TRUE(result.labels.contains("sequence preempted for want of room"));
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
  const traces::Lowering* lowering = traces::lowering_of(kind);
  const traces::LoweringInput input{
      .requests = kRequests,
      .schedule = {.max_running = 4, .chunk_tokens = 16, .step_us = 200'000},
      .policy = {.num_heads = 1},
      .seed = 1};
  const auto law = std::ranges::find(laws(), "recompute_equivalence", &Law::name);
  CasePlan plan{.kind = &kind,
                .name = "chat",
                .setup = lowering->setup(input),
                .options = law->options(),
                .subjects = std::move(subjects)};
  plan.ops = [&] { return lowering->lower(input); };
  return run_case(plan, {.attempts = 0});
}

TEST(Replay, ASharedPoolKeepsWhatWasPutInThroughEveryTurnOfAChat) {
  Labels all;
  for (const traces::Lowering& lowering : traces::lowerings()) {
    if (lowering.kind->contract != "positional") continue;
    const CaseResult result = chatted(*lowering.kind, subjects_of(*lowering.kind));
    EXPECT_GT(result.operations, 1'000U) << lowering.kind->name();
    for (const SubjectResult& subject : result.subjects)
      EXPECT_EQ(subject.verdict.outcome, Outcome::kAgrees)
          << subject.subject << ": " << subject.verdict.text();
    all.insert(result.labels.begin(), result.labels.end());
  }
  for (const std::string_view label :
       {"context shifted", "pool full, and room made", "prefix copied from another sequence",
        "prefix of the slot kept", "prefix found, but evicted in part"})
    EXPECT_TRUE(all.contains(label)) << label;
}

TEST(Replay, AFaultySharedPoolIsCaughtByItsHistory) {
  for (const char* name :
       {"positional.causal@mutant:mask_starts_at_batch", "positional.causal@mutant:one_owner_sees",
        "positional.causal@mutant:remove_by_cell", "positional.swa@mutant:window_one_short",
        "positional.swa_mem@mutant:evicts_to_chunk",
        "positional.chunked@mutant:chunk_starts_late"}) {
    const Subject* mutant = find_subject(name);
    ASSERT_NE(mutant, nullptr) << name;
    EXPECT_EQ(chatted(*mutant->kind, {mutant}).subjects.front().verdict.outcome, Outcome::kBroken)
        << name;
  }
}

}  // namespace
}  // namespace kvo
