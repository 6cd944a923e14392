// tools/main_test.cpp: what `kvoracle` answers to good and bad usage, as a shell sees it.
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// Status 2, nothing on standard output, and exactly these lines on standard error.
void expect_usage_fault(const std::vector<std::string>& arguments, const std::string& line,
                        const std::string& help) {
  const Finished done = run_kvoracle(arguments);
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(done.err, "kvoracle: " + line + "\nTry '" + help + " --help'.\n");
}

Finished run_shell(const std::string& script) {
  return run_program({"/bin/sh", "-c", script, "sh", kvoracle_path()});
}

TEST(Kvoracle, ShowsItsVersion) {
  const Finished done = run_kvoracle({"--version"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, testing::MatchesRegex("kvoracle [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(done.err, "");
}

TEST(Kvoracle, ExplainsItself) {
  const Finished done = run_kvoracle({"--help"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, HasSubstr("list"));
  EXPECT_THAT(done.out, HasSubstr("Exit status: 0 all conform"));
  EXPECT_EQ(done.err, "");
}

TEST(Kvoracle, ExplainsEachCommand) {
  const Finished list = run_kvoracle({"list", "--help"});
  EXPECT_EQ(list.status, kExitConforms);
  EXPECT_THAT(list.out, HasSubstr("Usage: kvoracle list [OPTIONS]"));
  EXPECT_THAT(list.out, HasSubstr("--contract"));
  const Finished info = run_kvoracle({"trace", "info", "-h"});
  EXPECT_EQ(info.status, kExitConforms);
  EXPECT_THAT(info.out, HasSubstr("Usage: kvoracle trace info [OPTIONS]"));
  EXPECT_THAT(info.out, HasSubstr("--capacity"));
}

TEST(Kvoracle, HelpIsACommand) {
  EXPECT_EQ(run_kvoracle({"help"}).out, run_kvoracle({"--help"}).out);
  EXPECT_EQ(run_kvoracle({"help", "check"}).out, run_kvoracle({"check", "--help"}).out);
  EXPECT_EQ(run_kvoracle({"help", "trace", "info"}).out, run_kvoracle({"trace", "info", "-h"}).out);
  EXPECT_THAT(run_kvoracle({"help", "chek"}).err,
              StartsWith("kvoracle: unknown command 'chek'; did you mean 'check'?"));
  EXPECT_EQ(run_kvoracle({"help", "check", "more"}).status, kExitUsage);
}

TEST(Kvoracle, ShowsOptionsInGroupsThatFitALine) {
  const Finished done = run_kvoracle({"help", "run"});
  for (const char* text :
       {"\nOptions:\n", "\nSchedule of the requests:\n", "\nSize of the caches:\n",
        "\n  -j, --jobs N                worker processes", "\n  --profile documented|original\n",
        " [original]\n", "\n  --subject SUBJECT ..        contracts"})
    EXPECT_THAT(done.out, HasSubstr(text));
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  for (const char* raw : {"INT", "TEXT", "FLOAT", "{", "SUBCOMMAND"})
    EXPECT_THAT(done.out + run_kvoracle({"--help"}).out, Not(HasSubstr(raw)));
}

TEST(Kvoracle, RefusesToGuessTheCommand) {
  const Finished done = run_kvoracle({});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, StartsWith("kvoracle: no command given; there are: "));
  EXPECT_THAT(done.err, HasSubstr("Try 'kvoracle --help'."));
  expect_usage_fault({"trace"}, "no command given; there are: info, generate", "kvoracle trace");
}

TEST(Kvoracle, SuggestsTheCommandThatWasMeant) {
  const Finished done = run_kvoracle({"lits"});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, StartsWith("kvoracle: unknown command 'lits'; did you mean 'list'?\n"));
  expect_usage_fault({"trace", "inof"}, "unknown command 'inof'; did you mean 'info'?",
                     "kvoracle trace");
}

TEST(Kvoracle, SuggestsTheOptionThatWasMeant) {
  expect_usage_fault({"list", "--jsn", "x"}, "unknown option '--jsn'; did you mean '--json'?",
                     "kvoracle list");
  expect_usage_fault({"list", "--bogus"}, "unknown option '--bogus'", "kvoracle list");
  expect_usage_fault({"completion", "bash", "more"}, "unexpected argument 'more'",
                     "kvoracle completion");
}

TEST(Kvoracle, TakesOneCommand) {
  expect_usage_fault({"completion", "bash", "list"}, "unexpected argument 'list'",
                     "kvoracle completion");
}

TEST(Kvoracle, RefusesMissingAndBadValues) {
  const Finished missing = run_kvoracle({"list", "--json"});
  EXPECT_EQ(missing.status, kExitUsage);
  EXPECT_THAT(missing.err, HasSubstr("--json"));
  const Finished bad = run_kvoracle({"trace", "generate", "--requests", "many"});
  EXPECT_EQ(bad.status, kExitUsage);
  EXPECT_THAT(bad.err, HasSubstr("--requests"));
  EXPECT_THAT(bad.err, HasSubstr("Try 'kvoracle trace generate --help'."));
}

TEST(Kvoracle, NamesFewOfWhatThereIs) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"check", "provder"}, {"mutants", "x"}, {"list", "-c", "x"}, {"check", "--law", "x"}}) {
    const Finished done = run_kvoracle(words);
    EXPECT_EQ(done.status, kExitUsage);
    EXPECT_LT(done.err.find('\n'), 200U) << done.err;
  }
}

