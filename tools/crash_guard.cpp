#include "tools/crash_guard.hpp"

#include <array>
#include <cstddef>
#include <string_view>

#include <signal.h>  // NOLINT: sigaction is POSIX
#include <unistd.h>

#include "tools/exit_status.hpp"

namespace kvo::tools {
namespace {

struct Fatal {
  int number;
  std::string_view line;
};
constexpr std::array<Fatal, 5> kFatal{{{SIGSEGV, "fault of the harness: crash (SIGSEGV)\n"},
                                       {SIGBUS, "fault of the harness: crash (SIGBUS)\n"},
                                       {SIGFPE, "fault of the harness: crash (SIGFPE)\n"},
                                       {SIGILL, "fault of the harness: crash (SIGILL)\n"},
                                       {SIGABRT, "fault of the harness: crash (SIGABRT)\n"}}};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

extern "C" void kvo_on_fatal_signal(int number) {
  if (isatty(STDERR_FILENO) == 1) (void)!write(STDERR_FILENO, "\r\x1b[K", 4);  // a progress line
  for (const Fatal& fatal : kFatal)
    if (fatal.number == number) (void)!write(STDERR_FILENO, fatal.line.data(), fatal.line.size());
  _exit(kExitHarness);
}

}  // namespace

void install_crash_guard() {
  if (kSanitized) return;
  static std::array<std::byte, std::size_t{64} << 10U> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  (void)sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = kvo_on_fatal_signal;
  action.sa_flags = SA_ONSTACK;
  (void)sigemptyset(&action.sa_mask);
  for (const Fatal& fatal : kFatal) (void)sigaction(fatal.number, &action, nullptr);
}

void forget_crash_guard() {
  if (kSanitized) return;
  for (const Fatal& fatal : kFatal) (void)signal(fatal.number, SIG_DFL);
}

}  // namespace kvo::tools
