#include "tools/workers/crash_guard.hpp"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"

namespace kvo::tools {
namespace {

using testing::ExitedWithCode;

class CrashGuardDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kIsSanitized) GTEST_SKIP() << "the sanitizer handles signals itself";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
};

void crash(int signal) {
  install_crash_guard();
  (void)std::raise(signal);
}

TEST_F(CrashGuardDeathTest, CatchesEveryFatalSignal) {
  const auto line = [](const std::string& signal) {
    return "^fault of the harness: crash \\(" + signal + "\\)\n$";
  };
  EXPECT_EXIT(crash(SIGSEGV), ExitedWithCode(kExitHarness), line("SIGSEGV"));
  EXPECT_EXIT(crash(SIGBUS), ExitedWithCode(kExitHarness), line("SIGBUS"));
  EXPECT_EXIT(crash(SIGFPE), ExitedWithCode(kExitHarness), line("SIGFPE"));
  EXPECT_EXIT(crash(SIGILL), ExitedWithCode(kExitHarness), line("SIGILL"));
  EXPECT_EXIT(crash(SIGABRT), ExitedWithCode(kExitHarness), line("SIGABRT"));
}

TEST_F(CrashGuardDeathTest, LeavesACrashAloneOnceForgotten) {
  EXPECT_EXIT(
      {
        install_crash_guard();
        forget_crash_guard();
        (void)std::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "^$");
}

// The work behind the call keeps the frames; the bound keeps the compiler quiet.
int overflow(int depth) {
  volatile char frame[1024];  // NOLINT: something large
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

TEST_F(CrashGuardDeathTest, SurvivesAStackOverflow) {
  EXPECT_EXIT(
      {
        install_crash_guard();
        (void)overflow(0);
      },
      ExitedWithCode(kExitHarness), "^fault of the harness: crash \\(SIGSEGV\\)\n$");
}

}  // namespace
}  // namespace kvo::tools
