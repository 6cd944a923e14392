#include "tools/workers/pool.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What is taken, in order.
std::vector<std::string> taken_of(Work work, std::uint64_t first, std::uint64_t last, unsigned jobs,
                                  const Limits& limits = {}) {
  std::vector<std::string> taken;
  work.take = [&](std::uint64_t index, const std::string& text) {
    EXPECT_EQ(index, first + taken.size());
    taken.push_back(text);
    return true;
  };
  work_in_order(first, last, jobs, limits, work);
  return taken;
}

std::vector<std::string> answers(std::uint64_t first, std::uint64_t last, unsigned jobs,
                                 const std::function<std::string(std::uint64_t, bool)>& answer,
                                 const Limits& limits = {}) {
  return taken_of(
      {.answer =
           [&](std::uint64_t index) {
             return Message{Message::Kind::kAnswer, answer(index, false)};
           },
       .isolated = [&](std::uint64_t index, const Death*) { return answer(index, true); },
       .lost = [](std::uint64_t index,
                  const Death& death) { return std::to_string(index) + " " + death.how; },
       .take = nullptr},
      first, last, jobs, limits);
}

TEST(Pool, AnswersComeInOrderWhateverTheirNumber) {
  const auto answer = [](std::uint64_t index, bool /*isolated*/) {
    std::this_thread::sleep_for(std::chrono::microseconds(index % 7 * 300));
    return std::to_string(index * index);
  };
  const auto one = answers(5, 105, 1, answer);
  ASSERT_EQ(one.size(), 100U);
  EXPECT_EQ(one[3], "64");
  EXPECT_EQ(answers(5, 105, 4, answer), one);
  EXPECT_TRUE(answers(5, 5, 4, answer).empty());
}

TEST(Pool, WorkIsDoneInSoManyProcesses) {
  const auto taken = answers(0, 60, 3, [](std::uint64_t, bool) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::to_string(getpid());
  });
  const std::set<std::string> processes(taken.begin(), taken.end());
  EXPECT_EQ(processes.size(), 3U);
  EXPECT_FALSE(processes.contains(std::to_string(getpid())));
}

TEST(Pool, WhoWaitsIsToldWhileACaseIsUnderWay) {
  std::vector<std::string> seen;
  work_in_order(0, 1, 1, {},
                {.answer =
                     [](std::uint64_t) {
                       std::this_thread::sleep_for(std::chrono::seconds(1));
                       return Message{Message::Kind::kAnswer};
                     },
                 .isolated = nullptr,
                 .lost = nullptr,
                 .take =
                     [&](std::uint64_t, const std::string&) {
                       seen.emplace_back("taken");
                       return true;
                     },
                 .waiting = [&] { seen.emplace_back("waiting"); }});
  ASSERT_GE(seen.size(), 3U) << "once for the answer, and before";
  EXPECT_EQ(seen.front(), "waiting");
  EXPECT_EQ(seen.back(), "taken");
}

TEST(Pool, ACaseWhoseWorkerDiesIsIsolated) {
  const auto taken = answers(0, 4, 2, [](std::uint64_t index, bool isolated) -> std::string {
    if (index == 2 && !isolated) std::_Exit(7);
    return std::to_string(index) + (isolated ? " isolated" : "");
  });
  EXPECT_THAT(taken, ElementsAre("0", "1", "2 isolated", "3"));
}

// Answers of the process that answers each case.
std::vector<std::string> processes(Message::Kind kind,
                                   const std::function<std::uint64_t()>& generation,
                                   const Limits& limits = {}) {
  return taken_of(
      {.answer =
           [&](std::uint64_t index) {
             return Message{index == 1 ? kind : Message::Kind::kAnswer, std::to_string(getpid())};
           },
       .isolated = [](std::uint64_t, const Death* first) -> std::string {
         return first == nullptr ? "isolated" : "died";
       },
       .lost = nullptr,
       .take = nullptr,
       .generation = generation},
      0, 4, 1, limits);
}