TEST(Kvoracle, TellsThatTheStackIsTooSmall) {
  const auto with = [](const std::string& limit) {
    return run_program({"/bin/bash", "-c",
                        "ulimit " + limit + "; exec \"$0\" check layered --cases 20",
                        kvoracle_path()});
  };
  const Finished refused = with("-s 64");
  EXPECT_EQ(refused.status, kExitUsage) << refused.err;
  EXPECT_EQ(refused.err, "kvoracle: the stack may have 64 KiB, and needs 256 KiB (ulimit -s)\n");
  EXPECT_EQ(with("-S -s 64").status, kExitConforms) << "it may be raised";
}

TEST(Kvoracle, TellsThatTheDiskIsFull) {
  for (const char* command : {"list", "trace", "--help"}) {
    std::vector<std::string> arguments{command};
    if (arguments.front() == "trace") arguments.emplace_back("generate");
    const Finished done = run_kvoracle(arguments, {.output_to = "/dev/full"});
    EXPECT_EQ(done.status, kExitUsage) << command;
    EXPECT_EQ(done.err, "kvoracle: cannot write standard output: No space left on device\n");
  }
}

TEST(Kvoracle, TellsThatStandardOutputIsClosed) {
  const Finished done = run_shell("\"$1\" list >&-");
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, StartsWith("kvoracle: cannot write standard output: "));
}

TEST(Kvoracle, EndsQuietlyWhenNobodyReadsOn) {
  // Far more than a pipe holds, so that the command writes after head has gone.
  const Finished done = run_shell(
      R"({ "$1" trace generate --requests 20000; echo "status $?" >&2; } | head -n 1 >/dev/null)");
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "status 2\n");
}

TEST(Kvoracle, TakesWhatConcernsAllCommandsBehindOneToo) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--color", "never", "list"}, {"list", "--color", "never"}})
    EXPECT_EQ(run_kvoracle(words).status, kExitConforms);
  const Finished wrong = run_kvoracle({"list", "--color", "blue"});
  EXPECT_EQ(wrong.status, kExitUsage);
  EXPECT_NE(wrong.err.find("--color: blue not in"), std::string::npos) << wrong.err;
  EXPECT_NE(run_kvoracle({"list", "--colr"}).err.find("unknown option '--colr'"),
            std::string::npos);
}

TEST(Kvoracle, PrintsNoColoursIntoAPipe) {
  const Finished done = run_kvoracle({"list"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(done.err, IsEmpty());
}

}  // namespace
}  // namespace kvo::tools
