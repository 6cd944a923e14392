// tools/commands/explain.cpp: `kvoracle explain`: what a name on the screen means.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/contracts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/glossary.hpp"

namespace kvo::tools {
namespace {

// "ok55" and "OK-55" are the same rule.
std::string explained(const std::vector<Meaning>& all, const std::string& word) {
  std::string text;
  for (const Meaning& meaning : all)
    if (same_name(meaning.name, word))
      text += fmt::format("{}{} ({})\n{}", text.empty() ? "" : "\n", meaning.name, meaning.sort,
                          meaning.text);
  return text;
}

UsageError unknown_name(const std::vector<Meaning>& all, const std::string& word) {
  std::vector<std::string> known;
  for (const Meaning& meaning : all) known.push_back(meaning.name);
  const std::string hint = did_you_mean(word, known);
  return UsageError(fmt::format(
      "nothing is called '{}'{}", printable(word),
      hint.empty() ? fmt::format("; there are rules, laws, states, quirks, mutants, caches, "
                                 "columns and error codes ({} list)",
                                 program_name())
                   : hint));
}

int run_explain(const Contracts& contracts, const std::vector<std::string>& words) {
  const std::vector<Meaning> all = meanings(contracts);
  // A name of several words: rows judged.
  std::string out = explained(all, fmt::format("{}", fmt::join(words, " ")));
  if (out.empty())
    for (const std::string& word : words) {
      const std::string text = explained(all, word);
      if (text.empty()) throw unknown_name(all, word);
      out += (out.empty() ? "" : "\n") + text;
    }
  print_out(out);
  return kExitConforms;
}

}  // namespace

Run declare_explain(CLI::App& app, const Contracts& contracts) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("names", *words,
                 "a rule (OK-55), law, state, quirk, mutant, cache, column (rows judged), outcome "
                 "or error code")
      ->type_name("NAME")
      ->required();
  return [&contracts, words] { return run_explain(contracts, *words); };
}

}  // namespace kvo::tools
