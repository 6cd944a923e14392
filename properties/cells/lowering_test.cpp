// Request traces on contract `cells`: what the lowerings emit, and what their figures rest on.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/replay/driven.hpp"
#include "reference/cells/operations.hpp"

namespace kvo::cells {
namespace {

using replay::driven;
using replay::Driven;
using replay::LoweringInput;
using replay::request;
using replay::SchedulePolicy;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using traces::Request;

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
  EXPECT_THAT(driven("cells.kv", input_of(all, kTwoSlots)).lines(text_of),
              ElementsAre("decode 0 0 1 1", "decode 0 0", "decode 0"));
}

TEST(CellsLowering, APrefixThatASlotHoldsIsCopiedOrKept) {
  std::vector<Request> all{request(4, 1, {1, 2}), request(5, 0, {1, 2, 3})};
  all[1].arrival_us = kTwoSlots.step_us * 2;
  Driven copied = driven("cells.kv", input_of(all, kTwoSlots));
  EXPECT_THAT(copied.lines(text_of),
              ElementsAre("decode 0 0", "decode 0 0", "cp to 1 0:0-3", "decode 0 1 1"));
  EXPECT_THAT(copied.labels, Contains("prefix copied from another sequence"));
  EXPECT_EQ(copied.figures["requests that hit"], 1);
  EXPECT_EQ(copied.figures["prompt tokens hit"], 3);
  EXPECT_EQ(copied.figures["prompt tokens hit at best"], 4);

  all[1].arrival_us = 1'000'000;
  Driven kept = driven("cells.kv", input_of(all, kTwoSlots));
  EXPECT_THAT(kept.lines(text_of),
              ElementsAre("decode 0 0", "decode 0 0", "decode 0", "rm 0:3-", "decode 0 0"));
  EXPECT_THAT(kept.labels, Contains("prefix of the slot kept"));
}

// A longest sequence of 36 tokens, with its draft, gives a context of 21.
TEST(CellsLowering, ASequenceThatOutgrowsItsContextIsShifted) {
  const std::vector<Request> all{request(2, 30)};
  Driven seen = driven("cells.kv", input_of(all, kTwoSlots));
  EXPECT_THAT(seen.lines(text_of), IsSupersetOf({"rm 0:2-11", "add 0:11- by -9"}));
  EXPECT_GT(seen.figures["context shifts"], 1);
  EXPECT_THAT(seen.labels, Contains("context shifted"));
}

TEST(CellsLowering, ARefusedBatchIsGivenAgainWithoutItsLastSequence) {
  // 20 cells: a context of 16, and a chunk.
  const std::vector<Request> all{request(16, 2), request(16, 2)};
  Driven seen = driven("cells.kv", input_of(all, kTwoSlots, 10));
  EXPECT_THAT(seen.lines(text_of), Contains("rm 1:-1-"));
  EXPECT_EQ(seen.figures["preemptions"], 1);
  EXPECT_THAT(seen.labels,
              IsSupersetOf({std::string_view("cache full, and room made"), replay::kPreempted}));
}

// Alone, a faulty cache is its own judge: only what was put in can tell.
TEST(CellsLowerings, AFaultyJudgeIsCaught) {
  EXPECT_TRUE(replay::caught_alone("cells.kv@mutant:removed_by_cell", {.scale = 1}));
}

}  // namespace
}  // namespace kvo::cells
