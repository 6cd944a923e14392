// What the command line understands in all commands: standard input, wild cards.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string bytes_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

const std::string kLog = std::string(KVO_LOGS) + "/layered.jsonl.gz";

// The last line has the counts; the table before it has times.
std::string counts(const Finished& done) {
  return done.out.substr(done.out.rfind('\n', done.out.size() - 2) + 1);
}

TEST(StandardInput, IsALogForAllWorkers) {
  const std::string packed = bytes_of(kLog);
  const Finished file = run_kvoracle({"conform", kLog});
  ASSERT_THAT(counts(file), StartsWith("50 cases, "));
  for (const char* jobs : {"1", "3"}) {
    const Finished done = run_kvoracle({"conform", "-", "--jobs", jobs}, {.input = packed});
    EXPECT_EQ(done.status, kExitConforms) << done.err;
    EXPECT_EQ(counts(done), counts(file));
  }
  EXPECT_THAT(counts(run_kvoracle({"conform", "-", kLog}, {.input = packed})),
              StartsWith("100 cases, "));
}

TEST(Pipe, IsALogForAllWorkers) {
  for (const char* name : {"<(cat \"$2\")", "/dev/stdin < <(cat \"$2\")"}) {
    const Finished done =
        run_program({"/bin/bash", "-c", std::string("\"$1\" conform --jobs 3 ") + name, "bash",
                     kvoracle_path(), kLog});
    EXPECT_EQ(done.status, kExitConforms) << done.err;
    EXPECT_THAT(counts(done), StartsWith("50 cases, "));
  }
}

TEST(StandardInput, IsALogForShrink) {
  const std::string mutant = "layered.vector@mutant:clear_keeps_rows";
  const std::string script =
      R"({"kvlog":1,"contract":"layered","cache":"vector","config":{"build":"debug"},"case":"a"}
{"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1}}
{"op":"append","args":{"cache":0,"layer":0,"k":{"shape":[1],"data":[1]},)"
      R"("v":{"shape":[1],"data":[2]}}}
{"op":"len","args":{"cache":0}}
{"op":"clear","args":{"cache":0}}
{"op":"v","args":{"cache":0,"layer":0}}
)";
  const Finished done = run_kvoracle({"shrink", "-", "--subject", mutant}, {.input = script});
  EXPECT_EQ(done.status, kExitDiffers) << done.err;
  EXPECT_THAT(done.err, HasSubstr("4 of 5 operations are enough"));
  EXPECT_EQ(run_kvoracle({"conform", "-", "--subject", mutant}, {.input = done.out}).status,
            kExitDiffers);
}

TEST(StandardInput, IsATrace) {
  const std::string trace = run_kvoracle({"trace", "generate", "--requests", "12"}).out;
  const Finished info = run_kvoracle({"trace", "info", "-"}, {.input = trace});
  EXPECT_THAT(info.out, StartsWith("trace               standard input\nrequests            12\n"));
  const Finished run = run_kvoracle(
      {"run", "-", "--subject", "layered", "--scale", "64", "--no-timings"}, {.input = trace});
  EXPECT_EQ(run.status, kExitConforms) << run.err;
  EXPECT_THAT(run.out, StartsWith("standard input: 12 requests"));
}

TEST(StandardInput, IsNamedInErrors) {
  const auto error = [](const std::vector<std::string>& words, const std::string& input) {
    const Finished done = run_kvoracle(words, {.input = input});
    EXPECT_EQ(done.status, kExitUsage) << done.out;
    return done.err;
  };
  EXPECT_THAT(error({"conform", "-"}, "hello\n"), StartsWith("kvoracle: standard input:1: "));
  EXPECT_THAT(error({"run", "-"}, ""), StartsWith("kvoracle: standard input: "));
  const std::string packed = bytes_of(kLog);
  EXPECT_THAT(error({"conform", "-"}, packed.substr(0, packed.size() / 2)),
              AllOf(StartsWith("kvoracle: standard input:"), HasSubstr("truncated")));
  EXPECT_THAT(error({"check", "layered", "--output", "-"}, ""), HasSubstr("--output -"));
  const Finished closed =
      run_program({"/bin/sh", "-c", "\"$1\" conform - <&-", "sh", kvoracle_path()});
  EXPECT_EQ(closed.status, kExitUsage);
  EXPECT_THAT(closed.err, StartsWith("kvoracle: standard input: cannot read: "));
}

TEST(StandardInput, IsBounded) {
  const Finished done =
      run_program({"/bin/sh", "-c", "yes | \"$1\" conform -", "sh", kvoracle_path()});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, HasSubstr("standard input: longer than 1073741824 bytes"));
}

