#include "tools/crash_guard.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tools/exit_status.hpp"

namespace kvo::tools {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using testing::ExitedWithCode;

// Each case dies in a process of its own, begun anew: threads do not survive a fork.
class CrashGuardDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

/// What only the handlers of plain builds do.
class CrashHandlerDeathTest : public CrashGuardDeathTest {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "the sanitizer handles signals itself";
    CrashGuardDeathTest::SetUp();
  }
};

void crash(int signal, const std::string& what, const std::string& repeat = {}) {
  install_crash_guard();
  const Activity outer("everything");
  const Activity inner(what, repeat);
  (void)std::raise(signal);
}

TEST_F(CrashGuardDeathTest, NamesTheInnermostActivityAndHowToRepeatIt) {
  const std::string begin = kSanitized
                                ? "crash \\(see the sanitizer's report\\)"  // behind the report
                                : "^crash \\(SIGSEGV\\)";
  EXPECT_EXIT(crash(SIGSEGV, "provider.paged@optimized, case 17",
                    "kvoracle check provider.paged@optimized --seed 1 --case 17"),
              ExitedWithCode(kExitCrashed),
              begin +
                  " in provider.paged@optimized, case 17: repeat with: kvoracle check "
                  "provider.paged@optimized --seed 1 --case 17\n$");
}

TEST_F(CrashHandlerDeathTest, CatchesEveryFatalSignal) {
  EXPECT_EXIT(crash(SIGBUS, "a"), ExitedWithCode(kExitCrashed), "^crash \\(SIGBUS\\) in a\n$");
  EXPECT_EXIT(crash(SIGFPE, "a"), ExitedWithCode(kExitCrashed), "^crash \\(SIGFPE\\) in a\n$");
  EXPECT_EXIT(crash(SIGILL, "a"), ExitedWithCode(kExitCrashed), "^crash \\(SIGILL\\) in a\n$");
  EXPECT_EXIT(crash(SIGABRT, "a"), ExitedWithCode(kExitCrashed), "^crash \\(SIGABRT\\) in a\n$");
}

TEST_F(CrashHandlerDeathTest, SpeaksWithoutAnActivity) {
  EXPECT_EXIT(
      {
        install_crash_guard();
        std::abort();
      },
      ExitedWithCode(kExitCrashed), "^crash \\(SIGABRT\\)\n$");
}

// The work behind the call keeps the frames; the bound keeps the compiler quiet.
int overflow(int depth) {
  volatile char frame[1024];  // NOLINT: something large
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

TEST_F(CrashHandlerDeathTest, SurvivesAStackOverflowOfAThread) {
  EXPECT_EXIT(
      {
        install_crash_guard();
        std::thread([] {
          const Activity activity("deep recursion");
          (void)overflow(0);
        }).join();
      },
      ExitedWithCode(kExitCrashed), "^crash \\(SIGSEGV\\) in deep recursion\n$");
}

TEST_F(CrashHandlerDeathTest, CutsLongTextsOff) {
  EXPECT_EXIT(crash(SIGSEGV, std::string(100'000, 'x'), "y"), ExitedWithCode(kExitCrashed),
              "^crash \\(SIGSEGV\\) in x{499}: repeat with: y\n$");
}

TEST_F(CrashGuardDeathTest, EndsAThreadThatHangs) {
  EXPECT_EXIT(
      {
        const Watchdog watchdog(std::chrono::milliseconds(100));
        std::thread([] {
          const Activity activity("a loop", "kvoracle check");
          while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
        }).join();
      },
      ExitedWithCode(kExitCrashed), "^hung in a loop: repeat with: kvoracle check\n$");
}

TEST(Watchdog, LeavesThreadsAloneThatMoveOn) {
  const Watchdog watchdog(std::chrono::seconds(5));
  const Activity outer("everything");
  for (int i = 0; i < 20; ++i) {
    const Activity inner("a case");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(Watchdog, ALimitOfZeroWatchesNothing) {
  const Watchdog watchdog(std::chrono::seconds(0));
  const Activity activity("slow");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace kvo::tools
