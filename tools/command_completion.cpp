// tools/command_completion.cpp: `kvoracle completion`.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "properties/campaign/contracts.hpp"
#include "tools/command_text.hpp"
#include "tools/commands.hpp"
#include "tools/completion.hpp"
#include "tools/console.hpp"
#include "tools/exit_status.hpp"
#include "tools/rules_text.hpp"
#include "tools/selection.hpp"
#include "traces/formats/formats.hpp"

namespace kvo::tools {
namespace {

KnownWords known_words(const CLI::App& root, const Contracts& contracts) {
  KnownWords known;
  known["COMMAND"] = command_names(root);
  const std::vector<std::string>& kinds = known["CONTRACT"] = kind_words(contracts);
  std::vector<std::string>& mutants = known["MUTANT"] = kinds;
  for (const Mutant& mutant : contracts.mutants()) mutants.push_back(mutant.subject.name());
  std::vector<std::string>& subjects = known["SUBJECT"] = mutants;
  for (const Subject* subject : contracts.subjects()) subjects.push_back(subject->name());
  for (const Law* law : contracts.laws()) known["LAW"].emplace_back(law->name());
  for (const traces::Format& format : traces::formats()) known["FORMAT"].emplace_back(format.name);
  for (const RuleText& rule : all_rules()) known["RULE"].push_back(rule.name);
  return known;
}

}  // namespace

Run declare_completion(CLI::App& app, const Contracts& contracts) {
  // Nothing is chosen by it yet: there is a script for bash only.
  app.add_option("shell", "the shell that reads it: bash")
      ->check(CLI::IsMember(std::vector<std::string>{"bash"}))
      ->required();
  return [&app, &contracts] {
    print_out(bash_completion(root_of(app), known_words(root_of(app), contracts)));
    return kExitConforms;
  };
}

}  // namespace kvo::tools
