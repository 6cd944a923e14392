// tools/commands/completion.cpp: `kvoracle completion`: a script for bash, which asks this command
// what may stand at the end of a line.
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/split.hpp>

#include "properties/campaign/contracts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/text.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/glossary.hpp"
#include "traces/formats/formats.hpp"

namespace kvo::tools {
namespace {

/// Instead of words: there are none to offer, not even names of files.
constexpr const char* kNothing = "-";

constexpr std::string_view kScript = R"(# Made by `@NAME@ completion bash`.
@FUNCTION@() {
  local line=${COMP_LINE:0:COMP_POINT} cur head
  mapfile -t COMPREPLY < <("${1/#\~\//$HOME/}" completion bash --line="$line" 2>/dev/null)
  if [[ ${COMPREPLY[0]} == @NOTHING@ ]]; then
    COMPREPLY=()
    compopt +o default 2>/dev/null
  fi
  # Bash replaces only the text after the last word break, which can be an @.
  cur=${line##*[[:space:]]}
  [[ $cur == --*=* ]] && cur=${cur#*=}
  head=${cur%"${cur##*["$COMP_WORDBREAKS"]}"}
  head=${head%@}
  COMPREPLY=("${COMPREPLY[@]#"$head"}")
}
complete -o default -F @FUNCTION@ @NAME@
)";

std::string bash_script(const std::string& name) {
  std::string function = "_" + name;
  std::ranges::replace_if(
      function, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  std::string script(kScript);
  boost::replace_all(script, "@NAME@", name);
  boost::replace_all(script, "@FUNCTION@", function);
  boost::replace_all(script, "@NOTHING@", kNothing);
  return script;
}

/// By what an option takes ("SUBJECT", "LAW"): the words that there are.
std::map<std::string, std::vector<std::string>> known_words(const CLI::App& root,
                                                            const Contracts& contracts) {
  std::map<std::string, std::vector<std::string>> known{{"FILE", {}}, {"FOLDER", {}}};
  known["COMMAND"] = command_names(root);
  const std::vector<std::string>& kinds = known["CONTRACT"] = kind_words(contracts);
  std::vector<std::string>& mutants = known["MUTANT"] = kinds;
  for (const Mutant& mutant : contracts.mutants()) mutants.push_back(mutant.subject.name());
  std::vector<std::string>& subjects = known["SUBJECT"] = mutants;
  for (const Subject* subject : contracts.subjects()) subjects.push_back(subject->name());
  for (const Law* law : contracts.laws()) known["LAW"].emplace_back(law->name());
  std::vector<std::string>& lists = known["LIST"] = kinds;
  lists.insert(lists.end(), list_names().begin(), list_names().end());
  for (const traces::Format& format : traces::formats()) known["FORMAT"].emplace_back(format.name);
  // Bash completes one word at a time.
  for (Meaning& meaning : meanings(contracts))
    if (meaning.name.find(' ') == std::string::npos)
      known["NAME"].push_back(std::move(meaning.name));
  return known;
}

/// What an option takes. For files there are no words: bash knows them.
std::vector<std::string> values_of(const CLI::Option& option, const CLI::App& root,
                                   const Contracts& contracts) {
  if (auto words = value_words(option); !words.empty()) return words;
  const auto known = known_words(root, contracts);
  const auto found = known.find(value_text(option));
  return found != known.end() ? found->second : std::vector<std::string>{kNothing};
}

/// The words that may stand at the end of a line.
std::vector<std::string> offered(const CLI::App& root, const Contracts& contracts,
                                 const std::string& line) {
  std::vector<std::string> words;
  boost::split(words, line, boost::is_space(), boost::token_compress_on);
  const CLI::App* app = &root;
  for (std::size_t i = 1; i + 1 < words.size(); ++i)
    for (const CLI::App* command : commands_of(*app))
      if (command->get_name() == words[i]) app = command;
  std::string current = words.back();
  std::string previous = words.size() > 1 ? words[words.size() - 2] : "";
  if (const std::size_t equals = current.find('=');
      current.starts_with("--") && equals < current.size()) {
    previous = current.substr(0, equals);
    current.erase(0, equals + 1);
  }
  std::vector<std::string> all;
  const auto positional = options_of(*app, true);
  const CLI::Option* option =
      previous.starts_with("-") ? app->get_option_no_throw(previous) : nullptr;
  if (option != nullptr && option->get_items_expected_max() > 0)
    all = values_of(*option, root, contracts);
  else if (current.starts_with("-"))
    for (const CLI::Option* one : options_of(*app, false))
      for (const std::string& name : one->get_lnames()) all.push_back("--" + name);
  else if (positional.empty())
    all = command_names(*app);
  else
    all = values_of(*positional.front(), root, contracts);
  std::erase_if(
      all, [&](const std::string& word) { return word != kNothing && !word.starts_with(current); });
  return all;
}

}  // namespace

Run declare_completion(CLI::App& app, const Contracts& contracts) {
  // Nothing is chosen by it yet: there is a script for bash only.
  app.add_option("shell", "the shell that reads it: bash")
      ->check(CLI::IsMember(std::vector<std::string>{"bash"}))
      ->required();
  const auto line = std::make_shared<std::string>();
  app.add_option("--line", *line, "print the words that may stand at its end, for the script")
      ->group("");
  return [&app, &contracts, line] {
    const CLI::App& root = root_of(app);
    if (line->empty())
      print_out(bash_script(root.get_name()));
    else
      for (const std::string& word : offered(root, contracts, *line)) print_out(word + "\n");
    return kExitConforms;
  };
}

}  // namespace kvo::tools