TEST(Pool, AProcessThatIsUsedUpIsReplaced) {
  const auto taken = processes(Message::Kind::kLastAnswer, nullptr);
  EXPECT_EQ(taken[0], taken[1]);
  EXPECT_NE(taken[1], taken[2]);
  EXPECT_EQ(taken[2], taken[3]);
}

TEST(Pool, ACaseThatAsksForItIsIsolated) {
  const auto taken = processes(Message::Kind::kAgain, nullptr);
  EXPECT_EQ(taken[1], "isolated");
  EXPECT_NE(taken[0], taken[2]);
}

TEST(Pool, ProcessesOfAnEarlierGenerationAreReplaced) {
  std::uint64_t asked = 0;
  const auto taken = processes(Message::Kind::kAnswer, [&] { return asked++ / 2; });
  EXPECT_EQ(taken[0], taken[1]);
  EXPECT_NE(taken[1], taken[2]);
  EXPECT_EQ(taken[2], taken[3]);
}

TEST(Pool, WithoutIsolationThisProcessDoesTheWork) {
  const auto taken = processes(Message::Kind::kAnswer, nullptr, {.isolated = false});
  EXPECT_EQ(taken, std::vector<std::string>(4, std::to_string(getpid())));
}

// What the harness does between two processes is no operation of a subject.
TEST(Pool, IsolatingMayTakeLongerThanAnOperation) {
  const auto answer = [](std::uint64_t index, bool isolated) -> std::string {
    if (isolated) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    if (index == 1 && !isolated) std::_Exit(1);
    return isolated ? "isolated" : "";
  };
  EXPECT_THAT(answers(0, 3, 1, answer, {.silence = std::chrono::duration<double>(0.2)}),
              ElementsAre("", "isolated", ""));
}

TEST(Pool, WhatDiesTwiceIsLostAndSaysHow) {
  const auto dies = [](std::uint64_t index, bool isolated) -> std::string {
    if (index == 1) (void)std::raise(SIGKILL);
    if (index == 2) std::_Exit(0);
    if (index == 3 && !isolated) std::this_thread::sleep_for(std::chrono::hours(1));
    if (index == 3) std::_Exit(9);
    return "";
  };
  const auto taken = answers(0, 5, 2, dies, {.silence = std::chrono::duration<double>(0.2)});
  ASSERT_EQ(taken.size(), 5U);
  EXPECT_THAT(taken[1], HasSubstr("SIGKILL"));
  EXPECT_EQ(taken[2], "2 exited with status 0");
  EXPECT_EQ(taken[3], "3 exited with status 9");
  EXPECT_EQ(taken[4], "");
}

TEST(Pool, AFaultOfAFileIsThrownWhereItsCaseIsTaken) {
  std::vector<std::uint64_t> taken;
  const Work work{.answer = [](std::uint64_t index) -> Message {
                    if (index == 3) throw FileError("no such file");
                    return {Message::Kind::kAnswer};
                  },
                  .isolated = nullptr,
                  .lost = nullptr,
                  .take =
                      [&](std::uint64_t index, const std::string&) {
                        taken.push_back(index);
                        return true;
                      }};
  EXPECT_THROW(work_in_order(0, 10, 2, {}, work), FileError);
  EXPECT_THAT(taken, ElementsAre(0, 1, 2));
}

TEST(Pool, EndWhenNoMoreIsWanted) {
  int taken = 0;
  const Work work{.answer =
                      [](std::uint64_t) {
                        return Message{Message::Kind::kAnswer, std::string(100'000, 'x')};
                      },
                  .isolated = nullptr,
                  .lost = nullptr,
                  .take =
                      [&](std::uint64_t, const std::string& text) {
                        EXPECT_EQ(text.size(), 100'000U);
                        return ++taken < 10;
                      }};
  work_in_order(0, ~std::uint64_t{0}, 3, {}, work);
  EXPECT_EQ(taken, 10);
}

}  // namespace
}  // namespace kvo::tools
