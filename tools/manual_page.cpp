#include "tools/manual_page.hpp"

#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "tools/command_text.hpp"
#include "tools/version.hpp"

namespace kvo::tools {
namespace {

/// Text in which nothing means anything to troff.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else
      out += c == '-' ? std::string("\\-") : std::string(1, c);
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
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

}  // namespace

std::string manual_page(const CLI::App& root) {
  const std::string& name = root.get_name();
  return fmt::format(
      ".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH OPTIONS\n{}.SH COMMANDS\n{}.SH NOTES\n{}\n",
      upper(name), plain(name), kVersion, plain(name), plain(root.get_description()), plain(name),
      manual_options(root), manual_commands(root), plain(root.get_footer()));
}

}  // namespace kvo::tools
