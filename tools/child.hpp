// tools/child.hpp: a process forked from this one that answers requests, and how it may end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "properties/runner/pulse.hpp"

namespace kvo::tools {

/// How a process ended before it had answered.
struct Death {
  std::string how;                   ///< "crashed (SIGSEGV)", "exited with status 0", "hung ..."
  const Subject* subject = nullptr;  ///< that was at work last; null: none was
  std::uint64_t op_index = 0;        ///< its operation, from 0
  bool hung = false;                 ///< it was ended for its silence
};

/// What a child may use. Zero is without a limit.
struct ChildLimits {
  std::chrono::duration<double> silence{60};  ///< longest time that an operation may take
  std::uint64_t memory_bytes = std::uint64_t{6} << 30U;  ///< address space beyond this process's
  bool quiet = false;                                    ///< its standard error goes nowhere
};

/// A child. It ends with this process, whatever ends it, and with the object.
class Child {
 public:
  /// Forks. The child answers each request with answer(request) until no more come.
  /// Requires  this process has one thread.
  /// Throws std::system_error when the system has no process or pipe left.
  Child(const std::function<std::string(std::string_view request)>& answer, ChildLimits limits);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void ask(std::string_view request);
  /// Readable when there may be something to take.
  [[nodiscard]] int answers() const { return answers_; }

  enum class State : std::uint8_t { kBusy, kAnswered, kDead };
  /// Reads what there is, without waiting. A child that is silent for too long is ended.
  [[nodiscard]] State look();
  /// Waits for the answer or the end.
  [[nodiscard]] State wait();
  /// After kAnswered.
  [[nodiscard]] std::string take_answer();
  /// After kDead.
  [[nodiscard]] const Death& death() const { return *death_; }

 private:
  using Clock = std::chrono::steady_clock;
  void bury();

  ChildLimits limits_;
  pid_t pid_ = -1;
  int requests_ = -1;
  int answers_ = -1;
  Pulse* pulse_ = nullptr;
  std::string received_ = {};
  std::uint64_t beats_ = 0;
  Clock::time_point last_beat_;
  bool hung_ = false;
  std::optional<Death> death_;
};

/// Longest time that nobody looks at a child.
inline constexpr std::chrono::milliseconds kBetweenLooks{50};

}  // namespace kvo::tools
