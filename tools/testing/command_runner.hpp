// tools/testing/command_runner.hpp: runs the built `kvoracle` as a user would. For tests only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace kvo::tools {

/// What is left of a command that has ended.
struct Finished {
  int status = -1;  ///< exit status; -1 if a signal ended it
  int signal = 0;   ///< that signal, or 0
  std::string out;
  std::string err;
  std::uint64_t peak_bytes = 0;  ///< most memory of the command or of a process that it waited for
  std::chrono::duration<double> seconds{0};
};

/// A signal that a running command gets.
struct TimedSignal {
  std::chrono::milliseconds after{0};
  int number = 0;
  bool group = false;  ///< to all processes of the command's group: requires own_group
  /// If given, it is sent when this holds first.
  std::function<bool()> when = {};
};

struct ProgramOptions {
  std::string folder = {};                    ///< to run in; empty: the current one
  std::chrono::seconds limit{120};            ///< killed (SIGKILL) after that
  std::vector<std::string> environment = {};  ///< "NAME=value", added to the one of the test
  bool own_group = false;                     ///< whether it leads a process group of its own
  std::vector<TimedSignal> signals = {};      ///< in the order of time
};

/// Runs `kvoracle ARGUMENTS...`.
[[nodiscard]] Finished run_kvoracle(const std::vector<std::string>& arguments,
                                    const ProgramOptions& options = {});

/// Runs any program; the first word is its path. Returns when the program has ended, even if
/// processes that it left behind hold its outputs open.
[[nodiscard]] Finished run_program(std::vector<std::string> words,
                                   const ProgramOptions& options = {});

/// The path of the built command, for shells.
[[nodiscard]] std::string kvoracle_path();

/// The processes whose environment has this entry ("NAME=value").
[[nodiscard]] std::vector<pid_t> processes_with(const std::string& entry);
/// The same after at most `patience`, empty as soon as there are none; kills those that are left.
[[nodiscard]] std::vector<pid_t> left_behind(
    const std::string& entry, std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace kvo::tools
