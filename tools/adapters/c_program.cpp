// A failing script as a program in C, which is one in C++ as well.
#include "tools/adapters/c_program.hpp"

#include <cmath>
#include <span>
#include <string_view>

#include <boost/algorithm/string/replace.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/json.hpp"
#include "tools/adapters/library_values.hpp"
#include "tools/adapters/project.hpp"

namespace kvo::tools {
namespace {

std::string c_text(std::string_view words) {
  std::string out = "\"";
  for (const char one : words) {
    const auto code = static_cast<unsigned char>(one);
    if (one == '"' || one == '\\')
      out += fmt::format("\\{}", one);
    else if (code < 0x20 || code > 0x7e || one == '?')
      out += fmt::format("\\{:03o}", code);
    else
      out += one;
  }
  return out + "\"";
}

std::string c_integer(std::int64_t value) {
  if (value == INT64_MIN) return "INT64_MIN";
  const bool is_int = value >= INT32_MIN && value <= INT32_MAX;
  return fmt::format("{}{}", value, is_int ? "" : "LL");
}

std::string c_number(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-NAN" : "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  return fmt::format("{:a}", value);
}

/// Writes values as expressions, with the arrays that these refer to before them.
class Writer {
 public:
  // "name[] = {..}" of one value a member.
  void members(const std::string& name, std::span<const kvoracle_value> values) {
    arrays_ += array("kvoracle_value", name, expressions(values));
  }
  [[nodiscard]] const std::string& arrays() const { return arrays_; }

 private:
  static std::string array(std::string_view type, std::string_view name,
                           const std::vector<std::string>& elements) {
    const bool empty = elements.empty();
    return fmt::format("    const {} {}[] = {{{}}};\n", type, name,
                       !empty                     ? fmt::format("{}", fmt::join(elements, ", "))
                       : type == "kvoracle_value" ? "absent"
                                                  : "0");
  }
  template <class Element, class Text>
  std::string added(std::string_view type, std::span<const Element> elements, Text text) {
    std::vector<std::string> all;
    for (const Element& one : elements) all.push_back(text(one));
    const std::string name = fmt::format("array{}", ++count_);
    arrays_ += array(type, name, all);
    return name;
  }
  std::vector<std::string> expressions(std::span<const kvoracle_value> values) {
    std::vector<std::string> all;
    for (const kvoracle_value& one : values) all.push_back(expression(one));
    return all;
  }
  std::string expression(const kvoracle_value& value) {
    switch (value.type) {
      case KVORACLE_ABSENT:
        return "absent";
      case KVORACLE_BOOLEAN:
        return fmt::format("integer(KVORACLE_BOOLEAN, {})", value.as.integer);
      case KVORACLE_INTEGER:
        return fmt::format("integer(KVORACLE_INTEGER, {})", c_integer(value.as.integer));
      case KVORACLE_NUMBER:
        return fmt::format("number({})", c_number(value.as.number));
      case KVORACLE_TEXT:
        return fmt::format("text({}, {})", c_text({value.as.text.data, value.as.text.size}),
                           value.as.text.size);
      case KVORACLE_TENSOR:
        return tensor(value.as.tensor);
      case KVORACLE_INTEGERS:
        return fmt::format(
            "integers({}, {})",
            added("int64_t", std::span(value.as.integers.data, value.as.integers.size), c_integer),
            value.as.integers.size);
      default: {
        const auto all = expressions(std::span(value.as.list.data, value.as.list.size));
        const std::string name = fmt::format("array{}", ++count_);
        arrays_ += array("kvoracle_value", name, all);
        return fmt::format("list({}, {}, {})",
                           value.type == KVORACLE_LIST ? "KVORACLE_LIST" : "KVORACLE_RECORD", name,
                           value.as.list.size);
      }
    }
  }
  std::string tensor(const kvoracle_tensor& from) {
    Tensor own;
    own.shape.assign(from.shape, from.shape + from.axes);
    own.dtype = static_cast<DType>(from.dtype);
    const std::size_t bytes = dtype_bytes(own.dtype);
    std::vector<std::uint32_t> bits(static_cast<std::size_t>(*element_count(own.shape)));
    const auto* data = static_cast<const std::byte*>(from.data);
    own.bytes.assign(data, data + bits.size() * bytes);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = element_bits(own, i);
    const std::string shape = added("int64_t", std::span(from.shape, from.axes), c_integer);
    const std::string elements = added(bytes == 4   ? "uint32_t"
                                       : bytes == 2 ? "uint16_t"
                                                    : "uint8_t",
                                       std::span<const std::uint32_t>(bits), [](std::uint32_t one) {
                                         return fmt::format("0x{:x}", one);
                                       });
    constexpr std::array kNames{"F32", "F16", "BF16", "I32", "F8_E4M3", "F8_E5M2", "U32", "BOOL"};
    return fmt::format("tensor({}, {}, {}, KVORACLE_{})", shape, from.axes, elements,
                       kNames.at(static_cast<std::size_t>(from.dtype)));
  }

  std::string arrays_;
  int count_ = 0;
};

std::string members_text(const std::string& name, const Record& record) {
  LibraryValues values;
  Writer writer;
  writer.members(
      name, std::span(values.of_members(record.type(), record.get()), record.type().fields.size()));
  return writer.arrays();
}

std::string wanted_text(const Observation& want) {
  if (want.error)
    return fmt::format("  passed = answer.error != NULL && strcmp(answer.error, {}) == 0;\n",
                       c_text(want.error->code_text()));
  const std::size_t members = want.returns.type().fields.size();
  std::string text = "  passed = answer.error == NULL;\n";
  if (members == 0) return text;
  text += "  if (passed) {\n" + members_text("want", want.returns);
  text += fmt::format(
      "    for (size_t i = 0; i < {}; ++i) passed = passed && same(&answer.returns[i], "
      "&want[i]);\n",
      members);
  return text + "  }\n";
}

}  // namespace

std::string c_program(const traces::Case& failing, const Setup& setup, const Observation& want,
                      const std::string& heading) {
  const CacheKind& kind = *failing.header.kind;
  std::string calls;
  for (const traces::Step& step : failing.steps) {
    const auto number =
        std::ranges::find(kind.operations, &step.op.kind()) - kind.operations.begin();
    calls +=
        fmt::format("  {{\n{}    call(\"{}\", {}, arguments);\n  }}\n",
                    members_text("arguments", step.op.arguments()), step.op.kind().name, number);
  }
  std::string program(project_part("tools/adapters/programs/c.program"));
  const auto put = [&](const char* place, const std::string& text) {
    boost::replace_all(program, place, text);
  };
  put("@INTERFACE@", std::string(project_part("tools/adapters/c/kvoracle.h")));
  put("@HEADING@", boost::replace_all_copy(heading, "*/", "* /"));
  put("@KIND@", kind.name());
  put("@PROFILE@", setup.profile == Profile::kDocumented ? "documented" : "original");
  put("@CONFIG@", c_text(boost::json::serialize(setup.config ? write_record(setup.config)
                                                             : boost::json::object())));
  put("@CALLS@", calls);
  put("@WANTED@", wanted_text(want));
  return program;
}

}  // namespace kvo::tools
