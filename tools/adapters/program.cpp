#include "tools/adapters/program.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include <boost/algorithm/string/replace.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/json.hpp"
#include "tools/adapters/c_program.hpp"
#include "tools/adapters/project.hpp"
#include "tools/adapters/style.hpp"
#include "traces/log/case_notation.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

// The same value with the bits of tensors in the place of their numbers: two texts of one tensor
// are then equal.
json::value in_bits(const json::value& value) {
  if (value.is_array()) {
    json::array out;
    for (const json::value& one : value.get_array()) out.push_back(in_bits(one));
    return out;
  }
  if (!value.is_object()) return value;
  const json::object& object = value.get_object();
  if (object.contains("shape") && (object.contains("data") || object.contains("bits"))) {
    Tensor tensor;
    JsonFault fault;
    KVO_CHECK(read_json(value, tensor, fault));
    json::object out{{"shape", object.at("shape")}};
    if (const json::value* dtype = object.if_contains("dtype")) out["dtype"] = *dtype;
    json::array bits;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i)
      bits.push_back(element_bits(tensor, i));
    out["bits"] = std::move(bits);
    return out;
  }
  json::object out;
  for (const auto& member : object) out[member.key()] = in_bits(member.value());
  return out;
}

// What the last operation must return: {"error": CODE} of a refusal.
json::object wanted(const Observation& want) {
  if (want.error) return {{"error", want.error->code_text()}};
  return in_bits(write_record(want.returns)).get_object();
}

// Tensors as each language can read them: of f32 the numbers, unless one has no decimal form; else
// the bits.
json::value readable(const json::value& value) {
  if (value.is_array()) {
    json::array out;
    for (const json::value& one : value.get_array()) out.push_back(readable(one));
    return out;
  }
  if (!value.is_object()) return value;
  const json::object& object = value.get_object();
  if (object.contains("shape")) {
    const json::value* data = object.if_contains("data");
    const bool numbers = data != nullptr && !object.contains("dtype") &&
                         std::ranges::all_of(data->as_array(), &json::value::is_number);
    return numbers ? value : in_bits(value);
  }
  json::object out;
  for (const auto& member : object) out[member.key()] = readable(member.value());
  return out;
}

/// A program to be written: what its text is made of.
struct Program {
  const traces::Case& failing;
  const Setup& setup;
  const Observation& want;
  const std::string& cache;
  std::string heading;
  bool code_matters;  ///< both sides refuse: with different codes
  std::string language;

  // The template of the language with @PLACES@ replaced.
  [[nodiscard]] std::string filled(std::vector<std::pair<const char*, std::string>> places) const {
    std::string text(project_part(fmt::format("tools/adapters/programs/{}.program", language)));
    places.emplace_back("@HEADING@", heading);
    places.emplace_back("@PROFILE@",
                        setup.profile == Profile::kDocumented ? "documented" : "original");
    for (const auto& [place, words] : places) boost::replace_all(text, place, words);
    return text;
  }
  [[nodiscard]] json::object config() const {
    return setup.config ? write_record(setup.config) : json::object();
  }
  [[nodiscard]] json::object returns() const {
    return readable(write_record(want.returns)).as_object();
  }
};

std::string in_quotes(std::string_view text) {
  return json::serialize(json::string(text));
}

// ---- Python ----

