// `--junit` of each command that has it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"
#include "tools/testing/xml_reader.hpp"

namespace kvo::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;

class JunitCommand : public testing::Test {
 protected:
  JunitCommand()
      : folder_(std::filesystem::path(testing::TempDir()) /
                (std::string("kvoracle_junit_") +
                 testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~JunitCommand() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Finished run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--junit", "-"});
    return run_kvoracle(words, {.folder = folder_.string()});
  }

  std::filesystem::path folder_;
};

const XmlElement& suite(const XmlElement& root, const std::string& name) {
  return *std::ranges::find_if(
      root.children, [&](const XmlElement& child) { return child.attributes.at("name") == name; });
}

TEST_F(JunitCommand, CheckHasASuiteASubjectAndATestALaw) {
  const Finished done = run({"check", "layered", "--cases", "60"});
  EXPECT_EQ(done.status, kExitConforms) << done.err;
  const XmlElement root = read_xml(done.out);
  EXPECT_EQ(root.attributes.at("name"), "kvoracle check");
  EXPECT_EQ(root.attributes.at("failures"), "0");
  const XmlElement& optimized = suite(root, "layered.vector@optimized");
  EXPECT_EQ(optimized.children.size(), 4U);
  EXPECT_EQ(optimized.children.at(0).attributes.at("name"), "agrees_with_reference");
  EXPECT_TRUE(optimized.children.at(0).children.empty());
  EXPECT_FALSE(optimized.children.at(0).attributes.contains("time"));
  EXPECT_EQ(run({"check", "layered", "--cases", "60", "--jobs", "2"}).out, done.out);
}

TEST_F(JunitCommand, AFailureHasItsScriptAndTheCommandThatRepeatsIt) {
  const std::string mutant = "layered.vector@mutant:clear_keeps_rows";
  const Finished done = run({"check", mutant, "--law", "agrees_with_reference", "--cases", "100"});
  EXPECT_EQ(done.status, kExitDiffers);
  const XmlElement root = read_xml(done.out);
  EXPECT_EQ(root.attributes.at("failures"), "1");
  const XmlElement& failure = suite(root, mutant).children.at(0).children.at(0);
  EXPECT_EQ(failure.name, "failure");
  EXPECT_THAT(failure.attributes.at("message"), AllOf(HasSubstr("want "), SizeIs(Le(303U))));
  EXPECT_THAT(failure.text, HasSubstr("\nshrunk to "));
  EXPECT_THAT(failure.text, HasSubstr("\n> "));
  EXPECT_THAT(failure.text, HasSubstr("repeat with: kvoracle conform "));
}

TEST_F(JunitCommand, NothingJudgedIsNoPass) {
  const Finished vacuous = run({"conform", std::string(KVO_LOGS) + "/layered.jsonl.gz", "--law",
                                "order_of_independent_sequences"});
  EXPECT_EQ(vacuous.status, kExitUsage);
  const XmlElement none = read_xml(vacuous.out);
  EXPECT_EQ(none.attributes.at("tests"), none.attributes.at("errors"));
  EXPECT_THAT(vacuous.out, HasSubstr("<error message=\"nothing was compared or judged\""));
  const Finished empty = run({"conform", "/dev/null"});
  EXPECT_EQ(empty.status, kExitUsage);
  EXPECT_EQ(read_xml(empty.out).attributes.at("tests"), "0");
}

TEST_F(JunitCommand, AStateThatMustBeReachedIsATest) {
  const Finished done =
      run({"check", "layered", "positional.swa", "--cases", "4", "--require-states"});
  EXPECT_EQ(done.status, kExitDiffers);
  const XmlElement root = read_xml(done.out);
  const XmlElement& states = suite(root, "states that matter");
  EXPECT_EQ(states.attributes.at("tests"), "2");
  EXPECT_NE(states.attributes.at("failures"), "0");
}

TEST_F(JunitCommand, RunHasTimesUnlessTheyAreSwitchedOff) {
  const std::vector<std::string> words{"run", "--requests", "5", "--subject", "layered"};
  const XmlElement root = read_xml(run(words).out);
  const XmlElement& test = suite(root, "layered.vector@optimized").children.at(0);
  EXPECT_GT(std::stod(test.attributes.at("time")), 0);
  std::vector<std::string> without = words;
  without.emplace_back("--no-timings");
  const Finished plain = run(without);
  EXPECT_EQ(plain.out.find("time="), std::string::npos) << plain.out;
  EXPECT_EQ(run(without).out, plain.out);
}

TEST_F(JunitCommand, MutantsThatGetAwayAreFailures) {
  const Finished done = run({"mutants", "--contract", "layered", "--cases", "1"});
  EXPECT_EQ(done.status, kExitDiffers);
  const XmlElement root = read_xml(done.out);
  ASSERT_EQ(root.children.size(), 1U);
  EXPECT_EQ(root.children.at(0).attributes.at("name"), "layered.vector");
  EXPECT_NE(root.attributes.at("failures"), "0");
  EXPECT_THAT(done.out, HasSubstr("GOT AWAY"));
}

TEST_F(JunitCommand, ReportsAreFilesOfTheirOwn) {
  const auto refused = [&](const std::vector<std::string>& words) {
    const Finished done = run_kvoracle(words, {.folder = folder_.string()});
    EXPECT_EQ(done.status, kExitUsage) << done.out;
    EXPECT_THAT(done.err, HasSubstr("same file"));
  };
  refused({"check", "layered", "--json", "x", "--junit", "x"});
  refused({"check", "layered", "--output", "x", "--junit", "x"});
  refused({"mutants", "--json", "-", "--junit", "-"});
}

}  // namespace
}  // namespace kvo::tools
