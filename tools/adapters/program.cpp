#include "tools/adapters/program.hpp"

#include <algorithm>
#include <array>

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

std::string heading(const traces::Case& failing, const std::string& difference) {
  return fmt::format("{}: {}", failing.header.kind->name(), difference);
}

// ---- Python ----

// An argument: tensors become objects of the package.
std::string python_argument(const json::value& value) {
  if (!value.is_object() || !value.get_object().contains("shape")) return python_literal(value);
  const json::object bits = in_bits(value).get_object();
  return fmt::format("tensor({}, {}, {})", python_literal(bits.at("shape")),
                     python_literal(bits.at("bits")),
                     bits.contains("dtype") ? python_literal(bits.at("dtype")) : "\"f32\"");
}

std::string python_program(const traces::Case& failing, const Setup& setup,
                           const json::object& want, const std::string& difference,
                           const std::string& cache, bool pytest) {
  const std::size_t colon = std::min(cache.find(':'), cache.size());
  const std::string module = cache.empty() ? "cache" : cache.substr(0, colon);
  const std::string name = colon < cache.size() ? cache.substr(colon + 1) : "Cache";
  std::string calls;
  for (const traces::Step& step : failing.steps) {
    std::string arguments;
    for (const auto& member : write_record(step.op.arguments()))
      arguments += fmt::format(", {}={}", python_name(std::string_view(member.key())),
                               python_argument(member.value()));
    calls += fmt::format("{}returned = call(cache, \"{}\"{})\n", pytest ? "    " : "",
                         step.op.kind().name, arguments);
  }
  const std::string indent = pytest ? "    " : "";
  return fmt::format(R"("""{0}

Passes when the cache is correct.
"""

from array import array

from kvoracle import Tensor
from {1} import {2} as Cache


def tensor(shape, bits, dtype):
    codes = {{"f32": "I", "i32": "I", "f16": "H", "bf16": "H"}}
    return Tensor(shape, array(codes.get(dtype, "B"), bits), dtype)


def plain(value):
    if isinstance(value, Tensor):
        dtype = {{}} if value.dtype == "f32" else {{"dtype": value.dtype}}
        return {{"shape": list(value.shape), **dtype, "bits": value.bits.tolist()}}
    if isinstance(value, dict):
        return {{name: plain(one) for name, one in value.items()}}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def call(cache, operation, /, **arguments):
    try:
        return plain(getattr(cache, operation)(**arguments) or {{}})
    except Exception as error:  # a refusal has a code
        return {{"error": getattr(error, "code", repr(error))}}


{3}{4}cache = Cache({5}, "{6}")
{7}{4}assert returned == {8}, returned
{9})",
                     heading(failing, difference), module, name,
                     pytest ? "def test_shrunk():\n" : "", indent,
                     python_literal(setup.config ? write_record(setup.config) : json::object()),
                     setup.profile == Profile::kDocumented ? "documented" : "original", calls,
                     python_literal(want), pytest ? "" : "print(\"passed\")\n");
}

// ---- Go and Rust: operations as JSON, by a function of the runtime library ----

std::string go_text(const std::string& text) {
  return text.find('`') == text.npos ? "`" + text + "`" : json::serialize(json::string(text));
}

std::string go_program(const traces::Case& failing, const Setup& setup, const json::object& want,
                       const std::string& difference, const std::string& cache) {
  std::string steps;
  for (const traces::Step& step : failing.steps)
    steps += fmt::format("\t\t{{{}, {}}},\n", json::serialize(json::string(step.op.kind().name)),
                         go_text(json::serialize(in_bits(write_record(step.op.arguments())))));
  return fmt::format(
      R"(package main

import (
	"encoding/json"
	"testing"

	"kvoracle"
)

// {}
func TestShrunk(t *testing.T) {{
	cache, err := {}.Open(json.RawMessage({}), "{}")
	if err != nil {{
		t.Fatal(err)
	}}
	returned := ""
	for _, step := range [][2]string{{
{}	}} {{
		returned = kvoracle.Call(cache, step[0], step[1])
	}}
	if want := {}; !kvoracle.Same(returned, want) {{
		t.Errorf("want %s, got %s", want, returned)
	}}
}}
)",
      heading(failing, difference),
      cache.empty()
          ? std::string(failing.header.kind->contract) + member_name(failing.header.kind->cache)
          : cache,
      go_text(json::serialize(setup.config ? write_record(setup.config) : json::object())),
      setup.profile == Profile::kDocumented ? "documented" : "original", steps,
      go_text(json::serialize(want)));
}

std::string rust_text(const std::string& text) {
  return "r##\"" + text + "\"##";
}

std::string rust_program(const traces::Case& failing, const Setup& setup, const json::object& want,
                         const std::string& difference, const std::string& cache) {
  std::string steps;
  for (const traces::Step& step : failing.steps)
    steps += fmt::format("        ({}, {}),\n", json::serialize(json::string(step.op.kind().name)),
                         rust_text(json::serialize(in_bits(write_record(step.op.arguments())))));
  return fmt::format(
      R"(/// {}
#[test]
fn shrunk() {{
    let mut cache = kvoracle::open(&{}, {}, "{}").expect("the config is supported");
    let mut returned = String::new();
    for (operation, arguments) in [
{}    ] {{
        returned = kvoracle::call(cache.as_mut(), operation, arguments);
    }}
    assert!(kvoracle::same(&returned, {}), "{{returned}}");
}}
)",
      heading(failing, difference), cache.empty() ? "crate::cache::KIND" : cache,
      rust_text(json::serialize(setup.config ? write_record(setup.config) : json::object())),
      setup.profile == Profile::kDocumented ? "documented" : "original", steps,
      rust_text(json::serialize(want)));
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
                         const Observation& want, const std::string& difference,
                         const std::string& cache) {
  if (language == "c" || language == "cpp")
    return c_program(failing, setup, want, heading(failing, difference));
  const json::object returns = wanted(want);
  if (std::ranges::find(program_languages(), language) == program_languages().end())
    return styled_test(language, failing, returns, heading(failing, difference));
  if (language == "go") return go_program(failing, setup, returns, difference, cache);
  if (language == "rust") return rust_program(failing, setup, returns, difference, cache);
  if (language == "text") {
    std::string text = heading(failing, difference) + "\n";
    for (const traces::Step& step : failing.steps) text += traces::operation_text(step.op) + "\n";
    return text + "want " + json::serialize(returns) + "\n";
  }
  return python_program(failing, setup, returns, difference, cache, language == "pytest");
}

}  // namespace kvo::tools