// Tensors are made by functions of the program.
std::string python_value(const json::value& value) {
  if (value.is_array()) {
    std::vector<std::string> all;
    for (const json::value& one : value.get_array()) all.push_back(python_value(one));
    return fmt::format("[{}]", fmt::join(all, ", "));
  }
  if (!value.is_object()) return python_literal(value);
  const json::object& object = value.get_object();
  if (object.contains("shape")) {
    const std::string shape = python_literal(object.at("shape"));
    if (const json::value* data = object.if_contains("data"))
      return fmt::format("tensor({}, {})", shape, python_literal(*data));
    const json::value* dtype = object.if_contains("dtype");
    return fmt::format("Tensor({}, {}{})", shape, python_literal(object.at("bits")),
                       dtype != nullptr ? ", " + python_literal(*dtype) : "");
  }
  std::vector<std::string> all;
  for (const auto& member : object)
    all.push_back(fmt::format("{}: {}", in_quotes(member.key()), python_value(member.value())));
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

std::string python_program(const Program& program) {
  const std::string& cache = program.cache;
  const std::size_t colon = std::min(cache.find(':'), cache.size());
  std::string calls;
  for (const traces::Step& step : program.failing.steps) {
    const bool last = &step == &program.failing.steps.back();
    calls += fmt::format("    {}call(cache.{}", last ? "returned = " : "",
                         python_name(step.op.kind().name));
    for (const auto& member : write_record(step.op.arguments()))
      calls += fmt::format(", {}={}", python_name(std::string_view(member.key())),
                           python_value(readable(member.value())));
    calls += ")\n";
  }
  std::string asserts = "    assert isinstance(returned, dict), repr(returned)\n";
  if (program.want.error) {
    asserts = "    assert isinstance(returned, Exception), returned\n";
    if (program.code_matters)
      asserts += fmt::format(
          "    assert {} in f\"{{getattr(returned, 'code', '')}} {{returned!r}}\", "
          "repr(returned)\n",
          in_quotes(program.want.error->code_text()));
  } else if (const json::object returns = program.returns(); !returns.empty()) {
    asserts += fmt::format(
        "    want = {}\n    assert {{name: returned.get(name) for name in want}} == want, "
        "returned\n",
        python_value(returns));
  }
  return program.filled({{"@MODULE@", cache.empty() ? "cache" : cache.substr(0, colon)},
                         {"@NAME@", colon < cache.size() ? cache.substr(colon + 1) : "Cache"},
                         {"@CONFIG@", python_literal(program.config())},
                         {"@CALLS@", calls},
                         {"@ASSERTS@", asserts}});
}

// ---- Go: arguments and results as JSON, which the standard library puts into structs ----

std::string go_text(const std::string& text) {
  return text.find('`') == text.npos ? "`" + text + "`" : in_quotes(text);
}

std::string go_program(const Program& program) {
  std::string calls;
  for (const traces::Step& step : program.failing.steps) {
    const bool last = &step == &program.failing.steps.back();
    calls += fmt::format("\t{} callShrunk(cache, \"{}\", {})\n",
                         !last                ? "_, _ ="
                         : program.want.error ? "_, err ="
                                              : "returned, err :=",
                         member_name(step.op.kind().name),
                         go_text(json::serialize(readable(write_record(step.op.arguments())))));
  }
  std::string asserts;
  if (program.want.error) {
    const std::string code = program.want.error->code_text();
    asserts = fmt::format(
        "\tif err == nil{} {{\n\t\tt.Errorf(\"want the refusal %s, got %v\", {}, err)\n\t}}\n",
        program.code_matters
            ? fmt::format(" || !strings.Contains(err.Error(), {})", in_quotes(code))
            : "",
        in_quotes(code));
  } else {
    asserts = fmt::format(
        "\tif want := {}; err != nil || !hasShrunk(returned, want) {{\n"
        "\t\tt.Errorf(\"want %s, got %s, %v\", want, returned, err)\n\t}}\n",
        go_text(json::serialize(program.returns())));
  }
  const CacheKind& kind = *program.failing.header.kind;
  return program.filled(
      {{"@CACHE@", program.cache.empty() ? std::string(kind.contract) + member_name(kind.cache)
                                         : program.cache},
       {"@CONFIG@", go_text(json::serialize(program.config()))},
       {"@STRINGS@", program.want.error && program.code_matters ? "\t\"strings\"\n" : ""},
       {"@CALLS@", calls},
       {"@ASSERTS@", asserts}});
}

// ---- Rust: arguments and results as structs ----

std::string rust_text(std::string_view text) {
  return fmt::format("r##\"{}\"##", text);
}

std::string rust_number(double value) {
  if (std::isnan(value)) return "f64::NAN";
  if (std::isinf(value)) return value < 0 ? "f64::NEG_INFINITY" : "f64::INFINITY";
  std::string text = fmt::format("{}", value);
  return text + (text.find_first_of(".e") == text.npos ? ".0" : "");
}

std::string rust_tensor(const Tensor& tensor) {
  std::vector<std::string> numbers;
  std::vector<std::uint32_t> bits;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    bits.push_back(element_bits(tensor, i));
    const auto number = std::bit_cast<float>(bits.back());
    if (tensor.dtype == DType::kF32 && std::isfinite(number)) {
      std::string text = fmt::format("{}", number);
      numbers.push_back(text + (text.find_first_of(".e") == text.npos ? ".0" : ""));
    }
  }
  const bool readable = tensor.dtype == DType::kF32 && numbers.size() == bits.size();
  return readable
             ? fmt::format("tensor(&{}, &[{}])", tensor.shape, fmt::join(numbers, ", "))
             : fmt::format("bits(&{}, \"{}\", &{})", tensor.shape, dtype_name(tensor.dtype), bits);
}

