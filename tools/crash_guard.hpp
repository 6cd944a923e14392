// tools/crash_guard.hpp: a crash or a hang ends the command with kExitCrashed and one line that
// says in what, and how to repeat it.
//
// Words    activity   what a thread is doing, for instance one case against one subject.
// Under the address and thread sanitizers their reports stay as they are; the line follows them.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <string_view>
#include <thread>

namespace kvo::tools {

/// Longest time a thread may go without beginning or ending an activity, unless options say
/// otherwise. Cases take milliseconds.
inline constexpr std::chrono::seconds kDefaultCaseTimeout{120};

/// What this thread does from now until the end of the scope, for the line that a crash prints:
/// "crash (SIGSEGV) in WHAT: repeat with: REPEAT". Activities nest; the innermost is named.
/// Cheap enough for every case, not for every operation. Longer texts are cut off.
class Activity {
 public:
  explicit Activity(std::string_view what, std::string_view repeat = {});
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  [[nodiscard]] const char* what() const { return what_.data(); }
  [[nodiscard]] const char* repeat() const { return repeat_.data(); }

 private:
  static constexpr std::size_t kMaxText = 500;

  std::array<char, kMaxText> what_;
  std::array<char, kMaxText> repeat_;
  Activity* outer_;
};

/// Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT in every thread, and a stack that overflows
/// in threads that have had an activity. For the whole process; call it first in main.
void install_crash_guard();

/// While it lives, a thread that stays in one activity for longer than `limit` is taken to hang and
/// ends the process. A limit of zero watches nothing.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::duration<double> limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace kvo::tools
