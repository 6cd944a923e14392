// tools/adapters/child.hpp: a program in a process of its own that answers lines with lines.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "tools/adapters/shared_memory.hpp"

namespace kvo::tools {

/// A program that reads requests from its standard input and answers each with one line on its
/// standard output. Its process has a session and a group of its own, which end with this object,
/// and with this process.
class Child {
 public:
  /// Most bytes of a line that a child may write.
  static constexpr std::size_t kMostLine = std::size_t{64} << 20U;
  /// Where a child finds the memory that is shared with it.
  static constexpr int kMemoryFile = 3;

  /// Runs `command` in a shell. Throws std::system_error: the system has no process left.
  Child(const std::string& command, const SharedMemory& memory);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Writes a line and waits for the line that answers it, which is then answer(). Nothing, or how
  /// the child died of it: "crashed (SIGSEGV)", "hung (no answer for 10 s)". A dead child is asked
  /// no more.
  [[nodiscard]] std::optional<std::string> ask(std::string_view line,
                                               std::chrono::duration<double> deadline);
  /// Valid until the next ask().
  [[nodiscard]] std::string_view answer() const {
    return std::string_view(received_).substr(0, end_);
  }
  /// Ends the child for an answer that is none. Returns `problem` with what it wrote for people.
  [[nodiscard]] std::string refuse(std::string problem);

  [[nodiscard]] bool lives() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether SIGUSR1 makes it write the stacks of its threads to standard error.
  void gives_stacks() { gives_stacks_ = true; }

 private:
  enum class Read : unsigned char { kSome, kNothing, kEnd };
  [[nodiscard]] Read read_answers();
  void read_errors();
  [[nodiscard]] bool has_line();
  [[nodiscard]] std::string hangs(std::chrono::duration<double> deadline);
  [[nodiscard]] std::string has_ended();
  [[nodiscard]] std::string with_errors(std::string how);
  void stop();

  pid_t pid_ = -1;
  int requests_ = -1;
  int answers_ = -1;
  int errors_ = -1;
  bool gives_stacks_ = false;
  std::string received_ = {};    // the answer, and what came after it
  std::size_t end_ = 0;          // of the answer
  std::size_t searched_ = 0;     // of received_, for the end of a line
  std::string error_text_ = {};  // the end of what it wrote on standard error
};

}  // namespace kvo::tools