constexpr std::string_view kRustTensors = R"(    #[allow(dead_code)]
    fn tensor(shape: &[usize], values: &[f32]) -> Tensor {
        bits(shape, "f32", &values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>())
    }

    fn bits(shape: &[usize], dtype: &str, bits: &[u32]) -> Tensor {
        Tensor { shape: shape.to_vec(), dtype: dtype.into(), bits: bits.to_vec() }
    }

)";

std::string rust_literal(const Type& type, const void* value, const std::string& name);

std::string rust_record(const Type& type, const void* record, const std::string& name) {
  std::vector<std::string> members;
  for (const Field& field : type.fields)
    members.push_back(
        fmt::format("{}: {}", rust_name(field.name),
                    rust_literal(*field.type, field.of(record), name + member_name(field.name))));
  return fmt::format("{} {{ {} }}", name, fmt::join(members, ", "));
}

std::string rust_literal(const Type& type, const void* value, const std::string& name) {
  switch (type.type_class) {
    case TypeClass::kBool:
      return kvo::detail::to<bool>(value) ? "true" : "false";
    case TypeClass::kInteger:
      return type.is_signed
                 ? fmt::format("{}", integer_at(type, value))
                 : fmt::format("{}", static_cast<std::uint64_t>(integer_at(type, value)));
    case TypeClass::kFloat:
      return rust_number(static_cast<double>(kvo::detail::to<float>(value)));
    case TypeClass::kDouble:
      return rust_number(kvo::detail::to<double>(value));
    case TypeClass::kString:
    case TypeClass::kEnum:
      return rust_text(std::string_view(write_json(type, value).as_string())) + ".into()";
    case TypeClass::kTensor:
      return rust_tensor(kvo::detail::to<Tensor>(value));
    case TypeClass::kRecord:
      return rust_record(type, value, name);
    case TypeClass::kList: {
      std::vector<std::string> all;
      for (std::size_t i = 0; i < type.length(value); ++i)
        all.push_back(rust_literal(*type.element, type.element_at(value, i), name));
      return fmt::format("vec![{}]", fmt::join(all, ", "));
    }
    case TypeClass::kOptional:
    case TypeClass::kNullable: {
      const void* held = type.held_by(value);
      if (held == nullptr) return "None";
      const std::string text = rust_literal(*type.element, held, name);
      return type.element->is_nullable() ? text : fmt::format("Some({})", text);
    }
    case TypeClass::kCustom:
      break;
  }
  return fmt::format("Json::parse({}).unwrap()",
                     rust_text(json::serialize(write_json(type, value))));
}

std::string rust_call(const Op& op) {
  const Type& arguments = *op.kind().arguments;
  return fmt::format("cache.{}({})", rust_name(op.kind().name),
                     arguments.fields.empty()
                         ? "()"
                         : rust_record(arguments, op.arguments().get(),
                                       member_name(op.kind().name) + "Arguments"));
}

