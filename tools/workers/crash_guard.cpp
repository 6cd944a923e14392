#include "tools/workers/crash_guard.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include <signal.h>  // NOLINT: sigaction is POSIX
#include <unistd.h>

#include "tools/commands/exit_status.hpp"

namespace kvo::tools {
namespace {

constexpr std::array kFatal{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

extern "C" void kvo_on_fatal_signal(int number) {
  const auto say = [](std::string_view text) {
    (void)!write(STDERR_FILENO, text.data(), text.size());
  };
  if (isatty(STDERR_FILENO) == 1) say("\r\x1b[K");  // a progress line
  const char* name = sigabbrev_np(number);
  say("fault of the harness: crash (SIG");
  say(name != nullptr ? name : "?");
  say(")\n");
  _exit(kExitHarness);
}

}  // namespace

void catch_crashes(void (*handler)(int number)) {
  if (kIsSanitized) return;
  static std::array<std::byte, std::size_t{64} << 10U> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  (void)sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  (void)sigemptyset(&action.sa_mask);
  for (const int number : kFatal) (void)sigaction(number, &action, nullptr);
}

void install_crash_guard() {
  catch_crashes(kvo_on_fatal_signal);
}

void forget_crash_guard() {
  catch_crashes(SIG_DFL);
}

}  // namespace kvo::tools