// The first words of the rows of the last table.
std::vector<std::string> subjects_of(const Finished& done) {
  std::vector<std::string> subjects;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t blank = line.find(' ');
        line.substr(0, blank).find('@') != std::string::npos)
      subjects.push_back(line.substr(0, blank));
  return subjects;
}

TEST(WildCards, MeanSubjects) {
  const auto checked = [](const std::vector<std::string>& words) {
    std::vector<std::string> command{"check",    "--cases",         "8", "--shrink-attempts", "0",
                                     "--repros", testing::TempDir()};
    command.insert(command.end(), words.begin(), words.end());
    return subjects_of(run_kvoracle(command));
  };
  using testing::ElementsAre;
  const std::string reference = "layered.vector@reference";
  const std::string optimized = "layered.vector@optimized";
  EXPECT_THAT(checked({"layered.*"}), ElementsAre(reference, optimized)) << "no mutants";
  EXPECT_THAT(checked({"*red"}), ElementsAre(reference, optimized)) << "a contract";
  EXPECT_THAT(checked({"layered*@optim?zed"}), ElementsAre(reference, optimized));
  EXPECT_THAT(checked({"layered*@mutant:clone_*"}),
              ElementsAre(reference, "layered.vector@mutant:clone_drops_pending",
                          "layered.vector@mutant:clone_shares_places"));
  EXPECT_THAT(checked({"positional.*_mem@[or]*"}),
              ElementsAre("positional.swa_mem@reference", "positional.swa_mem@optimized"));
}

TEST(WildCards, MeanReferencesInLogs) {
  EXPECT_THAT(subjects_of(run_kvoracle({"conform", kLog, "--subject", "*@opt*"})),
              testing::ElementsAre("layered.vector@optimized"));
  EXPECT_THAT(subjects_of(run_kvoracle({"conform", kLog, "--subject", "*@ref*"})),
              testing::ElementsAre("layered.vector@reference"));
}

TEST(WildCards, MeanLawsAndMutants) {
  const Finished laws = run_kvoracle({"check", "layered", "--law", "a*", "--cases", "8"});
  EXPECT_THAT(laws.out, AllOf(HasSubstr("\nagrees_with_reference"), HasSubstr("\na_b_a"),
                              Not(HasSubstr("order_of_independent_sequences"))));
  const Finished others = run_kvoracle({"check", "layered", "--law", "!a*", "--cases", "8"});
  EXPECT_THAT(others.out,
              AllOf(Not(HasSubstr("\nagrees_with_reference")), Not(HasSubstr("\na_b_a")),
                    HasSubstr("\norder_of_independent_sequences")));
  const Finished one =
      run_kvoracle({"check", "layered", "--law", "a*", "--law", "!a_b_a", "--cases", "8"});
  EXPECT_THAT(one.out, AllOf(HasSubstr("\nagrees_with_reference"), Not(HasSubstr("\na_b_a"))));
  const Finished mutants = run_kvoracle(
      {"mutants", "layered.vector@mutant:clone_*", "block*", "--cases", "2", "--jobs", "2"});
  EXPECT_THAT(mutants.out,
              AllOf(HasSubstr("clone_drops_pending"), HasSubstr("clone_shares_places"),
                    HasSubstr("block_pool.stack@mutant:"), Not(HasSubstr("clear_keeps_rows"))));
}

TEST(WildCards, ThatMeanNothingAreRefusedWithNearNames) {
  const auto refused = [](const std::vector<std::string>& words) {
    const Finished done = run_kvoracle(words);
    EXPECT_EQ(done.status, kExitUsage) << done.out;
    return done.err;
  };
  EXPECT_THAT(refused({"check", "layred.*"}),
              HasSubstr("unknown subject 'layred.*'; did you mean 'layered'?\n"));
  EXPECT_THAT(refused({"check", "provider.paged@optimised"}),
              HasSubstr("did you mean 'provider.paged@optimized'?"));
  EXPECT_THAT(refused({"check", "--law", "x*"}), HasSubstr("unknown law 'x*'. There are: "));
  EXPECT_THAT(refused({"check", "--law", "!gravity"}), HasSubstr("unknown law 'gravity'"));
  EXPECT_THAT(refused({"check", "--law", "a_b_a", "--law", "!a*"}), HasSubstr("no law is left"));
  EXPECT_THAT(refused({"mutants", "laye"}), HasSubstr("did you mean 'layered'?"));
  EXPECT_THAT(refused({"mutants", "*@optimized"}), HasSubstr("unknown mutant '*@optimized'"));
}

}  // namespace
}  // namespace kvo::tools
