// The rules of docs/rules: what `explain` prints, and that the code cites rules that exist. The log
// of docs/engines.md.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exit_status.hpp"
#include "tools/rules_text.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::set<std::string> names() {
  std::set<std::string> all;
  for (const RuleText& rule : all_rules()) all.insert(rule.name);
  return all;
}

// The rules that the sources of a room cite; in the name of a test without the dash.
std::set<std::string> cited_in(const std::string& room) {
  static const std::regex kCited("(RS|ZF|OK|MR|MK|PX|LC)-?(A?[0-9]+)");
  std::set<std::string> cited;
  const std::filesystem::path root(KVO_SOURCE_ROOT);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room)) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp" && extension != ".md") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const std::string all = text.str();
    for (std::sregex_iterator match(all.begin(), all.end(), kCited), end; match != end; ++match)
      cited.insert(match->str(1) + "-" + match->str(2));
  }
  return cited;
}

TEST(Rules, AreReadParagraphByParagraph) {
  const auto rules = read_rules("c", "# A\n\ntext\n\n**X-1** one\ntwo\n\nno rule\n**X-2** three");
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].name, "X-1");
  EXPECT_EQ(rules[0].text, "one\ntwo\n");
  EXPECT_EQ(rules[1].text, "three\n");
}

TEST(Rules, StandOnceEach) {
  EXPECT_EQ(names().size(), all_rules().size());
  EXPECT_EQ(all_rules().size(), 19U + 74U + 88U + 10U + 57U + 28U + 31U + 78U + 76U)
      << "layered, provider, positional, sampling, snapshot, generation, views, prefix, cells";
  for (const RuleText& rule : all_rules()) EXPECT_GT(rule.text.size(), 20U) << rule.name;
}

TEST(Rules, EveryCitedOneExists) {
  const std::set<std::string> known = names();
  for (const char* room : {"reference", "optimized", "cuda", "properties", "docs"})
    for (const std::string& name : cited_in(room))
      EXPECT_TRUE(known.contains(name)) << room << " cites " << name;
}

TEST(Rules, EveryOneIsCited) {
  std::set<std::string> cited;
  for (const char* room : {"reference", "optimized", "properties"}) cited.merge(cited_in(room));
  for (const std::string& name : names())
    EXPECT_TRUE(cited.contains(name)) << name << " is cited by no source";
}

TEST(Explain, PrintsTheRuleAndItsQuirks) {
  const Finished done = run_kvoracle({"explain", "ZF-40", "rs4"});
  EXPECT_EQ(done.status, kExitConforms) << done.err;
  EXPECT_THAT(done.out, StartsWith("ZF-40 (provider)\n"));
  EXPECT_THAT(done.out, HasSubstr("quirk of the original, truncate_extends: "));
  EXPECT_THAT(done.out, HasSubstr("\nRS-4 (layered)\n"));
}

TEST(Explain, KnowsEveryRuleByItsNameHoweverItIsWritten) {
  std::vector<std::string> words{"explain"};
  for (const RuleText& rule : all_rules()) words.push_back(rule.name);
  for (const char* short_one : {"mra6", "MR-a6", "mr10"}) words.emplace_back(short_one);
  const Finished done = run_kvoracle(words);
  EXPECT_EQ(done.status, kExitConforms) << done.err;
}

TEST(Explain, RefusesWhatIsNoRule) {
  const Finished done = run_kvoracle({"explain", "RS-400"});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, HasSubstr("no contract has a rule 'RS-400'"));
  EXPECT_EQ(run_kvoracle({"explain"}).status, kExitUsage);
}

TEST(Documents, LogOfTheEnginesPageConforms) {
  std::ifstream page(KVO_SOURCE_ROOT "/docs/engines.md");
  std::string log;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("{\"")) log += line + '\n';
  const Finished done = run_kvoracle({"conform", "-"}, {.input = log});
  EXPECT_EQ(done.status, kExitConforms) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("16 operations, 0 mismatches"));
}

}  // namespace
}  // namespace kvo::tools
