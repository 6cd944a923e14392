// tools/testing/forked_main.hpp: the whole command in a process forked from the test. For tests
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/testing/captured.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {

/// What is left of a command.
struct Forked {
  int status = -1;               ///< exit status; -1 if the process was ended
  std::string death;             ///< how it was; SIGALRM: it took too long
  std::string out = {};          ///< standard output
  std::string err = {};          ///< standard error
  std::uint64_t peak_bytes = 0;  ///< resident at most, of the process or its workers, so far
};

/// Runs commands one by one in a process of their own: a new process for each, or a program, would
/// take most of the time under a sanitizer.
class ForkedMain {
 public:
  /// Runs `kvoracle ARGUMENTS..` for so many seconds at most.
  /// Requires  this process has one thread.
  [[nodiscard]] Forked run(const std::vector<std::string>& arguments, unsigned most_seconds);
  /// The next command gets a new process.
  void end() { child_.reset(); }

 private:
  Captured out_;
  Captured err_;
  std::unique_ptr<Process> child_;
};

}  // namespace kvo::tools
