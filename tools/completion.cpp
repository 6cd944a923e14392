#include "tools/completion.hpp"

#include <cctype>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/command_text.hpp"

namespace kvo::tools {
namespace {

/// A list of words as bash reads it as one.
std::string shell_words(const std::vector<std::string>& words) {
  std::string out = "'";
  for (const char c : fmt::format("{}", fmt::join(words, " ")))
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// " trace info": what a command is below the program.
std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? "" : path_of(*parent) + " " + app.get_name();
}

std::vector<const CLI::App*> all_below(const CLI::App& app) {
  std::vector<const CLI::App*> all;
  for (const CLI::App* command : commands_of(app)) {
    all.push_back(command);
    for (const CLI::App* below : all_below(*command)) all.push_back(below);
  }
  return all;
}

/// The statement that says what the value of an option is completed with.
std::string candidates(const CLI::Option& option, const KnownWords& known) {
  const std::vector<std::string> words = value_words(option);
  if (!words.empty()) return "candidates=" + shell_words(words);
  const std::string value = value_text(option);
  if (known.contains(value)) return "candidates=$known_" + value;
  if (value == "FILE" || value == "FOLDER") return "return";
  return "compopt +o default 2>/dev/null; return";
}

/// What stands behind an option.
std::string value_cases(const CLI::App& app, const KnownWords& known) {
  std::string out;
  for (const CLI::Option* option : options_of(app, false)) {
    if (option->get_items_expected_max() == 0) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : names_of(*option))
      patterns.push_back(shell_words({path_of(app) + " " + name}));
    out += fmt::format("    {}) {} ;;\n", fmt::join(patterns, " | "), candidates(*option, known));
  }
  return out;
}

/// What stands anywhere else.
std::string word_case(const CLI::App& app, const KnownWords& known) {
  std::vector<std::string> options;
  for (const CLI::Option* option : options_of(app, false))
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  const auto positional = options_of(app, true);
  const std::string rest = positional.empty() ? "candidates=" + shell_words(command_names(app))
                                              : candidates(*positional.front(), known);
  return fmt::format("        {}) if [[ $cur == -* ]]; then candidates={}; else {}; fi ;;\n",
                     shell_words({path_of(app)}), shell_words(options), rest);
}

constexpr std::string_view kScript = R"(# Made by `@NAME@ completion bash`.
@FUNCTION@() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word path='' prev='' cur candidates=''
@KNOWN@  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  cur=${words[${#words[@]}-1]}
  ((${#words[@]} > 1)) && prev=${words[${#words[@]}-2]}
  for word in "${words[@]:1:${#words[@]}-2}"; do
    case "$path $word" in
      @PATHS@) path+=" $word" ;;
    esac
  done
  if [[ $cur == --*=* ]]; then
    prev=${cur%%=*}
    cur=${cur#*=}
  fi
  COMPREPLY=()
  case "$path $prev" in
@VALUES@    *)
      case $path in
@WORDS@      esac
      ;;
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$cur"))
  # Only what stands behind the last word break is replaced on the line, an @ with it.
  local head=${cur%"${cur##*["$COMP_WORDBREAKS"]}"}
  head=${head%@}
  COMPREPLY=("${COMPREPLY[@]#"$head"}")
}
complete -o default -F @FUNCTION@ @NAME@
)";

}  // namespace

std::string bash_completion(const CLI::App& root, const KnownWords& known) {
  std::string function = "_" + root.get_name();
  for (char& c : function)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  std::string lists;
  for (const auto& [name, words] : known)
    lists += fmt::format("  local known_{}={}\n", name, shell_words(words));
  std::vector<std::string> paths;
  std::string values = value_cases(root, known);
  std::string words = word_case(root, known);
  for (const CLI::App* command : all_below(root)) {
    paths.push_back(shell_words({path_of(*command)}));
    values += value_cases(*command, known);
    words += word_case(*command, known);
  }
  std::string script(kScript);
  for (const auto& [mark, text] :
       std::map<std::string, std::string>{{"@NAME@", root.get_name()},
                                          {"@FUNCTION@", function},
                                          {"@KNOWN@", lists},
                                          {"@PATHS@", fmt::format("{}", fmt::join(paths, " | "))},
                                          {"@VALUES@", values},
                                          {"@WORDS@", words}})
    for (std::size_t at = 0; (at = script.find(mark, at)) != std::string::npos; at += text.size())
      script.replace(at, mark.size(), text);
  return script;
}

}  // namespace kvo::tools
