// tools/reports/junit.hpp: verdicts as JUnit XML, which CI systems show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvo::tools {

/// One test of a suite.
struct JunitTest {
  enum class State : std::uint8_t { kPassed, kFailed, kError, kSkipped };
  std::string name;
  State state = State::kPassed;
  std::string message = {};               ///< one line, unless it passed
  std::vector<std::string> details = {};  ///< lines below it
  std::optional<double> seconds = std::nullopt;
};

struct JunitSuite {
  std::string name;
  std::vector<JunitTest> tests = {};
};

/// The file's text. Texts are cut to a few thousand characters, and what XML 1.0 cannot hold stands
/// as printable() writes it.
[[nodiscard]] std::string junit_text(const std::string& title,
                                     const std::vector<JunitSuite>& suites);

/// Writes junit_text to `path`, whole or not at all, or to standard output for "-".
/// Throws FileError.
void write_junit(const std::string& path, const std::string& title,
                 const std::vector<JunitSuite>& suites);

}  // namespace kvo::tools
