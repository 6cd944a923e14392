#include "tools/adapters/style.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <sstream>
#include <utility>

#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/describe/json.hpp"
#include "tools/adapters/project.hpp"
#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

constexpr std::string_view kFolder = "tools/adapters/styles/";
constexpr std::string_view kSuffix = ".style";
constexpr std::string_view kSection = "@@ ";

// Sections by their titles: "head", a kind of cache, an operation, "OPERATION last" where it
// differs as the last one, OPERATION.MEMBER for what it returns, "OPERATION CODE" for a refusal,
// "OPERATION done" for none; after "KIND " those of this kind alone; and those of the language
// (python.base).
using Style = std::map<std::string, std::string, std::less<>>;

// A title may be several, with ", " between them.
void read_sections(std::string_view text, Style& style) {
  std::vector<std::string*> sections;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (!line.starts_with(kSection)) {
      for (std::string* section : sections) *section += line;
      continue;
    }
    sections.clear();
    for (line = line.substr(kSection.size(), end - kSection.size() - 1); !line.empty();) {
      const std::size_t comma = std::min(line.find(", "), line.size());
      sections.push_back(&style[std::string(line.substr(0, comma))]);
      line.remove_prefix(std::min(comma + 2, line.size()));
    }
  }
}

const std::string& section_of(const Style& style, const std::string& title) {
  const auto found = style.find(title);
  if (found == style.end())
    throw UsageError(fmt::format("--style: it has no words for '{}': leave it out", title));
  return found->second;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

// "true false null [ ]" of the language.
std::string style_word(const Style& style, std::size_t number) {
  std::istringstream words(section_of(style, "literals"));
  std::string word;
  for (std::size_t i = 0; i <= number; ++i) words >> word;
  return word;
}

std::string filled(const Style& style, const std::string& title, const json::object& values);

std::string literal(const Style& style, const json::value& value, const char* tensor = "tensor") {
  if (value.is_bool()) return style_word(style, value.get_bool() ? 0 : 1);
  if (value.is_null()) return style_word(style, 2);
  if (value.is_array()) {
    std::vector<std::string> all;
    for (const json::value& one : value.get_array()) all.push_back(literal(style, one, tensor));
    return fmt::format("{}{}{}", style_word(style, 3), fmt::join(all, ", "), style_word(style, 4));
  }
  if (!value.is_object()) return json::serialize(value);
  if (value.get_object().contains("shape"))
    return trimmed(filled(style, tensor, value.get_object()));
  std::vector<std::string> all;
  for (const auto& [name, member] : value.get_object())
    all.push_back(
        fmt::format("{}: {}", json::serialize(json::string(name)), literal(style, member, tensor)));
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

// Members of records as RECORD.MEMBER.
void add_flat(const std::string& prefix, const json::object& from, json::object& to) {
  for (const auto& [name, value] : from) {
    const std::string place = prefix + std::string(name);
    if (value.is_object() && !value.get_object().contains("shape"))
      add_flat(place + ".", value.get_object(), to);
    else
      to[place] = value;
  }
}

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

/// "@{NAME=ALLOWED,ALLOWED|DEFAULT*}" in a template; "@{-NAME}" is a value that does not matter.
struct ValuePlace {
  explicit ValuePlace(std::string_view words) {
    elements = words.ends_with('*');
    if (elements) words.remove_suffix(1);
    const std::size_t bar = std::min(words.find('|'), words.size());
    if (bar < words.size()) otherwise = words.substr(bar + 1);
    const std::size_t equal = std::min(words.find('='), bar);
    name = words.substr(0, equal);
    if (equal < bar) allowed = words.substr(equal + 1, bar - equal - 1);
  }
  [[nodiscard]] bool allows(const std::string& word) const {
    return ("," + std::string(allowed) + ",").find("," + word + ",") != std::string::npos;
  }
  std::string_view name;
  std::string_view allowed;    ///< nothing is written, and the value is one of these
  std::string_view otherwise;  ///< for a value that is absent or null
  bool elements;               ///< of a list, without its brackets
};

// The template with its places replaced by values, as literals. Every value but null and false
// must have its place.
std::string filled_text(const Style& style, const std::string& title, std::string_view pattern,
                        const json::object& records) {
  json::object values;
  add_flat("", records, values);
  json::object unused = values;
  std::string out;
  while (true) {
    const std::size_t begin = pattern.find("@{");
    out += pattern.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const std::size_t end = pattern.find('}', begin);
    KVO_CHECK(end != std::string_view::npos);
    const ValuePlace place(pattern.substr(begin + 2, end - begin - 2));
    const json::value* value = values.if_contains(place.name);
    const bool given = value != nullptr && !value->is_null();
    if (place.name.starts_with('-')) {
      unused.erase(place.name.substr(1));
    } else if (!place.allowed.empty()) {
      if (given && !place.allows(text_of(*value)))
        throw UsageError(fmt::format("--style: it has no words for {} {} of '{}': leave it out",
                                     place.name, text_of(*value), title));
    } else if (!given) {
      out += place.otherwise.empty() && !place.elements ? style_word(style, 2)
                                                        : std::string(place.otherwise);
    } else if (place.elements) {
      std::vector<std::string> all;
      for (const json::value& one : value->as_array())  // of tensors also the words inf and nan
        all.push_back(one.is_string() ? std::string(one.get_string()) : literal(style, one));
      out += fmt::format("{}", fmt::join(all, ", "));
    } else {
      out += !out.empty() && out.back() == '"' ? text_of(*value) : literal(style, *value);
    }
    unused.erase(place.name);
    pattern.remove_prefix(end + 1);
  }
  for (const auto& [name, value] : unused)
    if (!value.is_null() && value != json::value(false))
      throw UsageError(fmt::format("--style: it has no place for '{}' of '{}': leave it out",
                                   std::string_view(name), title));
  return out;
}

std::string filled(const Style& style, const std::string& title, const json::object& values) {
  return filled_text(style, title, section_of(style, title), values);
}

// A section of the language with texts in its places.
std::string worded(const Style& style, const std::string& title,
                   std::initializer_list<std::pair<const char*, std::string>> texts) {
  std::string out = section_of(style, title);
  for (const auto& [place, text] : texts) boost::replace_all(out, place, text);
  return out;
}

// A call inside of a block.
std::string indented(const std::string& call) {
  return trimmed(boost::replace_all_copy(call, "\n    ", "\n        "));
}

std::string asserted(const Style& style, const std::string& expression, const json::value& value) {
  if (expression.find("@{json}") != std::string::npos)
    return boost::replace_all_copy(expression, "@{json}",
                                   json::serialize(json::string(json::serialize(value))));
  return worded(
      style, "equal",
      {{"@{expression}", trimmed(expression)}, {"@{value}", literal(style, value, "wanted")}});
}

Style style_of(std::string_view name, const std::string& kind) {
  Style style;
  const auto part = [](std::string_view file, std::string_view suffix) {
    return project_part(fmt::format("{}{}{}", kFolder, file, suffix));
  };
  read_sections(part(name, kSuffix), style);
  read_sections(part(trimmed(section_of(style, "base")), ".base"), style);
  Style own;
  for (const auto& [title, text] : style)
    if (title.starts_with(kind + " ")) own[title.substr(kind.size() + 1)] = text;
  own.merge(style);
  return own;
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
                        std::span<const Observation> returned, const std::string& heading) {
  const std::string kind = failing.header.kind->name();
  const Style style = style_of(style_name, kind);
  const auto config = failing.header.config ? write_record(failing.header.config) : json::object();
  const std::string& own = section_of(style, kind);
  const auto head = style.find("head");
  std::string text =
      filled_text(style, kind,
                  boost::replace_all_copy((head == style.end() ? "" : head->second) + own,
                                          "@{heading}", heading),
                  config);
  const std::string last(failing.steps.back().op.kind().name);
  for (std::size_t i = 0; i + 1 < failing.steps.size(); ++i) {
    const Op& op = failing.steps[i].op;
    const std::string name(op.kind().name);
    const std::string call = filled(style, name, write_record(op.arguments()));
    const auto& refusal = returned[i].error;
    text += refusal && !style.contains(name + " " + refusal->code_text())
                ? worded(style, "attempted", {{"@{call}", indented(call)}})
                : call;
  }
  const std::string call = filled(style, style.contains(last + " last") ? last + " last" : last,
                                  write_record(failing.steps.back().op.arguments()));
  if (const auto& error = returned.back().error) {
    const std::string word = error->code_text();
    if (const auto refusal = style.find(last + " " + word); refusal != style.end())
      text += call + worded(style, "holds", {{"@{expression}", trimmed(refusal->second)}});
    else
      text += worded(style, "refused", {{"@{call}", indented(call)}, {"@{code}", word}});
    return text + section_of(style, "end");
  }
  text += call;
  if (const auto done = style.find(last + " done"); done != style.end())
    text += worded(style, "holds", {{"@{expression}", trimmed(done->second)}});
  const json::object want = write_record(returned.back().returns);
  // What differs must be asserted.
  if (const std::size_t at = heading.find(last + ": "); at != std::string::npos) {
    const std::string place = heading.substr(at + last.size() + 2);
    const std::string member = place.substr(0, place.find_first_of(".[:"));
    if (want.contains(member)) (void)section_of(style, last + "." + member);
  }
  for (const auto& [member, value] : want) {
    const auto expression = style.find(last + "." + std::string(member));
    if (expression != style.end()) text += asserted(style, expression->second, value);
  }
  return text + section_of(style, "end");
}

}  // namespace kvo::tools
