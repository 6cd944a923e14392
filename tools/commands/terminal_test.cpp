// tools/commands/terminal_test.cpp: what a terminal sees, through script(1).
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/reports/console.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kScript = "/usr/bin/script";

/// The lines that a terminal of so many columns gets; what progress wrote is in them.
std::string seen(int columns, const std::string& words) {
  const std::string command =
      "stty cols " + std::to_string(columns) + "; " + kvoracle_path() + " " + words;
  return run_program({kScript, "-qec", command, "/dev/null"}).out;
}

class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    if (access(kScript, X_OK) != 0) GTEST_SKIP() << "no script(1)";
  }
};

TEST_F(Terminal, TablesFitIt) {
  const std::string command = "check layered 'positional.swa*' --cases 12";
  for (const int columns : {60, 72, 90}) {
    std::istringstream lines(seen(columns, command));
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      EXPECT_LE(display_width(line), static_cast<std::size_t>(columns)) << line;
    }
  }
  EXPECT_THAT(seen(60, command), AllOf(HasSubstr("(left out for want of room: time / reference"),
                                       HasSubstr("mismatches"), Not(HasSubstr("rows skipped  "))));
  EXPECT_THAT(seen(200, command), AllOf(HasSubstr("time / reference\r\n"),
                                        HasSubstr("rows skipped"), Not(HasSubstr("left out"))));
  EXPECT_THAT(run_program({"/bin/sh", "-c", kvoracle_path() + " " + command}).out,
              AllOf(HasSubstr("time / reference\n"), Not(HasSubstr("left out"))));
}

TEST_F(Terminal, ListsWrapTheirTexts) {
  for (const char* words : {"list -c layered", "help run"}) {
    std::istringstream lines(seen(70, words));
    int wide = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      wide += display_width(line) > 70 ? 1 : 0;
    }
    // A sentence about an operation stands on a line of its own.
    EXPECT_LE(wide, 1) << words;
  }
}

TEST_F(Terminal, ATimeHasABar) {
  EXPECT_THAT(seen(80, "check layered.vector --time 1.4"),
              AllOf(HasSubstr("cases [#"), HasSubstr(" % "), HasSubstr(" ms left")));
}

}  // namespace
}  // namespace kvo::tools
