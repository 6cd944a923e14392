#include "traces/schedule.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "traces/generate.hpp"

namespace kvo::traces {
namespace {

Request request(std::int64_t input, std::int64_t output, std::int64_t arrival_us = 0) {
  Request made;
  made.input_tokens = input;
  made.output_tokens = output;
  made.arrival_us = arrival_us;
  return made;
}

std::vector<Action> all_actions(const std::vector<Request>& requests,
                                const SchedulePolicy& policy) {
  Schedule schedule(requests, policy, 1);
  std::vector<Action> actions;
  while (const auto action = schedule.next())
    if (action->kind != ActionKind::kStep) actions.push_back(*action);
  return actions;
}

std::vector<Request> many() {
  GenerateOptions options;
  options.requests = 60;
  return generate(options).value();
}

TEST(Schedule, AppendsAPromptInChunksAndThenTokenByToken) {
  const SchedulePolicy policy{.chunk_tokens = 4, .draft_every = 0};
  EXPECT_EQ(all_actions({request(10, 2)}, policy), (std::vector<Action>{{ActionKind::kBegin, 0, 0},
                                                                        {ActionKind::kAppend, 0, 4},
                                                                        {ActionKind::kAppend, 0, 4},
                                                                        {ActionKind::kAppend, 0, 2},
                                                                        {ActionKind::kRead, 0, 0},
                                                                        {ActionKind::kAppend, 0, 1},
                                                                        {ActionKind::kAppend, 0, 1},
                                                                        {ActionKind::kRead, 0, 0},
                                                                        {ActionKind::kEnd, 0, 0}}));
}

// Follows every sequence through its actions; each must end with all tokens of its request.
TEST(Schedule, EveryRequestEndsWithAllItsTokens) {
  const std::vector<Request> requests = many();
  std::multimap<std::int64_t, int> wanted;
  for (const Request& r : requests) wanted.emplace(r.input_tokens + r.output_tokens, 0);
  std::map<std::int64_t, std::int64_t> length;
  std::multimap<std::int64_t, int> ended;
  std::size_t most_running = 0;
  for (const Action& action : all_actions(requests, {.max_running = 3, .cancel_every = 0})) {
    switch (action.kind) {
      case ActionKind::kBegin:
        ASSERT_FALSE(length.contains(action.slot)) << "the slot is taken";
        length[action.slot] = 0;
        break;
      case ActionKind::kAppend:
        length.at(action.slot) += action.tokens;
        break;
      case ActionKind::kTruncate:
        ASSERT_LT(action.tokens, length.at(action.slot));
        length.at(action.slot) = action.tokens;
        break;
      case ActionKind::kEnd:
        ended.emplace(length.at(action.slot), 0);
        length.erase(action.slot);
        break;
      default:
        ASSERT_TRUE(length.contains(action.slot));
    }
    most_running = std::max(most_running, length.size());
  }
  EXPECT_EQ(ended, wanted);
  EXPECT_EQ(most_running, 3U) << "sequences interleave";
}

TEST(Schedule, ARequestDoesNotBeginBeforeItArrives) {
  const SchedulePolicy policy{.draft_every = 0, .step_us = 10};
  const auto actions = all_actions({request(1, 3, 0), request(1, 1, 1'000'000)}, policy);
  ASSERT_EQ(actions.front().kind, ActionKind::kBegin);
  std::size_t begun = 0;
  for (const Action& action : actions) {
    begun += action.kind == ActionKind::kBegin ? 1 : 0;
    if (action.kind == ActionKind::kEnd) break;
  }
  EXPECT_EQ(begun, 1U) << "the second one waits although a slot is free";
}

TEST(Schedule, APreemptedSequenceStartsOverAndALoneOneIsGivenUp) {
  const std::vector<Request> requests{request(4, 0), request(4, 0)};
  Schedule schedule(requests, {.max_running = 2, .chunk_tokens = 2}, 1);
  std::map<ActionKind, int> counts;
  bool failed = false;
  while (const auto action = schedule.next()) {
    ++counts[action->kind];
    if (action->kind == ActionKind::kAppend && action->slot == 1 && !failed) {
      failed = true;
      schedule.append_failed(1);
    }
  }
  EXPECT_EQ(schedule.preempted(), 1U);
  EXPECT_EQ(schedule.given_up(), 0U);
  EXPECT_EQ(counts[ActionKind::kBegin], 3);
  EXPECT_EQ(counts[ActionKind::kEnd], 3);

  const std::vector<Request> lone{request(4, 0)};
  Schedule alone(lone, {}, 1);
  while (const auto action = alone.next())
    if (action->kind == ActionKind::kAppend) alone.append_failed(action->slot);
  EXPECT_EQ(alone.given_up(), 1U);
}

TEST(Schedule, AStepEndsWhenEverySequenceHadItsTurn) {
  const std::vector<Request> requests{request(2, 0), request(2, 0)};
  Schedule schedule(requests, {.max_running = 2, .draft_every = 0}, 1);
  std::vector<ActionKind> kinds;
  while (const auto action = schedule.next()) kinds.push_back(action->kind);
  using enum ActionKind;
  EXPECT_EQ(kinds, (std::vector{kBegin, kBegin, kAppend, kRead, kAppend, kRead, kStep, kRead, kEnd,
                                kRead, kEnd, kStep}));
}

TEST(Schedule, TokensThatAreThereAreNotAppended) {
  const std::vector<Request> requests{request(10, 0)};
  Schedule schedule(requests, {.chunk_tokens = 8}, 1);
  ASSERT_EQ(schedule.next(), (Action{ActionKind::kBegin, 0, 0}));
  EXPECT_EQ(schedule.running(0), requests.front());
  schedule.skip(0, 7);
  EXPECT_EQ(schedule.next(), (Action{ActionKind::kAppend, 0, 3}));
}

TEST(Schedule, OfSoManyRequestsOneIsCancelledAmidItsPrompt) {
  const auto actions = all_actions({request(4, 2), request(4, 2)},
                                   {.max_running = 1, .chunk_tokens = 2, .cancel_every = 2});
  std::int64_t appended = 0;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kBegin) appended = 0;
    if (action.kind == ActionKind::kAppend) appended += action.tokens;
  }
  EXPECT_EQ(appended, 2) << "of the second request only its first chunk";
  EXPECT_EQ(actions.back().kind, ActionKind::kEnd);
}

TEST(Schedule, ASequenceThatIsGivenUpEndsForGood) {
  const std::vector<Request> requests{request(4, 0), request(4, 0)};
  Schedule schedule(requests, {.max_running = 2, .chunk_tokens = 2}, 1);
  std::map<ActionKind, int> counts;
  while (const auto action = schedule.next()) {
    ++counts[action->kind];
    if (action->kind == ActionKind::kAppend && action->slot == 0) schedule.give_up(0);
  }
  EXPECT_EQ(schedule.given_up(), 1U);
  EXPECT_EQ(counts[ActionKind::kBegin], 2);
  EXPECT_EQ(counts[ActionKind::kEnd], 2);
}

TEST(Schedule, ScalingRoundsUp) {
  EXPECT_EQ(scaled(0, 8), 0);
  EXPECT_EQ(scaled(1, 8), 1);
  EXPECT_EQ(scaled(8, 8), 1);
  EXPECT_EQ(scaled(9, 8), 2);
}

}  // namespace
}  // namespace kvo::traces
