// What a schedule guarantees by itself; transcripts of lowerings (lowerings.txt) show its steps.
#include "properties/replay/schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/figures/generate.hpp"

namespace kvo::replay {
namespace {

Request request(std::int64_t input, std::int64_t output, std::int64_t arrival_us = 0) {
  Request made;
  made.input_tokens = input;
  made.output_tokens = output;
  made.arrival_us = arrival_us;
  return made;
}

std::vector<Step> all_steps(const std::vector<Request>& requests, const SchedulePolicy& policy) {
  Schedule schedule(requests, policy, 1);
  std::vector<Step> steps;
  while (schedule.next()) steps.push_back(schedule.step());
  return steps;
}

Turn append(std::int64_t slot, std::int64_t tokens, bool read = false) {
  return {.slot = slot, .append = tokens, .read = read};
}
Turn end(std::int64_t slot, bool read) {
  return {.slot = slot, .read = read, .end = true};
}

std::vector<Request> many() {
  traces::GenerateOptions options;
  options.requests = 60;
  return traces::generate(options).value();
}

// Follows every sequence through its turns; each must end with all tokens of its request.
TEST(Schedule, EveryRequestEndsWithAllItsTokens) {
  const std::vector<Request> requests = many();
  std::multiset<std::int64_t> wanted;
  for (const Request& r : requests) wanted.insert(r.input_tokens + r.output_tokens);
  std::map<std::int64_t, std::int64_t> length;
  std::multiset<std::int64_t> ended;
  std::size_t most_running = 0;
  for (const Step& step : all_steps(requests, {.max_running = 3, .cancel_every = 0})) {
    for (const std::int64_t slot : step.begins)
      ASSERT_TRUE(length.emplace(slot, 0).second) << "the slot is taken";
    most_running = std::max(most_running, length.size());
    ASSERT_EQ(step.turns.size(), length.size()) << "every running sequence has one turn";
    for (const Turn& turn : step.turns) {
      ASSERT_NE(turn.append > 0, turn.end) << "a turn either appends or ends";
      ASSERT_LE(turn.rejected, turn.draft ? turn.append : 0);
      length.at(turn.slot) += turn.append - turn.rejected;
      if (!turn.end) continue;
      ended.insert(length.at(turn.slot));
      length.erase(turn.slot);
    }
  }
  EXPECT_EQ(ended, wanted);
  EXPECT_EQ(most_running, 3U) << "sequences interleave";
}

TEST(Schedule, EveryFourthDecodeStepIsADraft) {
  std::size_t decoded = 0;
  std::int64_t answered = 0;
  std::set<std::int64_t> rejected;
  for (const Step& step : all_steps({request(1, 200)}, {.draft_every = 4, .draft_tokens = 3})) {
    const Turn& turn = step.turns.front();
    if (turn.end || !step.begins.empty()) continue;
    ++decoded;
    EXPECT_EQ(turn.draft, decoded % 4 == 0) << decoded;
    EXPECT_EQ(turn.append, turn.draft ? 3 : 1);
    if (turn.draft) rejected.insert(turn.rejected);
    answered += turn.append - turn.rejected;
  }
  EXPECT_EQ(answered, 200) << "a draft never goes beyond the answer";
  EXPECT_EQ(rejected, (std::set<std::int64_t>{0, 1, 2, 3})) << "none to all";
}

TEST(Schedule, ARequestDoesNotBeginBeforeItArrives) {
  const SchedulePolicy policy{.draft_every = 0, .step_us = 10};
  const auto steps = all_steps({request(1, 3, 0), request(1, 1, 1'000'000)}, policy);
  std::size_t begun = 0;
  for (const Step& step : steps) {
    begun += step.begins.size();
    if (step.turns.front().end) break;
  }
  EXPECT_EQ(begun, 1U) << "the second one waits although a slot is free";
}

TEST(Schedule, APreemptedSequenceMayKeepWhatItDecoded) {
  const std::vector<Request> requests{request(2, 4), request(2, 4)};
  Schedule schedule(requests, {.max_running = 2, .chunk_tokens = 2, .draft_every = 0}, 1);
  schedule.keep_decoded();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(schedule.next());
  ASSERT_EQ(schedule.step().turns, (std::deque{append(0, 1), append(1, 1)}));
  EXPECT_EQ(schedule.decoded_before(1), 0);
  schedule.preempt(1);  // its second token is planned, and not decoded
  std::int64_t appended = 0;
  while (schedule.next()) {
    for (const Turn& turn : schedule.step().turns)
      if (turn.slot == 0 && schedule.decoded_before(0) == 1) appended += turn.append;
  }
  EXPECT_EQ(appended, 2 + 4) << "a prompt of three tokens, and three to decode";
  EXPECT_EQ(schedule.preempted(), 1U);
}

// Turn by turn, the failed one has been taken out of the step already.
TEST(Schedule, ATurnThatWasTakenOutIsPreemptedLikeOneThatWasNot) {
  const std::vector<Request> requests{request(4, 0), request(4, 0)};
  Schedule schedule(requests, {.max_running = 2, .chunk_tokens = 2}, 1);
  ASSERT_TRUE(schedule.next());
  schedule.step().begins.clear();
  schedule.step().turns.pop_front();
  schedule.preempt(0);
  EXPECT_EQ(schedule.step(), (Step{{}, {end(0, false), append(1, 2)}}));
  schedule.preempt(0);
  EXPECT_EQ(schedule.preempted(), 1U) << "what has ended is not preempted again";
}

TEST(Schedule, ScalingRoundsUp) {
  EXPECT_EQ(scaled(0, 8), 0);
  EXPECT_EQ(scaled(1, 8), 1);
  EXPECT_EQ(scaled(8, 8), 1);
  EXPECT_EQ(scaled(9, 8), 2);
}

}  // namespace
}  // namespace kvo::replay
