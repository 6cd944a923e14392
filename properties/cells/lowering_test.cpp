// Request traces on contract `cells`: what the lowerings emit, and what their figures rest on.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "properties/replay/replay.hpp"
#include "reference/cells/operations.hpp"
#include "reference/contract/values/result.hpp"
#include "traces/figures/generate.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/sample.hpp"

namespace kvo::cells {
namespace {

using replay::LoweringInput;
using replay::SchedulePolicy;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using traces::Request;
using Lines = std::vector<std::string>;

Request request(std::int64_t input, std::int64_t output, std::vector<std::uint64_t> ids = {}) {
  Request made;
  made.input_tokens = input;
  made.output_tokens = output;
  made.block_ids = std::move(ids);
  return made;
}

const replay::Lowering& lowering_of(const CacheKind& kind) {
  static const std::vector<replay::Lowering> kAll = lowerings();
  return *std::ranges::find(kAll, &kind, &replay::Lowering::kind);
}

// "decode 0 0 1": the sequence of each token; looks are left out.
std::string text_of(const Op& op) {
  const auto range = [](std::int64_t seq, std::int64_t begin, std::int64_t end) {
    return " " + std::to_string(seq) + ":" + std::to_string(begin) + "-" +
           (end < 0 ? "" : std::to_string(end));
  };
  if (const auto* made = op.as<Decode>()) {
    std::string text = "decode";
    for (const auto& seqs : made->seqs) text += " " + std::to_string(seqs.front());
    return text;
  }
  if (const auto* made = op.as<SeqRm>()) return "rm" + range(made->seq, made->p0, made->p1);
  if (const auto* made = op.as<SeqCp>())
    return "cp to " + std::to_string(made->dst) + range(made->src, made->p0, made->p1);
  if (const auto* made = op.as<SeqAdd>())
    return "add" + range(made->seq, made->p0, made->p1) + " by " + std::to_string(made->delta);
  return "";
}

/// What became of a case on the reference.
struct Driven {
  Lines lines = {};
  Labels labels = {};
  std::map<std::string, std::int64_t> figures = {};
};

Driven driven(const CacheKind& kind, LoweringInput input, Profile profile = Profile::kDocumented) {
  const replay::Lowering& lowering = lowering_of(kind);
  input.profile = profile;
  Setup setup = lowering.setup(input);
  setup.profile = profile;
  const auto session = std::move(*contracts().reference_of(kind).open(setup));
  const auto stream = lowering.lower(input);
  Probe probe;
  Driven all;
  while (const auto op = stream->next()) {
    const Observation seen = session->apply(*op, probe);
    if (const Observation* want = stream->expected()) {
      EXPECT_EQ(observation_difference(*want, seen), std::nullopt) << op_text(*op);
    }
    if (std::string line = text_of(*op); !line.empty()) all.lines.push_back(std::move(line));
    stream->saw(*op, seen, all.labels);
  }
  for (const Figure& figure : stream->figures()) all.figures[figure.name] = figure.value;
  return all;
}

LoweringInput input_of(const std::vector<Request>& requests, SchedulePolicy schedule,
                       std::int64_t pool_percent = 100) {
  return {.requests = requests,
          .schedule = schedule,
          .policy = {.pool_percent = pool_percent},
          .seed = 1};
}

constexpr SchedulePolicy kTwoSlots{
    .max_running = 2, .chunk_tokens = 2, .draft_every = 0, .cancel_every = 0};

TEST(CellsLowering, SlotsShareOneBatch) {
  const std::vector<Request> all{request(4, 1), request(2, 0)};
  EXPECT_THAT(driven(kv_kind(), input_of(all, kTwoSlots)).lines,
              ElementsAre("decode 0 0 1 1", "decode 0 0", "decode 0"));
}

TEST(CellsLowering, APrefixThatASlotHoldsIsCopiedOrKept) {
  std::vector<Request> all{request(4, 1, {1, 2}), request(5, 0, {1, 2, 3})};
  all[1].arrival_us = kTwoSlots.step_us * 2;
  Driven copied = driven(kv_kind(), input_of(all, kTwoSlots));
  EXPECT_THAT(copied.lines,
              ElementsAre("decode 0 0", "decode 0 0", "cp to 1 0:0-3", "decode 0 1 1"));
  EXPECT_THAT(copied.labels, Contains("prefix copied from another sequence"));
  EXPECT_EQ(copied.figures["requests that hit"], 1);
  EXPECT_EQ(copied.figures["prompt tokens hit"], 3);
  EXPECT_EQ(copied.figures["prompt tokens hit at best"], 4);

  all[1].arrival_us = 1'000'000;
  Driven kept = driven(kv_kind(), input_of(all, kTwoSlots));
  EXPECT_THAT(kept.lines,
              ElementsAre("decode 0 0", "decode 0 0", "decode 0", "rm 0:3-", "decode 0 0"));
  EXPECT_THAT(kept.labels, Contains("prefix of the slot kept"));
}

// A longest sequence of 36 tokens, with its draft, gives a context of 21.
TEST(CellsLowering, ASequenceThatOutgrowsItsContextIsShifted) {
  const std::vector<Request> all{request(2, 30)};
  Driven seen = driven(kv_kind(), input_of(all, kTwoSlots));
  EXPECT_THAT(seen.lines, IsSupersetOf({"rm 0:2-11", "add 0:11- by -9"}));
  EXPECT_GT(seen.figures["context shifts"], 1);
  EXPECT_THAT(seen.labels, Contains("context shifted"));
}

TEST(CellsLowering, ARefusedBatchIsGivenAgainWithoutItsLastSequence) {
  // 20 cells: a context of 16, and a chunk.
  const std::vector<Request> all{request(16, 2), request(16, 2)};
  Driven seen = driven(kv_kind(), input_of(all, kTwoSlots, 10));
  EXPECT_THAT(seen.lines, Contains("rm 1:-1-"));
  EXPECT_EQ(seen.figures["preemptions"], 1);
  EXPECT_THAT(seen.labels,
              IsSupersetOf({std::string_view("cache full, and room made"), replay::kPreempted}));
}

class CellsLoweringOf : public testing::TestWithParam<const CacheKind*> {};

// A few seeds of the sample lead each cache to all that its lowering knows.
TEST_P(CellsLoweringOf, TheSampleReachesEveryState) {
  auto reader = traces::open_trace(
      traces::TextSource::in_memory(std::string(traces::kSampleName), traces::sample_trace()), "");
  const std::vector<Request> sample = traces::read_all(**reader).value();
  std::set<std::string> reached;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const replay::Replay replay(
        contracts(), sample,
        {{.kind = GetParam(), .reference = &contracts().reference_of(*GetParam())}},
        {.varied = replay::varying_members(), .seed = seed});
    for (std::uint64_t index = 0; index < replay.cases(); ++index) {
      const CasePlan plan = replay.plan(index);
      const CaseResult result = run_case(plan, {.attempts = 0});
      EXPECT_EQ(result.subjects.front().verdict.text(), "agrees") << plan.name;
      reached.insert(result.labels.begin(), result.labels.end());
    }
  }
  EXPECT_THAT(reached,
              IsSupersetOf({std::string_view("cache full, and room made"),
                            std::string_view("context shifted"),
                            std::string_view("prefix copied from another sequence"),
                            std::string_view("prefix of the slot kept"), replay::kPreempted}));
}

INSTANTIATE_TEST_SUITE_P(Each, CellsLoweringOf, testing::Values(&kv_kind(), &iswa_kind()),
                         [](const auto& one) { return std::string(one.param->cache); });

// Alone, a faulty cache is its own judge: only what was put in can tell.
TEST(CellsLowerings, AFaultyJudgeIsCaught) {
  const Subject* mutant = contracts().find_subject("cells.kv@mutant:removed_by_cell");
  ASSERT_NE(mutant, nullptr);
  const auto requests = traces::generate({.requests = 60,
                                          .mean_turn_tokens = 20,
                                          .mean_output_tokens = 8,
                                          .mean_system_tokens = 30,
                                          .block_size = 8})
                            .value();
  const replay::Replay replay(contracts(), requests, {{.kind = mutant->kind, .subjects = {mutant}}},
                              {.scale = 1});
  EXPECT_TRUE(run_case(replay.plan(0), {.attempts = 0}).subjects.front().verdict.failed());
}

}  // namespace
}  // namespace kvo::cells
