// The script for bash as bash runs it, and the manual page as groff reads it.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// What bash offers behind a line, each on a line of its own.
std::string offered(const std::string& line) {
  // Interactive shells break words at an @, too.
  const std::string script = R"(COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:'
source <("$1" completion bash)
COMP_LINE=$2 COMP_POINT=${#2}
_kvoracle "$1"
for word in "${COMPREPLY[@]}"; do printf '%s\n' "$word"; done)";
  const Finished done =
      run_program({"/bin/bash", "--norc", "-c", script, "bash", kvoracle_path(), line});
  EXPECT_EQ(done.err, "");
  return done.out;
}

TEST(BashCompletion, OffersCommands) {
  EXPECT_THAT(offered("kvoracle "), StartsWith("run\ncheck\nconform\n"));
  EXPECT_EQ(offered("kvoracle ch"), "check\n");
  EXPECT_EQ(offered("kvoracle trace "), "info\ngenerate\n");
  EXPECT_EQ(offered("kvoracle --color never che"), "check\n");
  EXPECT_EQ(offered("kvoracle help tr"), "trace\n");
  EXPECT_EQ(offered("kvoracle nothing_such_as_this x"), "");
}

TEST(BashCompletion, OffersOptions) {
  EXPECT_EQ(offered("kvoracle check --l"), "--law\n");
  EXPECT_EQ(offered("kvoracle trace info --f"), "--format\n");
  EXPECT_THAT(offered("kvoracle --"), HasSubstr("--version\n"));
}

TEST(BashCompletion, OffersWhatOptionsTake) {
  EXPECT_EQ(offered("kvoracle check --law ag"), "agrees_with_reference\n");
  EXPECT_EQ(offered("kvoracle check --profile "), "documented\noriginal\n");
  EXPECT_EQ(offered("kvoracle check --profile=do"), "documented\n");
  EXPECT_EQ(offered("kvoracle run --format m"), "mooncake\n");
  EXPECT_EQ(offered("kvoracle explain ok"), "");
  EXPECT_EQ(offered("kvoracle explain a_b"), "a_b_a\n");
  EXPECT_EQ(offered("kvoracle list mu"), "mutants\n");
  EXPECT_EQ(offered("kvoracle list layered."), "layered.vector\n");
  EXPECT_THAT(offered("kvoracle explain OK-5"), HasSubstr("OK-55\n"));
  EXPECT_EQ(offered("kvoracle completion "), "bash\n");
  for (const char* line :
       {"kvoracle conform ", "kvoracle check --json ", "kvoracle check --cases "})
    EXPECT_EQ(offered(line), "") << line;
}

TEST(BashCompletion, OffersSubjectsBehindTheWordBreak) {
  EXPECT_THAT(offered("kvoracle check layered.v"),
              AllOf(StartsWith("layered.vector\nlayered.vector@mutant:"),
                    HasSubstr("layered.vector@optimized\n"), Not(HasSubstr("provider"))));
  EXPECT_EQ(offered("kvoracle check layered.vector@o"), "@optimized\n");
  EXPECT_EQ(offered("kvoracle mutants layered.vector@mutant:cle"), "clear_keeps_rows\n");
}

TEST(ManualPage, HasEveryCommandAndOption) {
  const Finished done = run_kvoracle({"help", "--man"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, StartsWith(".TH KVORACLE 1 "));
  for (const char* text :
       {".SH NAME\nkvoracle \\- ", ".SS kvoracle check [OPTIONS] [subjects ..]\n",
        ".SS kvoracle trace info ", ".SS kvoracle shrink [OPTIONS] log\n",
        ".TP\n\\fB\\-j, \\-\\-jobs N\\fR\n", "\nSchedule of the requests:\n", "Exit status: 0"})
    EXPECT_THAT(done.out, HasSubstr(text));
}

TEST(ManualPage, IsUnderstoodByGroff) {
  if (access("/usr/bin/groff", X_OK) != 0) GTEST_SKIP() << "no groff(1)";
  const std::string page = run_kvoracle({"help", "--man"}).out;
  const Finished done =
      run_program({"/usr/bin/groff", "-man", "-ww", "-Tascii", "-P-cbou"}, {.input = page});
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "") << "groff warns";
  EXPECT_THAT(done.out, AllOf(HasSubstr("kvoracle check [OPTIONS] [subjects ..]"),
                              HasSubstr("--operation-timeout SECONDS")));
}

}  // namespace
}  // namespace kvo::tools