std::string rust_program(const Program& program) {
  std::string calls;
  for (const traces::Step& step : program.failing.steps)
    if (&step != &program.failing.steps.back())
      calls += fmt::format("        let _ = {};\n", rust_call(step.op));
  const Op& last = program.failing.steps.back().op;
  std::string asserts;
  if (program.want.error) {
    const std::string code = program.want.error->code_text();
    asserts = fmt::format(
        "        let refusal = {}.expect_err(\"the refusal {} is wanted\");\n"
        "        assert!(format!(\"{{refusal:?}}\").contains({}), \"{{refusal:?}}\");\n",
        rust_call(last), code, in_quotes(program.code_matters ? code : ""));
  } else {
    const Type& type = program.want.returns.type();
    std::string members;
    for (const Field& field : type.fields) {
      const void* value = field.of(program.want.returns.get());
      if (field.type->is_optional() && field.type->held_by(value) == nullptr) continue;
      members += fmt::format(
          "        assert_eq!(returned.{}, {});\n", rust_name(field.name),
          rust_literal(*field.type, value,
                       member_name(last.kind().name) + "Returns" + member_name(field.name)));
    }
    asserts = fmt::format("        {}{}.expect(\"no refusal is wanted\");\n{}",
                          members.empty() ? "" : "let returned = ", rust_call(last), members);
  }
  const bool tensors = (calls + asserts).find("(&[") != std::string::npos;
  return program.filled({{"@CACHE@", program.cache.empty() ? "crate::cache::made" : program.cache},
                         {"@TENSORS@", std::string(tensors ? kRustTensors : "")},
                         {"@CONFIG@", rust_text(json::serialize(program.config()))},
                         {"@CALLS@", calls},
                         {"@ASSERTS@", asserts}});
}

constexpr std::array<std::string_view, 7> kPrograms{"python", "pytest", "go",  "rust",
                                                    "c",      "cpp",    "text"};

}  // namespace

std::string python_literal(const json::value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get_bool() ? "True" : "False";
  if (value.is_array()) {
    std::vector<std::string> all;
    for (const json::value& one : value.get_array()) all.push_back(python_literal(one));
    return fmt::format("[{}]", fmt::join(all, ", "));
  }
  if (!value.is_object()) return json::serialize(value);
  std::vector<std::string> all;
  for (const auto& member : value.get_object())
    all.push_back(fmt::format("{}: {}", json::serialize(json::string(member.key())),
                              python_literal(member.value())));
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

std::span<const std::string_view> program_languages() {
  return kPrograms;
}

std::string program_text(std::string_view language, const traces::Case& failing, const Setup& setup,
                         std::span<const Observation> returned, const std::string& difference,
                         const std::string& cache) {
  const Observation& want = returned.back();
  std::string heading = fmt::format("{}: {}", failing.header.kind->name(), difference);
  boost::replace_all(heading, "\n", " ");  // it is one line of a comment
  boost::replace_all(heading, "\"\"\"", "'");
  boost::replace_all(heading, "\\", "/");
  if (language == "c" || language == "cpp") return c_program(failing, setup, want, heading);
  if (std::ranges::find(program_languages(), language) == program_languages().end())
    return styled_test(language, failing, returned, heading);
  if (language == "text") {
    std::string text = heading + "\n";
    for (const traces::Step& step : failing.steps) text += traces::operation_text(step.op) + "\n";
    return text + "want " + json::serialize(wanted(want)) + "\n";
  }
  Program program{.failing = failing,
                  .setup = setup,
                  .want = want,
                  .cache = cache,
                  .heading = heading,
                  .code_matters = difference.find("error: want ") != difference.npos &&
                                  difference.find("got no error") == difference.npos,
                  .language = std::string(language)};
  if (language == "go") return go_program(program);
  if (language == "rust") return rust_program(program);
  program.language = "python";  // pytest finds the test in it
  return python_program(program);
}

}  // namespace kvo::tools
