// tools/commands/help.cpp: `kvoracle help`, and the manual page.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>

#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/text.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

const CLI::App& command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : commands_of(app))
    if (command->get_name() == name) return *command;
  if (commands_of(app).empty())
    throw UsageError{fmt::format("{} has no command '{}'", full_name(app), printable(name, 32))};
  throw unknown_word("command", name, command_names(app));
}

/// Text in which nothing means anything to troff.
std::string plain(std::string text) {
  boost::replace_all(text, "\\", "\\e");
  boost::replace_all(text, "-", "\\-");
  for (const std::string mark : {".", "'"}) {
    if (text.starts_with(mark)) text.insert(0, "\\&");
    boost::replace_all(text, "\n" + mark, "\n\\&" + mark);
  }
  return text;
}

std::string manual_option(const CLI::Option& option) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(option_text(option)),
                     plain(meaning_text(option)));
}

std::string manual_options(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : options_of(app, true)) out += manual_option(*option);
  for (const std::string& group : app.get_groups()) {
    std::string lines;
    for (const CLI::Option* option : options_of(app, false))
      if (option->get_group() == group) lines += manual_option(*option);
    const bool titled = group != "Options" && !lines.empty();
    out += (titled ? ".PP\n" + plain(group) + ":\n" : "") + lines;
  }
  return out;
}

std::string usage_text(const CLI::App& app) {
  std::string text = full_name(app) + " [OPTIONS]";
  for (const CLI::Option* option : options_of(app, true)) {
    const std::string taken = option_text(*option);
    text += option->get_required() ? " " + taken : " [" + taken + "]";
  }
  return text;
}

/// The command, or those below it.
std::string manual_commands(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : commands_of(app)) out += manual_commands(*command);
  if (!out.empty()) return out;
  return fmt::format(".SS {}\n{}\n{}", plain(usage_text(app)), plain(app.get_description()),
                     manual_options(app));
}

/// All commands below `root` as a page for man(1), with the macros of man(7).
std::string manual_page(const CLI::App& root) {
  const std::string& name = root.get_name();
  return fmt::format(
      ".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH OPTIONS\n{}.SH COMMANDS\n{}.SH NOTES\n{}\n",
      boost::to_upper_copy(name), plain(name), kVersion, plain(name), plain(root.get_description()),
      plain(name), manual_options(root), manual_commands(root), plain(root.get_footer()));
}

}  // namespace

Run declare_help(CLI::App& app, const Contracts& /*contracts*/) {
  struct Arguments {
    std::vector<std::string> words;
    bool manual = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("command", arguments->words, "the command, as check, or trace info")
      ->type_name("COMMAND");
  app.add_flag("--man", arguments->manual, "all commands, as a page for man(1)");
  return [&app, arguments] {
    const CLI::App* meant = &root_of(app);
    for (const std::string& word : arguments->words) meant = &command_named(*meant, word);
    print_out(arguments->manual ? manual_page(root_of(app)) : help_text(*meant));
    return kExitConforms;
  };
}

}  // namespace kvo::tools
