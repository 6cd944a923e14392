#include "tools/commands/text.hpp"

#include <algorithm>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool /*positional*/) const override {
    return entry(option_text(*option), meaning_text(*option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }
  std::string make_footer(const CLI::App* app) const override {
    return app->get_footer().empty() ? "" : wrapped(app->get_footer(), columns(), 0) + "\n";
  }

 private:
  static constexpr std::size_t kNamesWidth = 30;

  static std::size_t columns() {
    constexpr std::size_t kWide = 100;
    constexpr std::size_t kNarrow = kNamesWidth + 20;
    return std::clamp(output_columns(), kNarrow, kWide);
  }
  static std::string entry(const std::string& names, const std::string& text) {
    const bool fits = names.size() + 4 <= kNamesWidth;
    return fmt::format("  {:{}}{}\n", fits ? names : names + "\n" + std::string(kNamesWidth, ' '),
                       fits ? kNamesWidth - 2 : 0,
                       wrapped(text, columns(), kNamesWidth, kNamesWidth));
  }
};

}  // namespace

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + app.get_name();
}

const CLI::App& root_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app : root_of(*app.get_parent());
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  return app.get_options([&](const CLI::Option* option) {
    return option->get_positional() == positional && !option->get_group().empty();
  });
}

std::vector<std::string> value_words(const CLI::Option& option) {
  // A check for words adds "{a,b}" to the name of the type.
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  std::vector<std::string> words;
  if (open == std::string::npos) return words;
  const std::string list = type.substr(open + 1, type.find('}') - open - 1);
  return boost::split(words, list, boost::is_any_of(","));
}

std::string value_text(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  if (const auto words = value_words(option); !words.empty())
    return fmt::format("{}", fmt::join(words, "|"));
  // Other checks add their text after a colon.
  const std::string type = option.get_type_name();
  const std::string word = type.substr(0, type.find(':'));
  return word == "INT" || word == "UINT" ? "N" : word;
}

std::string option_text(const CLI::Option& option) {
  const bool many = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  if (option.get_positional()) return option.get_name(true, false) + (many ? " .." : "");
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const std::string value = value_text(option);
  return fmt::format("{}{}{}{}", fmt::join(names, ", "), value.empty() ? "" : " ", value,
                     many ? " .." : "");
}

std::string meaning_text(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  const bool takes = option.get_items_expected_max() > 0;
  return option.get_description() + (takes && !value.empty() ? " [" + value + "]" : "");
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("Positionals", "Arguments");
  formatter->label("SUBCOMMAND", "COMMAND");
  return formatter;
}

std::string help_text(const CLI::App& app) {
  std::string text =
      app.get_formatter()->make_help(&app, full_name(app), CLI::AppFormatMode::Normal);
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace kvo::tools
