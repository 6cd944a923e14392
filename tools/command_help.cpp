// tools/command_help.cpp: `kvoracle help`.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/command_text.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/exit_status.hpp"
#include "tools/manual_page.hpp"
#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

const CLI::App& command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : commands_of(app))
    if (command->get_name() == name) return *command;
  throw unknown_word("command", name, command_names(app));
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
