#include "tools/reports/json_file.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/describe/utf8.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

constexpr std::size_t kLineWidth = 100;

bool is_plain(const json::value& value) {
  return !value.is_array() && !value.is_object();
}

std::string plain_text(const json::value& value) {
  if (value.is_string()) return json::serialize(json::string(valid_utf8(value.get_string())));
  if (!value.is_double()) return json::serialize(value);
  const double number = value.get_double();
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

/// `column`: where the value begins on its line.
std::string text_of(const json::value& value, std::size_t depth, std::size_t column) {
  if (is_plain(value)) return plain_text(value);
  const std::size_t inside = 2 * (depth + 1);
  bool flat = true;
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const json::value& element : value.get_array()) {
      flat = flat && is_plain(element);
      parts.push_back(text_of(element, depth + 1, inside));
    }
  } else {
    for (const auto& [key, member] : value.get_object()) {
      const std::string name = json::serialize(json::string(key)) + ": ";
      flat = flat && is_plain(member);
      parts.push_back(name + text_of(member, depth + 1, inside + name.size()));
    }
  }
  const std::string_view brackets = value.is_array() ? "[]" : "{}";
  const std::string line = fmt::format("{}{}", brackets[0], fmt::join(parts, ", "));
  if (flat && column + line.size() < kLineWidth) return line + brackets[1];
  const std::string indent(inside, ' ');
  return fmt::format("{}\n{}{}\n{:{}}{}", brackets[0], indent, fmt::join(parts, ",\n" + indent), "",
                     inside - 2, brackets[1]);
}

}  // namespace

std::string json_text(const json::value& value) {
  return text_of(value, 0, 0) + "\n";
}

void write_json_file(const std::string& path, const json::value& value) {
  write_text_file(path, json_text(value));
}

}  // namespace kvo::tools
