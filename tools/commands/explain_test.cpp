// What `explain` knows: the rules of docs/rules, which the code cites, and names on the screen.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <boost/mp11/algorithm.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "properties/runner/verdict.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/rules_text.hpp"
#include "tools/reports/glossary.hpp"
#include "tools/testing/command_runner.hpp"
#include "tools/testing/command_test.hpp"

namespace kvo::tools {
namespace {

std::set<std::string> names() {
  std::set<std::string> all;
  for (const RuleText& rule : all_rules()) all.insert(rule.name);
  return all;
}

// The rules that the sources of a room cite; in the name of a test without the dash.
std::set<std::string> cited_in(const std::string& room) {
  static const std::regex kCited("(RS|ZF|OK|MR|MK|PX|GR|LC|HF|ML|EV)-?(A?[0-9]+)");
  std::set<std::string> cited;
  const std::filesystem::path root(KVO_SOURCE_ROOT);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room)) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp" && extension != ".md" && extension != ".cases")
      continue;
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
  EXPECT_EQ(all_rules().size(),
            19U + 74U + 88U + 10U + 57U + 28U + 31U + 79U + 55U + 76U + 48U + 43U + 78U)
      << "layered, provider, positional, sampling, snapshot, generation, views, prefix, groups, "
         "cells, dynamic, mlx_lm, events";
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

TEST(Explain, KnowsEveryRuleByItsNameHoweverItIsWritten) {
  std::vector<std::string> words{"explain"};
  for (const RuleText& rule : all_rules()) words.push_back(rule.name);
  for (const char* short_one : {"mra6", "MR-a6", "mr10"}) words.emplace_back(short_one);
  const Finished done = run_kvoracle(words);
  EXPECT_EQ(done.status, kExitConforms) << done.err;
}

TEST(Explain, KnowsEveryLaw) {
  std::vector<std::string> words{"explain"};
  for (const Law* law : contracts().laws()) words.emplace_back(law->name());
  EXPECT_EQ(run_kvoracle(words).status, kExitConforms);
}

TEST(Explain, KnowsEveryOutcomeAndErrorCode) {
  const auto knows = [](const std::string& name, std::string_view sort) {
    return std::ranges::any_of(
        terms(), [&](const Term& term) { return same_name(term.name, name) && term.sort == sort; });
  };
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Outcome>>([&](auto one) {
    EXPECT_TRUE(knows(enumerator_word(one.name), "outcome of a case")) << one.name;
  });
  for (auto code = static_cast<int>(Code::kFull); code <= static_cast<int>(Code::kThrew); ++code) {
    const std::string word = fail(static_cast<Code>(code)).code_text();
    EXPECT_TRUE(knows(word.substr(0, word.find(':')), "error code of an operation")) << word;
  }
}

// The titles of the tables that a command prints: cells are two blanks apart.
std::vector<std::string> titles_of(const std::string& out) {
  std::vector<std::string> titles;
  std::istringstream lines(out);
  bool begins = true;
  for (std::string line; std::getline(lines, line); begins = line.empty()) {
    if (!begins || line.find("  ") == std::string::npos) continue;
    static const std::regex kBetween(" {2,}|, ");
    titles.insert(titles.end(), std::sregex_token_iterator(line.begin(), line.end(), kBetween, -1),
                  {});
  }
  std::erase(titles, "");
  return titles;
}

using ExplainTables = CommandTest;

TEST_F(ExplainTables, KnowEveryTitleOnTheScreen) {
  for (const char* name : {"a.jsonl", "b.jsonl"})
    ASSERT_EQ(run("check layered --cases 30 --timings -o " + std::string(name)).status,
              kExitConforms);
  for (const std::string line :
       {"check layered --cases 12 --timings", "bench layered --quick --rounds 1 --all",
        "gate a.jsonl b.jsonl --all --slower 1000",
        "mutants layered.vector@mutant:clear_keeps_rows"}) {
    const std::vector<std::string> titles = titles_of(run(line).out);
    EXPECT_GT(titles.size(), 4U) << line;
    for (const std::string& title : titles)
      EXPECT_TRUE(std::ranges::any_of(
          terms(), [&](const Term& term) { return same_name(term.name, title); }))
          << line << " shows '" << title << "'";
  }
}

}  // namespace
}  // namespace kvo::tools
