#include "tools/workers.hpp"

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

#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// All answers, in the order in which they were taken.
std::vector<std::string> answers(std::uint64_t first, std::uint64_t last, unsigned jobs,
                                 const std::function<std::string(std::uint64_t, bool)>& answer,
                                 ChildLimits limits = {}) {
  std::vector<std::string> taken;
  work_in_order(first, last, jobs, limits,
                {.answer = answer,
                 .lost = [](std::uint64_t index,
                            const Death& death) { return std::to_string(index) + " " + death.how; },
                 .take =
                     [&](std::uint64_t index, const std::string& text) {
                       EXPECT_EQ(index, first + taken.size());
                       taken.push_back(text);
                       return true;
                     }});
  return taken;
}

TEST(Workers, AnswersComeInOrderWhateverTheirNumber) {
  const auto answer = [](std::uint64_t index, bool /*apart*/) {
    std::this_thread::sleep_for(std::chrono::microseconds(index % 7 * 300));
    return std::to_string(index * index);
  };
  const auto one = answers(5, 105, 1, answer);
  ASSERT_EQ(one.size(), 100U);
  EXPECT_EQ(one[3], "64");
  EXPECT_EQ(answers(5, 105, 4, answer), one);
  EXPECT_TRUE(answers(5, 5, 4, answer).empty());
}

TEST(Workers, WorkIsDoneInSoManyProcesses) {
  const auto taken = answers(0, 60, 3, [](std::uint64_t, bool) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::to_string(getpid());
  });
  const std::set<std::string> processes(taken.begin(), taken.end());
  EXPECT_EQ(processes.size(), 3U);
  EXPECT_FALSE(processes.contains(std::to_string(getpid())));
}

TEST(Workers, WhoWaitsIsToldWhileACaseIsUnderWay) {
  std::vector<std::string> seen;
  work_in_order(0, 1, 1, {},
                {.answer =
                     [](std::uint64_t, bool) {
                       std::this_thread::sleep_for(std::chrono::seconds(1));
                       return std::string();
                     },
                 .lost = [](std::uint64_t, const Death& death) { return death.how; },
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

TEST(Workers, ACaseWhoseWorkerDiesIsAskedAgainApart) {
  const auto taken = answers(0, 4, 2, [](std::uint64_t index, bool apart) -> std::string {
    if (index == 2 && !apart) std::_Exit(7);
    return std::to_string(index) + (apart ? " apart" : "");
  });
  EXPECT_THAT(taken, ElementsAre("0", "1", "2 apart", "3"));
}

TEST(Workers, WhatDiesTwiceIsLostAndSaysHow) {
  const auto dies = [](std::uint64_t index, bool /*apart*/) -> std::string {
    if (index == 1) (void)std::raise(SIGKILL);
    if (index == 2) std::_Exit(0);
    if (index == 3) std::this_thread::sleep_for(std::chrono::hours(1));
    return "";
  };
  const auto taken = answers(0, 5, 2, dies, {.silence = std::chrono::duration<double>(0.2)});
  ASSERT_EQ(taken.size(), 5U);
  EXPECT_THAT(taken[1], HasSubstr("SIGKILL"));
  EXPECT_EQ(taken[2], "2 exited with status 0");
  EXPECT_THAT(taken[3], HasSubstr("hung"));
  EXPECT_EQ(taken[4], "");
}

TEST(Workers, AFaultOfAFileIsThrownWhereItsCaseIsTaken) {
  std::vector<std::uint64_t> taken;
  const Work work{.answer = [](std::uint64_t index, bool) -> std::string {
                    if (index == 3) throw FileError("no such file");
                    return "";
                  },
                  .lost = nullptr,
                  .take =
                      [&](std::uint64_t index, const std::string&) {
                        taken.push_back(index);
                        return true;
                      }};
  EXPECT_THROW(work_in_order(0, 10, 2, {}, work), FileError);
  EXPECT_THAT(taken, ElementsAre(0, 1, 2));
}

TEST(Workers, EndWhenNoMoreIsWanted) {
  int taken = 0;
  const Work work{.answer = [](std::uint64_t, bool) { return std::string(100'000, 'x'); },
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
