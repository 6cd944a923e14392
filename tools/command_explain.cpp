// tools/command_explain.cpp: `kvoracle explain`: what a numbered rule says.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/erase.hpp>
#include <fmt/format.h>

#include "properties/campaign/contracts.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/exit_status.hpp"
#include "tools/rules_text.hpp"
#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

// "ok55" and "OK-55" are the same rule, and so are "mra6" and "MR-A6".
std::string normal(const std::string& word) {
  return boost::to_upper_copy(boost::erase_all_copy(word, "-"));
}

const RuleText& rule_named(const std::string& word) {
  const std::vector<RuleText>& all = all_rules();
  const auto found = std::ranges::find_if(
      all, [&](const RuleText& rule) { return normal(rule.name) == normal(word); });
  if (found != all.end()) return *found;
  std::vector<std::string> known;
  for (const RuleText& rule : all) known.push_back(rule.name);
  throw UsageError(
      fmt::format("no contract has a rule '{}'{}", printable(word), did_you_mean(word, known)));
}

// The quirks that the followed system has there, each once.
std::string quirks_of(const Contracts& contracts, const std::string& rule) {
  std::string text;
  for (const CacheKind* kind : contracts.kinds())
    for (const QuirkInfo& quirk : kind->quirks) {
      const std::string line =
          fmt::format("  quirk of the original, {}: {}\n", quirk.name(), quirk.sentence);
      if (quirk.rule == rule && text.find(line) == std::string::npos) text += line;
    }
  return text;
}

int run_explain(const Contracts& contracts, const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const RuleText& rule = rule_named(word);
    out += fmt::format("{}{} ({})\n{}{}", out.empty() ? "" : "\n", rule.name, rule.contract,
                       rule.text, quirks_of(contracts, rule.name));
  }
  print_out(out);
  return kExitConforms;
}

}  // namespace

Run declare_explain(CLI::App& app, const Contracts& contracts) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("rules", *words, "names of rules, for instance OK-55")
      ->type_name("RULE")
      ->required();
  return [&contracts, words] { return run_explain(contracts, *words); };
}

}  // namespace kvo::tools
