// A failing script as a program in C, which is one in C++ as well: it calls a cache through
// kvoracle.h alone.
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

namespace kvo::tools {
namespace {

constexpr std::string_view kProgram = R"(/* @HEADING@
 * Passes when the cache is correct. Build it together with the cache:
 *   cc -I DIRECTORY_OF_KVORACLE_H shrunk.c mycache.c -o shrunk */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kvoracle.h"

static const kvoracle_library* library;
static void* cache;
static kvoracle_answer answer;

static kvoracle_value integer(enum kvoracle_type type, int64_t value) {
  kvoracle_value made;
  made.type = type;
  made.as.integer = value;
  return made;
}

static kvoracle_value number(double value) {
  kvoracle_value made;
  made.type = KVORACLE_NUMBER;
  made.as.number = value;
  return made;
}

static kvoracle_value text(const char* data, size_t size) {
  kvoracle_value made;
  made.type = KVORACLE_TEXT;
  made.as.text.data = data;
  made.as.text.size = size;
  return made;
}

static kvoracle_value tensor(const int64_t* shape, size_t axes, const void* data,
                             enum kvoracle_dtype dtype) {
  kvoracle_value made;
  made.type = KVORACLE_TENSOR;
  made.as.tensor.shape = shape;
  made.as.tensor.axes = axes;
  made.as.tensor.data = data;
  made.as.tensor.dtype = dtype;
  return made;
}

static kvoracle_value integers(const int64_t* data, size_t size) {
  kvoracle_value made;
  made.type = KVORACLE_INTEGERS;
  made.as.integers.data = data;
  made.as.integers.size = size;
  return made;
}

static kvoracle_value list(enum kvoracle_type type, const kvoracle_value* data, size_t size) {
  kvoracle_value made;
  made.type = type;
  made.as.list.data = data;
  made.as.list.size = size;
  return made;
}

/* Whether two values are the same, tensors and numbers bit by bit. */
static int same(const kvoracle_value* a, const kvoracle_value* b) {
  size_t i, bytes;
  if (a->type != b->type) return 0;
  switch (a->type) {
    case KVORACLE_ABSENT: return 1;
    case KVORACLE_BOOLEAN: return !a->as.integer == !b->as.integer;
    case KVORACLE_INTEGER: return a->as.integer == b->as.integer;
    case KVORACLE_NUMBER: return memcmp(&a->as.number, &b->as.number, sizeof(double)) == 0;
    case KVORACLE_TEXT:
      return a->as.text.size == b->as.text.size &&
             memcmp(a->as.text.data, b->as.text.data, a->as.text.size) == 0;
    case KVORACLE_TENSOR:
      if (a->as.tensor.axes != b->as.tensor.axes) return 0;
      if (a->as.tensor.dtype != b->as.tensor.dtype) return 0;
      bytes = a->as.tensor.dtype == KVORACLE_F32 || a->as.tensor.dtype == KVORACLE_I32     ? 4
              : a->as.tensor.dtype == KVORACLE_F16 || a->as.tensor.dtype == KVORACLE_BF16 ? 2
                                                                                           : 1;
      for (i = 0; i < a->as.tensor.axes; ++i) {
        if (a->as.tensor.shape[i] != b->as.tensor.shape[i]) return 0;
        bytes *= (size_t)a->as.tensor.shape[i];
      }
      return bytes == 0 || memcmp(a->as.tensor.data, b->as.tensor.data, bytes) == 0;
    case KVORACLE_INTEGERS:
      if (a->as.integers.size != b->as.integers.size) return 0;
      for (i = 0; i < a->as.integers.size; ++i)
        if (a->as.integers.data[i] != b->as.integers.data[i]) return 0;
      return 1;
    default:
      if (a->as.list.size != b->as.list.size) return 0;
      for (i = 0; i < a->as.list.size; ++i)
        if (!same(&a->as.list.data[i], &b->as.list.data[i])) return 0;
      return 1;
  }
}

/* Calls an operation by its place in the greeting's list; `number` where there is no list. */
static void call(const char* operation, uint32_t number, const kvoracle_value* arguments) {
  const kvoracle_answer none = {NULL, NULL, NULL};
  const char* kind = strstr(library->greeting, "\"@KIND@\"");
  const char* at = kind ? strstr(kind, "\"operations\"") : NULL;
  const char* end = at ? strchr(at, ']') : NULL;
  if (end) at = strchr(at, '[');
  if (end && at) {
    number = 0;
    while ((at = strchr(at, '"')) != NULL && at < end) {
      const char* close = strchr(at + 1, '"');
      const size_t size = strlen(operation);
      if ((size_t)(close - at) == size + 1 && strncmp(at + 1, operation, size) == 0) break;
      at = close + 1;
      ++number;
    }
  }
  answer = none;
  library->call(cache, number, arguments, &answer);
}

static const kvoracle_value absent = {KVORACLE_ABSENT, {0}};

int main(void) {
  int passed = 1;
  (void)integer, (void)number, (void)text, (void)tensor, (void)integers, (void)list;
  (void)same, (void)absent; /* whatever is not needed */
  library = kvoracle_library_of();
  cache = library->open("@KIND@", "@PROFILE@", @CONFIG@);
  if (cache == NULL) return 2;
@CALLS@@WANTED@  library->close(cache);
  puts(passed ? "passed" : "failed: the last operation returns something else");
  return !passed;
}
)";

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
    constexpr std::array kNames{"F32", "F16", "BF16", "I32", "F8_E4M3", "F8_E5M2"};
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
  std::string program(kProgram);
  const auto put = [&](const char* place, const std::string& text) {
    boost::replace_all(program, place, text);
  };
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
