// The step protocol, for a contract that appends sequence by sequence (provider.paged), for one
// that appends a batch (positional.causal), and for one that cannot cut (layered.vector). A script
// answers in place of a cache.
#include "properties/replay/engine.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contract_parts.hpp"
#include "properties/replay/driven.hpp"
#include "reference/layered/cache.hpp"
#include "reference/positional/operations.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::replay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Not;
using Lines = std::vector<std::string>;

const Lowering& paged_lowering() {
  return lowering_of("provider.paged");
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

// "update 1.0 x4": four tokens for layer 0 of cache 1; others by name and cache.
std::string provider_text(const Op& op) {
  if (const auto* made = op.as<provider::Update>())
    return "update " + number(*made->cache) + "." + number(made->layer) + " x" +
           number(made->k->shape[1]);
  if (const auto* made = op.as<provider::Truncate>())
    return "truncate " + number(*made->cache) + " to " + number(made->n);
  if (const auto* made = op.as<provider::Get>())
    return "get " + number(*made->cache) + "." + number(made->layer);
  if (const auto* made = op.as<provider::SeqLen>()) return "seq_len " + number(*made->cache);
  if (const auto* made = op.as<provider::Free>()) return "free " + number(*made->cache);
  return "";
}

// "pass 0:4 0:5 1:0": sequence and position of every token. The first pass, a reserve one, and what
// is the same for every pass are left out. "masks" is the read after a pass.
std::string positional_text(const Op& op) {
  if (const auto* made = op.as<positional::StartForward>(); made != nullptr && !made->reserve) {
    std::string text = "pass";
    for (std::size_t i = 0; i < made->seqs.size(); ++i)
      text += " " + number(made->seqs[i]) + ":" + number(made->positions[i]);
    return text;
  }
  if (const auto* made = op.as<positional::Remove>())
    return "remove " + number(made->seq) + ":" + number(made->begin) +
           (made->end == positional::kMaxPosition ? "-" : "-" + number(made->end));
  if (const auto* made = op.as<positional::CopyPrefix>())
    return "copy " + number(made->src) + ">" + number(made->dst) + " x" + number(made->len);
  if (const auto* made = op.as<positional::CanResume>())
    return "resume " + number(made->seq) + ":" + number(made->pos) + "?";
  if (op.as<positional::Get>() != nullptr) return "get";
  return "";
}

std::string layered_text(const Op& op) {
  if (const auto* made = op.as<layered::CloneFrom>())
    return "clone " + std::to_string(made->source) + ">" + std::to_string(made->cache);
  return op.as<layered::Advance>() != nullptr ? "advance" : "";
}

// What a lowering gives when `fails` of the operations, by their text, are answered by an error and
// all others by success; can_resume is answered by `resumes`.
struct Script {
  std::string (*text)(const Op& op);
  std::function<bool(const std::string& text)> fails = [](const std::string& /*text*/) {
    return false;
  };
  bool resumes = true;
  Labels labels = {};

  Lines of(const Lowering& lowering, const LoweringInput& input) {
    Lines lines;
    const auto ops = lowering.lower(input);
    std::int64_t layer = 0;
    while (const auto op = ops->next()) {
      std::string line = text(*op);
      if (const auto* set = op->as<positional::SetLayer>()) layer = set->layer;
      if (line == "get" && layer >= input.policy.num_layers) line = "masks";
      Observation seen;
      if (!line.empty() && fails(line)) seen.error = fail(Code::kExhausted);
      if (!seen.error && op->as<positional::CanResume>() != nullptr)
        seen.returns = Record::of(positional::CanResume::Returns{resumes});
      ops->observe(*op, seen, labels);
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }
};

// True for the first operation of that text.
std::function<bool(const std::string&)> once(std::string wanted) {
  return [wanted = std::move(wanted), done = false](const std::string& text) mutable {
    return text == wanted && !std::exchange(done, true);
  };
}

LoweringInput input_of(const std::vector<Request>& requests, SchedulePolicy schedule) {
  return {.requests = requests, .schedule = schedule, .policy = {}, .seed = 1};
}

constexpr SchedulePolicy kTwoSlots{
    .max_running = 2, .chunk_tokens = 2, .draft_every = 0, .cancel_every = 0};

TEST(StepProtocol, SequenceWiseThoseBehindAFailedAppendHaveTheirTurn) {
  Script script{.text = provider_text, .fails = once("update 0.0 x2")};
  const std::vector<Request> requests{request(2, 0), request(2, 0)};
  EXPECT_THAT(script.of(paged_lowering(), input_of(requests, kTwoSlots)),
              ElementsAre("seq_len 0", "seq_len 1",   //
                          "update 0.0 x2", "free 0",  // neither the other layer nor the read
                          "update 1.0 x2", "update 1.1 x2", "get 1.0", "get 1.1", "seq_len 1",
                          "get 1.0", "get 1.1", "seq_len 1", "free 1",
                          "seq_len 0",  // once another one has ended, from the beginning
                          "update 0.0 x2", "update 0.1 x2", "get 0.0", "get 0.1", "seq_len 0",
                          "get 0.0", "get 0.1", "seq_len 0", "free 0"));
  EXPECT_THAT(script.labels, ElementsAre(kPreempted));
}

TEST(StepProtocol, BatchWiseTheBatchIsGivenAgainWithoutItsLastSequence) {
  Script script{.text = positional_text, .fails = once("pass 0:2 0:3 1:2 1:3")};
  const std::vector<Request> requests{request(4, 0), request(4, 0)};
  EXPECT_THAT(
      script.of(positional::lowerings().front(), input_of(requests, kTwoSlots)),
      ElementsAre("masks", "pass 0:0 0:1 1:0 1:1", "masks",  //
                  "pass 0:2 0:3 1:2 1:3", "remove 1:0-", "pass 0:2 0:3", "get", "get", "masks",
                  "remove 0:0-",                          // for the next sequence of the slot
                  "pass 0:0 0:1", "get", "get", "masks",  // with the read of the one that ended
                  "pass 0:2 0:3", "get", "get", "masks"));
  EXPECT_THAT(script.labels, Contains(kPreempted));
}

TEST(StepProtocol, BatchWiseSlotsThatRunNothingLoseTheirTokensFirst) {
  Script script{.text = positional_text, .fails = once("pass 1:2 1:3")};
  const std::vector<Request> requests{request(2, 0), request(6, 0)};
  EXPECT_THAT(script.of(positional::lowerings().front(), input_of(requests, kTwoSlots)),
              ElementsAre("masks", "pass 0:0 0:1 1:0 1:1", "get", "get", "masks",  //
                          "pass 1:2 1:3", "remove 0:0-", "pass 1:2 1:3", "get", "get", "masks",
                          "pass 1:4 1:5", "get", "get", "masks"));
  EXPECT_THAT(script.labels, Not(Contains(kPreempted)));
}

TEST(StepProtocol, WhatDoesNotFitAloneIsGivenUp) {
  const std::vector<Request> requests{request(2, 0)};
  Script sequence{.text = provider_text,
                  .fails = [](const std::string& text) { return text.starts_with("update"); }};
  EXPECT_THAT(sequence.of(paged_lowering(), input_of(requests, kTwoSlots)),
              ElementsAre("seq_len 0", "update 0.0 x2", "free 0"));
  Script batch{.text = positional_text,
               .fails = [](const std::string& text) { return text.starts_with("pass"); }};
  EXPECT_THAT(batch.of(positional::lowerings().front(), input_of(requests, kTwoSlots)),
              ElementsAre("masks", "pass 0:0 0:1"));
}

// Seed 1 rejects some of the draft.
TEST(StepProtocol, ADraftIsTakenBackInTheWayOfItsContract) {
  const std::vector<Request> requests{request(1, 3)};
  const SchedulePolicy drafts{.max_running = 1, .draft_every = 1, .draft_tokens = 8};
  Schedule schedule(requests, drafts, 1);
  ASSERT_TRUE(schedule.next() && schedule.next());
  const Turn draft = schedule.step().turns.front();
  ASSERT_TRUE(draft.draft);
  const std::int64_t left = 1 + draft.append - draft.rejected;

  Script truncated{.text = provider_text};
  EXPECT_THAT(truncated.of(paged_lowering(), input_of(requests, drafts)),
              Contains("truncate 0 to " + number(left)));
  Script removed{.text = positional_text};
  EXPECT_THAT(removed.of(positional::lowerings().front(), input_of(requests, drafts)),
              Contains("remove 0:" + number(left) + "-"));
  Script cloned{.text = layered_text};
  Lines lines = cloned.of(layered::lowerings().front(), input_of(requests, drafts));
  lines.resize(11 + static_cast<std::size_t>(left) - 1);
  Lines wanted{"advance", "clone 0>1"};
  wanted.insert(wanted.end(), 8, "advance");
  wanted.emplace_back("clone 1>0");
  wanted.insert(wanted.end(), static_cast<std::size_t>(left) - 1, "advance");
  EXPECT_THAT(lines, ElementsAreArray(wanted)) << "saved, appended, put back, the accepted anew";
}

TEST(StepProtocol, ACancelledSequenceEndsAfterItsFirstChunk) {
  const std::vector<Request> requests{request(6, 2)};
  SchedulePolicy cancelled = kTwoSlots;
  cancelled.cancel_every = 1;
  Script sequence{.text = provider_text};
  EXPECT_THAT(sequence.of(paged_lowering(), input_of(requests, cancelled)),
              ElementsAre("seq_len 0", "update 0.0 x2", "update 0.1 x2", "free 0"));
  Script batch{.text = positional_text};
  EXPECT_THAT(batch.of(positional::lowerings().front(), input_of(requests, cancelled)),
              ElementsAre("masks", "pass 0:0 0:1", "masks"));
}

TEST(StepProtocol, APrefixThatIsThereIsNotAppended) {
  // Blocks of two tokens; the second request comes while the first one runs.
  std::vector<Request> requests{request(4, 1, {1, 2}), request(5, 0, {1, 2, 3})};
  requests[1].arrival_us = kTwoSlots.step_us * 2;
  Script copied{.text = positional_text};
  EXPECT_THAT(copied.of(positional::lowerings().front(), input_of(requests, kTwoSlots)),
              ElementsAre("masks", "pass 0:0 0:1", "masks", "pass 0:2 0:3", "get", "get", "masks",
                          "copy 0>1 x3", "resume 1:3?", "pass 0:4 1:3 1:4", "get", "get", "masks"));
  EXPECT_THAT(copied.labels, Contains("prefix copied from another sequence"));

  Script evicted{.text = positional_text, .resumes = false};
  EXPECT_THAT(
      evicted.of(positional::lowerings().front(), input_of(requests, kTwoSlots)),
      ElementsAre("masks", "pass 0:0 0:1", "masks", "pass 0:2 0:3", "get", "get", "masks",
                  "copy 0>1 x3", "resume 1:3?", "remove 1:0-", "pass 0:4 1:0 1:1", "masks",
                  "pass 1:2 1:3", "get", "get", "masks", "pass 1:4", "get", "get", "masks"));

  requests[1].arrival_us = 1'000'000;
  Script kept{.text = positional_text};
  EXPECT_THAT(kept.of(positional::lowerings().front(), input_of(requests, kTwoSlots)),
              ElementsAre("masks", "pass 0:0 0:1", "masks", "pass 0:2 0:3", "get", "get", "masks",
                          "pass 0:4", "masks", "resume 0:3?", "remove 0:3-", "pass 0:3 0:4", "get",
                          "get", "masks"));
  EXPECT_THAT(kept.labels, Contains("prefix of the slot kept"));
}

// A longest sequence of 10 tokens gives a context of 6, of which an eighth, none, is kept.
TEST(StepProtocol, ASequenceThatOutgrowsItsContextIsShiftedOrGivenUp) {
  const SchedulePolicy policy{
      .max_running = 1, .chunk_tokens = 1, .draft_every = 0, .draft_tokens = 1, .cancel_every = 0};
  const std::vector<Request> requests{request(1, 8)};
  Script shifted{.text = positional_text};
  EXPECT_THAT(shifted.of(positional::lowerings().front(), input_of(requests, policy)),
              Contains("remove 0:0-3"));
  Script refused{.text = positional_text, .fails = once("remove 0:0-3")};
  const Lines lines = refused.of(positional::lowerings().front(), input_of(requests, policy));
  ASSERT_GE(lines.size(), 2U);
  EXPECT_THAT(Lines(lines.end() - 2, lines.end()), ElementsAre("remove 0:0-3", "remove 0:0-"));
  EXPECT_THAT(refused.labels, Contains("context shift refused"));
}

}  // namespace
}  // namespace kvo::replay
