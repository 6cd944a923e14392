#include "tools/adapters/style.hpp"

#include <algorithm>
#include <map>

#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/json.hpp"
#include "tools/adapters/program.hpp"
#include "tools/adapters/project.hpp"
#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

constexpr std::string_view kFolder = "tools/adapters/styles/";
constexpr std::string_view kSuffix = ".style";
constexpr std::string_view kSection = "@@ ";

// Sections by their titles: a kind of cache, an operation, OPERATION.MEMBER for what it returns,
// "OPERATION CODE" for a refusal that is no exception.
using Style = std::map<std::string, std::string, std::less<>>;

Style read_style(std::string_view text) {
  Style style;
  std::string* section = nullptr;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.starts_with(kSection))
      section = &style[std::string(line.substr(kSection.size(), end - kSection.size() - 1))];
    else if (section != nullptr)
      *section += line;
  }
  return style;
}

const std::string& section_of(const Style& style, const std::string& title) {
  const auto found = style.find(title);
  if (found == style.end())
    throw UsageError(fmt::format("--style: it has no words for '{}': leave it out", title));
  return found->second;
}

// The template with {NAME} and {NAME|DEFAULT} replaced by the values, as literals. Every value but
// null must have its place.
std::string filled(const std::string& title, std::string_view pattern, const json::object& values) {
  std::string out;
  json::object unused = values;
  while (true) {
    const std::size_t begin = pattern.find('{');
    out += pattern.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const std::size_t end = pattern.find('}', begin);
    const std::string_view place = pattern.substr(begin + 1, end - begin - 1);
    const std::size_t bar = std::min(place.find('|'), place.size());
    const std::string_view name = place.substr(0, bar);
    const json::value* value = values.if_contains(name);
    if (value != nullptr && !value->is_null())
      out += pattern[begin - 1] == '"' ? json::serialize(*value) : python_literal(*value);
    else
      out += bar < place.size() ? place.substr(bar + 1) : "None";
    unused.erase(name);
    pattern.remove_prefix(end + 1);
  }
  for (const auto& [name, value] : unused)
    if (!value.is_null() && value != json::value(false))
      throw UsageError(fmt::format("--style: it has no place for '{}' of '{}': leave it out",
                                   std::string_view(name), title));
  return out;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace

std::vector<std::string> style_names() {
  std::vector<std::string> names;
  for (const traces::EmbeddedFile& file : project_parts())
    if (file.name.starts_with(kFolder) && file.name.ends_with(kSuffix))
      names.emplace_back(
          file.name.substr(kFolder.size(), file.name.size() - kFolder.size() - kSuffix.size()));
  return names;
}

std::string styled_test(std::string_view style_name, const traces::Case& failing,
                        const json::object& want, const std::string& heading) {
  const std::string file = fmt::format("{}{}{}", kFolder, style_name, kSuffix);
  const Style style =
      read_style(std::ranges::find(project_parts(), file, &traces::EmbeddedFile::name)->text);
  const std::string kind = failing.header.kind->name();
  json::object config =
      failing.header.config ? write_record(failing.header.config) : json::object();
  std::string text = section_of(style, kind);
  if (const std::size_t at = text.find("{heading}"); at != std::string::npos)
    text.replace(at, std::string_view("{heading}").size(), heading);
  text = filled(kind, text, config);
  std::string call;
  for (const traces::Step& step : failing.steps) {
    const std::string name(step.op.kind().name);
    text += call;
    call = filled(name, section_of(style, name), write_record(step.op.arguments()));
  }
  const std::string last(failing.steps.back().op.kind().name);
  if (const json::value* code = want.if_contains("error")) {
    const std::string word(code->as_string());
    const auto refusal = style.find(last + " " + word);
    if (refusal != style.end())
      return text + call + "    assert " + trimmed(refusal->second) + "\n";
    boost::replace_all(call, "\n    ", "\n        ");
    return fmt::format(
        "{}    try:\n    {}    except Exception:\n        return\n"
        "    raise AssertionError(\"the call should be refused: {}\")\n",
        text, call, word);
  }
  text += call;
  // What differs must be asserted.
  if (const std::size_t at = heading.find(last + ": "); at != std::string::npos) {
    const std::string place = heading.substr(at + last.size() + 2);
    const std::string member = place.substr(0, place.find_first_of(".[:"));
    if (want.contains(member)) (void)section_of(style, last + "." + member);
  }
  for (const auto& [member, value] : want) {
    const auto expression = style.find(last + "." + std::string(member));
    if (expression == style.end()) continue;
    text +=
        fmt::format("    assert {} == {}\n", trimmed(expression->second), python_literal(value));
  }
  return text;
}

}  // namespace kvo::tools
