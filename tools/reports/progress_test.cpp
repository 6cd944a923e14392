#include "tools/reports/progress.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace kvo::tools {
namespace {

constexpr double kSecond = 1e9;

TEST(ProgressLine, ShowsBarRateAndTimeLeft) {
  EXPECT_EQ(progress_line("cases", 500, {2000}, 2 * kSecond, 100),
            "cases [#####...............]  25 %  500 of 2,000  250 /s  6.00 s left");
  EXPECT_EQ(progress_line("cases", 2000, {2000}, 2 * kSecond, 100),
            "cases [####################] 100 %  2,000 of 2,000  1.00 k/s");
}

TEST(ProgressLine, NeedsNoTotal) {
  EXPECT_EQ(progress_line("requests", 1500, {}, kSecond, 100), "requests  1,500  1.50 k/s");
  EXPECT_EQ(progress_line("requests", 0, {0}, kSecond, 100), "requests  0  0 /s");
}

TEST(ProgressLine, ShowsTheShareOfATime) {
  EXPECT_EQ(progress_line("cases", 500, {.nanoseconds = 8 * kSecond}, 2 * kSecond, 100),
            "cases [#####...............]  25 %  500  250 /s  6.00 s left");
  EXPECT_EQ(progress_line("cases", 0, {.nanoseconds = 8 * kSecond}, 2 * kSecond, 100),
            "cases [#####...............]  25 %  0  0 /s  6.00 s left");
  EXPECT_EQ(progress_line("cases", 500, {.nanoseconds = 8 * kSecond}, 9 * kSecond, 100),
            "cases [####################] 100 %  500  55.6 /s");
}

TEST(ProgressLine, ShowsTheNearerEnd) {
  EXPECT_EQ(
      progress_line("cases", 500, {.total = 1000, .nanoseconds = 8 * kSecond}, 2 * kSecond, 100),
      "cases [##########..........]  50 %  500 of 1,000  250 /s  2.00 s left");
  EXPECT_EQ(
      progress_line("cases", 100, {.total = 1000, .nanoseconds = 8 * kSecond}, 4 * kSecond, 100),
      "cases [##########..........]  50 %  100 of 1,000  25 /s  4.00 s left");
}

TEST(ProgressLine, NeverPassesTheEnd) {
  EXPECT_EQ(progress_line("cases", 3, {2}, kSecond, 100),
            "cases [####################] 100 %  3 of 2  3 /s");
}

TEST(ProgressLine, IsCutToTheTerminal) {
  EXPECT_EQ(progress_line("cases", 500, {2000}, kSecond, 10), "cases [###");
}

TEST(Progress, ShowsNothingWhereThereIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress("cases", 10);
    progress.advance();
    progress.clear();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, SaysLinesLaterAndOnce) {
  Progress progress("cases", 10);
  progress.say_later({"first failure", "  its law"}, std::chrono::hours(1));
  testing::internal::CaptureStderr();
  progress.advance();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  progress.say_later({"first failure", "  its law"}, {});
  testing::internal::CaptureStderr();
  progress.advance();
  progress.advance();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kvoracle: first failure\n  its law\n");
}

}  // namespace
}  // namespace kvo::tools
