#include "tools/json_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "reference/contract/describe/utf8.hpp"
#include "tools/console.hpp"

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

class Printer {
 public:
  void print(const json::value& value, std::size_t depth) {
    if (value.is_array()) {
      const auto& list = value.get_array();
      print_all(list, "[]", depth, std::all_of(list.begin(), list.end(), is_plain),
                [&](const json::value& element) { print(element, depth + 1); });
    } else if (value.is_object()) {
      const auto& object = value.get_object();
      const bool flat = std::all_of(object.begin(), object.end(),
                                    [](const auto& member) { return is_plain(member.value()); });
      print_all(object, "{}", depth, flat, [&](const json::key_value_pair& member) {
        out_ += json::serialize(json::string(member.key())) + ": ";
        print(member.value(), depth + 1);
      });
    } else {
      out_ += plain_text(value);
    }
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  template <class Parts, class PrintPart>
  void print_all(const Parts& parts, std::string_view brackets, std::size_t depth, bool flat,
                 const PrintPart& print_part) {
    out_ += brackets[0];
    const std::size_t begin = out_.size();
    // Tried on one line first; what does not fit is taken back.
    if (flat) {
      for (const auto& part : parts) {
        if (out_.size() > begin) out_ += ", ";
        print_part(part);
      }
      const std::size_t line = out_.rfind('\n') + 1;  // npos + 1 is 0, the first line
      if (out_.size() - line < kLineWidth) {
        out_ += brackets[1];
        return;
      }
      out_.resize(begin);
    }
    for (const auto& part : parts) {
      out_ += out_.size() > begin ? ",\n" : "\n";
      out_.append(2 * (depth + 1), ' ');
      print_part(part);
    }
    out_ += '\n';
    out_.append(2 * depth, ' ');
    out_ += brackets[1];
  }

  std::string out_;
};

}  // namespace

std::string json_text(const json::value& value) {
  Printer printer;
  printer.print(value, 0);
  return printer.text() + "\n";
}

void write_json_file(const std::string& path, const json::value& value) {
  write_text_file(path, json_text(value));
}

}  // namespace kvo::tools
