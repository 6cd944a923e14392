// tools/commands/text.hpp: the declared commands and options as text, and the help made of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kvo::tools {

/// "kvoracle trace info"
[[nodiscard]] std::string full_name(const CLI::App& app);
/// `kvoracle` itself, from any command below it.
[[nodiscard]] const CLI::App& root_of(const CLI::App& app);
/// The commands right below one.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& app);
[[nodiscard]] std::vector<std::string> command_names(const CLI::App& app);
/// The options of one command that help shows, or what it takes without a name.
[[nodiscard]] std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional);

/// The words that an option takes if they are few: "original", "documented"; else nothing.
[[nodiscard]] std::vector<std::string> value_words(const CLI::Option& option);
/// What an option takes: "FILE", "N", "original|documented"; empty for a flag.
[[nodiscard]] std::string value_text(const CLI::Option& option);
/// "-o, --output FILE", "subjects .."
[[nodiscard]] std::string option_text(const CLI::Option& option);
/// What an option is for, and its default: "the same seed gives the same cases [1]"
[[nodiscard]] std::string meaning_text(const CLI::Option& option);

/// Lines of help no wider than the terminal behind standard output, else than 100 columns.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();
/// The help of one command, whichever was given on the command line.
[[nodiscard]] std::string help_text(const CLI::App& app);

}  // namespace kvo::tools
