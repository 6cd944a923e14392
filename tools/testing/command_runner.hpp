// tools/testing/command_runner.hpp: runs the built `kvoracle` as a user would. For tests only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kvo::tools {

/// What is left of a command that has ended.
struct Finished {
  int status = -1;  ///< exit status; -1 if a signal ended it
  int signal = 0;   ///< that signal, or 0
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string input = {};           ///< bytes on standard input
  std::string output_to = {};       ///< file for standard output instead of Finished::out
  std::string folder = {};          ///< to run in; empty: the current one
  std::chrono::seconds limit{120};  ///< killed (SIGKILL) after that
};

/// Runs `kvoracle ARGUMENTS...`.
[[nodiscard]] Finished run_kvoracle(const std::vector<std::string>& arguments,
                                    const RunOptions& options = {});

/// Runs any program; the first word is its path.
[[nodiscard]] Finished run_program(std::vector<std::string> words, const RunOptions& options = {});

/// The path of the built command, for shells.
[[nodiscard]] std::string kvoracle_path();

}  // namespace kvo::tools
