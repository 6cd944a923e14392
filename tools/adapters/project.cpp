#include "tools/adapters/project.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/describe/json.hpp"
#include "tools/adapters/program.hpp"

namespace kvo::tools {
namespace {

// ---- what all languages say of an operation ----

bool may_be_left_out(const Field& field) {
  return field.may_be_absent();
}

// "layer, counted from 0", with axes and bounds.
std::string meaning_of(const Field& field) {
  const bool own = !field.meaning.empty();
  std::string text(own ? field.meaning : field.domain != nullptr ? field.domain->meaning : "");
  if (field.type->value_type().type_class == TypeClass::kTensor && !field.axes.empty())
    text += fmt::format("{}[{}]", text.empty() ? "" : " ", fmt::join(field.axes, ", "));
  if (field.domain != nullptr && field.domain->is_bounded()) {
    constexpr auto kNone = std::numeric_limits<std::int64_t>::max();
    text += fmt::format("; {} or more", field.domain->least);
    if (field.domain->most != kNone) text += fmt::format(", {} at most", field.domain->most);
  }
  return text;
}

/// A record inside of arguments or results, which needs a name.
struct Named {
  std::string name;
  const Type* type;
};

// All records inside of `type`, innermost first, by the names that they get.
void add_records(const Type& type, const std::string& name, std::vector<Named>& all) {
  if (type.element != nullptr) return add_records(*type.element, name, all);
  if (type.type_class != TypeClass::kRecord) return;
  for (const Field& field : type.fields)
    add_records(*field.type, name + member_name(field.name), all);
  all.push_back({name, &type});
}

std::vector<Named> records_of(const OpKind& op) {
  std::vector<Named> all;
  add_records(*op.arguments, member_name(op.name) + "Arguments", all);
  add_records(*op.returns, member_name(op.name) + "Returns", all);
  return all;
}

std::string words_of(const Type& type) {
  std::string words;
  for (const Enumerator& one : type.enumerators)
    words += fmt::format("{}\"{}\"", words.empty() ? "" : ", ", one.word);
  return words;
}

/// One language: how it writes types and operations.
struct Language {
  std::string_view name;
  std::string_view operations;  ///< name of the file with the operations
  std::string (*operations_text)(const CacheKind& kind);
  std::vector<ProjectFile> (*others)(const CacheKind& kind);
};

bool has_part(std::string_view path) {
  return std::ranges::find(project_parts(), path, &traces::EmbeddedFile::name) !=
         project_parts().end();
}

// The files of a folder, to be written below `to`.
std::vector<ProjectFile> parts_of(std::string_view folder, const std::string& to) {
  std::vector<ProjectFile> files;
  for (const traces::EmbeddedFile& file : project_parts())
    if (file.name.starts_with(folder))
      files.push_back({to + std::string(file.name.substr(folder.size())), std::string(file.text)});
  return files;
}

std::string ci_text(std::string_view build, std::string_view subject) {
  return fmt::format(R"(name: kvoracle
on: [push, pull_request]
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: {}
      - run: >
          kvoracle check "{}" --profile documented --conventions conventions
          --cases 1000 --junit check.xml
)",
                     build, subject);
}

std::string readme_text(const CacheKind& kind, std::string_view build, std::string_view subject,
                        std::string_view where) {
  return fmt::format(R"(# A cache of kind {0}

```
{1}
kvoracle learn "{2}" --profile documented -o conventions
kvoracle check "{2}" --profile documented --conventions conventions --cases 200
```
`learn` finds in what the cache lawfully differs, and `check` then reports its faults alone. Keep
the file: the test and the step of CI need it.

The cache is in {3}. `kvoracle list {0}` explains the operations,
`kvoracle explain RULE` a rule.
)",
                     kind.name(), build, subject, where);
}

// As examples name it: layeredVector.
std::string go_variable(const CacheKind& kind) {
  return std::string(kind.contract) + member_name(kind.cache);
}

// The small cache of a kind if there is one, else an empty one.
std::string example_or(const CacheKind& kind, std::string_view language, std::string_view ending,
                       std::string empty) {
  const std::string path =
      fmt::format("examples/adapters/{}/{}_{}{}", language, kind.contract, kind.cache, ending);
  if (has_part(path)) return std::string(project_part(path));
  boost::replace_all(empty, "@KIND@", kind.name());
  boost::replace_all(empty, "@VARIABLE@", go_variable(kind));
  return empty;
}

// ---- Python ----

std::string python_type(const Type& type, const std::string& name) {
  switch (type.type_class) {
    case TypeClass::kBool:
      return "bool";
    case TypeClass::kInteger:
      return "int";
    case TypeClass::kFloat:
    case TypeClass::kDouble:
      return "float";
    case TypeClass::kString:
      return "str";
    case TypeClass::kTensor:
      return "Tensor";
    case TypeClass::kEnum:
      return "Literal[" + words_of(type) + "]";
    case TypeClass::kRecord:
      return name;
    case TypeClass::kList:
      return "list[" + python_type(*type.element, name) + "]";
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      return python_type(*type.element, name) + " | None";
    case TypeClass::kCustom:
      return "Any";
  }
  return "Any";
}

// A class; where a member is a keyword, a call that makes one.
std::string python_record(const Named& record) {
  const bool keywords = std::ranges::any_of(record.type->fields, [](const Field& field) {
    return python_name(field.name) != field.name;
  });
  std::string text = keywords
                         ? fmt::format("\n\n{0} = TypedDict(\n    \"{0}\",\n    {{\n", record.name)
                         : fmt::format("\n\nclass {}(TypedDict):\n", record.name);
  for (const Field& field : record.type->fields) {
    const std::string type = python_type(*field.type, record.name + member_name(field.name));
    text += keywords ? fmt::format("        \"{}\": \"{}\",  # {}\n", field.name, type,
                                   meaning_of(field))
                     : fmt::format("    {}: {}  # {}\n", field.name, type, meaning_of(field));
  }
  return text + (keywords ? "    },\n)\n" : "");
}

std::string python_operations(const CacheKind& kind) {
  std::string records;
  std::string methods;
  for (const OpKind* op : kind.operations) {
    for (const Named& one : records_of(*op)) {
      if (one.type == op->arguments || one.type->fields.empty()) continue;
      records += python_record(one);
    }
    std::string arguments;
    std::string documents;
    const auto fresh = op->arguments->made();
    for (const bool absent : {false, true})  // Python wants those with a default last
      for (const Field& field : op->arguments->fields) {
        if (may_be_left_out(field) != absent) continue;
        const std::string type =
            python_type(*field.type, member_name(op->name) + "Arguments" + member_name(field.name));
        arguments += fmt::format(", {}: {}", python_name(field.name), type);
        if (absent)
          arguments +=
              " = " + (field.type->is_optional()
                           ? "None"
                           : python_literal(write_json(*field.type, field.of(fresh.get()))));
        documents +=
            fmt::format("            {}  {}\n", python_name(field.name), meaning_of(field));
      }
    const bool returns = !op->returns->fields.empty();
    methods +=
        fmt::format("\n    def {}(self{}) -> {}:\n        \"\"\"{}\n", python_name(op->name),
                    arguments, returns ? member_name(op->name) + "Returns" : "None", op->doc);
    if (!documents.empty()) methods += "\n        Arguments\n" + documents;
    if (returns) methods += "\n        Returns\n";
    for (const Field& field : op->returns->fields)
      methods += fmt::format("            {}  {}\n", field.name, meaning_of(field));
    methods += "        \"\"\"\n        raise Unsupported\n";
  }
  return fmt::format(
      R"("""The operations of {}.

A class that derives from Operations overrides those that it has.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from kvoracle import Tensor, Unsupported
{}

class Operations:
    """A method that refuses a call raises Refused(code, detail)."""
{})",
      kind.name(), records, methods);
}

std::vector<ProjectFile> python_files(const CacheKind& kind) {
  std::vector<ProjectFile> files = parts_of("tools/adapters/python/src/kvoracle/", "kvoracle/");
  files.push_back({"cache.py", example_or(kind, "python", ".py", R"("""A cache of kind @KIND@."""

from kvoracle import NotSupported, Refused, serve
from operations import Operations


class Cache(Operations):
    """The caches of one case. Override the operations that yours has."""

    def __init__(self, config: dict, profile: str) -> None:
        self.config = config


if __name__ == "__main__":
    serve({"@KIND@": Cache}, system="mine", version="0.1")
)")});
  files.push_back({"conftest.py", "pytest_plugins = [\"kvoracle.pytest_plugin\"]\n"});
  files.push_back(
      {"test_cache.py", R"("""Needs the command kvoracle; without it, the test is skipped."""


def test_the_cache_agrees_with_its_reference(kvoracle_check):
    kvoracle_check("cache.py", cases=200, conventions="conventions")  # of kvoracle learn
)"});
  const std::string subject = kind.name() + "@exec:python3 cache.py";
  files.push_back({"README.md", readme_text(kind, "python3 -m py_compile cache.py", subject,
                                            "cache.py. operations.py documents its methods")});
  files.push_back({".github/workflows/kvoracle.yml", ci_text("python3 --version", subject)});
  return files;
}

// ---- Go ----

std::string go_type(const Type& type, const std::string& name) {
  switch (type.type_class) {
    case TypeClass::kBool:
      return "bool";
    case TypeClass::kInteger:
      return type.is_signed ? "int64" : "uint64";
    case TypeClass::kFloat:
    case TypeClass::kDouble:
      return "kvoracle.Number";
    case TypeClass::kString:
    case TypeClass::kEnum:
      return "string";
    case TypeClass::kTensor:
      return "kvoracle.Tensor";
    case TypeClass::kRecord:
      return name;
    case TypeClass::kList:
      return "[]" + go_type(*type.element, name);
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      return type.element->type_class == TypeClass::kNullable ? go_type(*type.element, name)
                                                              : "*" + go_type(*type.element, name);
    case TypeClass::kCustom:
      return "any";
  }
  return "any";
}

std::string go_operations(const CacheKind& kind) {
  std::string types;
  std::string methods;
  for (const OpKind* op : kind.operations) {
    for (const Named& one : records_of(*op)) {
      if (one.type->fields.empty()) continue;
      types += fmt::format("\n// {} is of operation {}.\ntype {} struct {{\n", one.name, op->name,
                           one.name);
      for (const Field& field : one.type->fields) {
        const Type& value = field.type->value_type();
        const std::string words =
            value.type_class == TypeClass::kEnum ? "; one of " + words_of(value) : "";
        types += fmt::format("\t// {}{}\n\t{} {} `json:\"{}{}\"`\n", meaning_of(field), words,
                             member_name(field.name),
                             go_type(*field.type, one.name + member_name(field.name)), field.name,
                             field.type->is_optional() ? ",omitempty" : "");
      }
      types += "}\n";
    }
    methods += fmt::format(
        "\t// {}: {}\n\t{}({}) {}\n", member_name(op->name), op->doc, member_name(op->name),
        op->arguments->fields.empty() ? "" : member_name(op->name) + "Arguments",
        op->returns->fields.empty() ? "error" : "(" + member_name(op->name) + "Returns, error)");
  }
  const bool uses = types.find("kvoracle.") != std::string::npos;
  return fmt::format(
      "package main\n\n{}// Operations has the operations of {}. A cache may lack some.\n"
      "type Operations interface {{\n{}}}\n{}",
      uses ? "import \"kvoracle\"\n\n" : "", kind.name(), methods, types);
}

std::vector<ProjectFile> go_files(const CacheKind& kind) {
  std::vector<ProjectFile> files = parts_of("tools/adapters/go/kvoracle/", "kvoracle/");
  files.push_back({"cache.go", example_or(kind, "go", ".go", R"(package main

import (
	"encoding/json"

	"kvoracle"
)

// Cache has the caches of one case. Its methods are those of Operations that it has.
type Cache struct {
	config json.RawMessage
}

var @VARIABLE@ = kvoracle.Kind{
	Name: "@KIND@",
	Open: func(config json.RawMessage, _ string) (any, error) {
		return &Cache{config}, nil
	},
}
)")});
  const std::string variable = go_variable(kind);
  files.push_back({"main.go", fmt::format(R"(// Command cache answers kvoracle.
package main

import (
	"os"

	"kvoracle"
)

// The name of a fault that the cache is to have: for a first look at what kvoracle reports.
var fault = append(os.Args, "")[1]

func main() {{
	kvoracle.Serve("mine", "0.1", {})
}}
)",
                                          variable)});
  files.push_back({"go.mod",
                   "module cache\n\ngo 1.20\n\nrequire kvoracle v0.0.0\n\n"
                   "replace kvoracle => ./kvoracle\n"});
  files.push_back({"cache_test.go", R"(package main

import (
	"os/exec"
	"testing"
)

func TestTheCacheAgreesWithItsReference(t *testing.T) {
	command, err := exec.LookPath("kvoracle")
	if err != nil {
		t.Skip("no command kvoracle")
	}
	arguments := []string{"check", "@exec:go run .", "--profile", "documented", "--cases", "200",
		"--conventions", "conventions"} // of kvoracle learn
	check := exec.Command(command, arguments...)
	report, err := check.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
}
)"});
  const std::string subject = kind.name() + "@exec:./cache";
  files.push_back({"README.md", readme_text(kind, "go build -o cache .", subject,
                                            "cache.go. operations.go documents its methods")});
  files.push_back({".github/workflows/kvoracle.yml", ci_text("go build -o cache .", subject)});
  return files;
}

// ---- Rust ----

std::string rust_type(const Type& type, const std::string& name) {
  switch (type.type_class) {
    case TypeClass::kBool:
      return "bool";
    case TypeClass::kInteger:
      return type.is_signed ? "i64" : "u64";
    case TypeClass::kFloat:
    case TypeClass::kDouble:
      return "f64";
    case TypeClass::kString:
    case TypeClass::kEnum:
      return "String";
    case TypeClass::kTensor:
      return "Tensor";
    case TypeClass::kRecord:
      return name;
    case TypeClass::kList:
      return "Vec<" + rust_type(*type.element, name) + ">";
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      return type.element->type_class == TypeClass::kNullable
                 ? rust_type(*type.element, name)
                 : "Option<" + rust_type(*type.element, name) + ">";
    case TypeClass::kCustom:
      return "Json";
  }
  return "Json";
}

// " = 0", of a member that may be left out; nothing where that is None.
std::string rust_default(const Field& field, const void* fresh) {
  if (!may_be_left_out(field) || field.type->is_optional()) return "";
  const boost::json::value value = write_json(*field.type, field.of(fresh));
  if (value.is_null()) return "";
  if (value.is_string()) return fmt::format(" = {}.into()", boost::json::serialize(value));
  if (value.is_array() && value.get_array().empty()) return " = Vec::new()";
  const bool number =
      field.type->type_class == TypeClass::kFloat || field.type->type_class == TypeClass::kDouble;
  return fmt::format(" = {}{}", boost::json::serialize(value),
                     number && !value.is_double() ? ".0" : "");
}

std::string rust_operations(const CacheKind& kind) {
  std::string records;
  std::string methods;
  for (const OpKind* op : kind.operations) {
    for (const Named& one : records_of(*op)) {
      if (one.type->fields.empty()) continue;
      records += fmt::format("\nkvoracle::record! {{\n    /// Of operation {}.\n    {} {{\n",
                             op->name, one.name);
      const auto fresh = one.type->made();
      for (const Field& field : one.type->fields) {
        const Type& value = field.type->value_type();
        std::string meaning = meaning_of(field);
        if (value.type_class == TypeClass::kEnum) meaning += "; one of " + words_of(value);
        if (!meaning.empty()) records += fmt::format("        /// {}\n", meaning);
        records += fmt::format("        {}: {}{},\n", rust_name(field.name),
                               rust_type(*field.type, one.name + member_name(field.name)),
                               rust_default(field, fresh.get()));
      }
      records += "    }\n}\n";
    }
    const auto of = [&](const Type& type, const char* what) {
      return type.fields.empty() ? "()" : member_name(op->name) + what;
    };
    methods += fmt::format("    /// {}\n    {}({}) -> {};\n", op->doc, rust_name(op->name),
                           of(*op->arguments, "Arguments"), of(*op->returns, "Returns"));
  }
  std::vector<std::string_view> used;
  for (const std::string_view type : {"Json", "Tensor"})
    if (records.find(type) != std::string::npos) used.push_back(type);
  const std::string uses =
      used.size() == 2 ? "{Json, Tensor}" : fmt::format("{}", fmt::join(used, ""));
  return fmt::format(
      "//! The operations of {}. A cache implements `Operations`.\n#![allow(dead_code, "
      "non_snake_case)]\n{}\n"
      "kvoracle::operations! {{\n{}}}\n{}",
      kind.name(), used.empty() ? "" : fmt::format("\npub use kvoracle::{};\n", uses), methods,
      records);
}

std::vector<ProjectFile> rust_files(const CacheKind& kind) {
  std::vector<ProjectFile> files = parts_of("tools/adapters/rust/kvoracle/", "kvoracle/");
  std::string text = example_or(kind, "rust", ".rs", R"(//! A cache of kind @KIND@.

use crate::operations::{ByName, Operations};
use kvoracle::{Arguments, Cache, Kind};

pub const KIND: Kind = Kind { name: "@KIND@", open, operations: &[], conventions: &[] };

/// The caches of one case.
pub struct Caches;

fn open(_config: &Arguments, _profile: &str) -> Result<Box<dyn Cache>, String> {
    Ok(Box::new(ByName(Caches)))
}

/// For tests.
#[cfg(test)]
pub fn made(_config: &str, _profile: &str) -> Result<Caches, String> {
    Ok(Caches)
}

/// Here are the methods of those operations that the cache has.
impl Operations for Caches {}
)");
  files.push_back({"src/cache.rs", std::move(text)});
  files.push_back({"src/main.rs", R"(mod cache;
mod operations;

/// Whether the cache is to have a fault: for a first look at what kvoracle reports.
pub fn has(fault: &str) -> bool {
    std::env::args().nth(1).as_deref() == Some(fault)
}

fn main() {
    kvoracle::serve("mine", "0.1", &[cache::KIND]);
}
)"});
  files.push_back({"Cargo.toml", R"([package]
name = "cache"
version = "0.1.0"
edition = "2021"

[dependencies]
kvoracle = { path = "kvoracle" }
)"});
  const std::string subject = kind.name() + "@exec:target/release/cache";
  files.push_back(
      {"README.md", readme_text(kind, "cargo build --release", subject,
                                "src/cache.rs. src/operations.rs documents its methods")});
  files.push_back({".github/workflows/kvoracle.yml", ci_text("cargo build --release", subject)});
  return files;
}

// ---- C and C++ ----

std::string c_operations(const CacheKind& kind) {
  std::string text = fmt::format(
      "/* The operations of {}: their numbers in the greeting, and the places of their arguments\n"
      " * and results. */\n#ifndef OPERATIONS_H\n#define OPERATIONS_H\n\nenum operation {{\n",
      kind.name());
  std::string members;
  std::string names;
  for (const OpKind* op : kind.operations) {
    std::string constant = "OP_" + std::string(op->name);
    std::ranges::transform(constant, constant.begin(),
                           [](unsigned char c) { return std::toupper(c); });
    text += fmt::format("  {}, /* {} */\n", constant, op->doc);
    names += fmt::format(R"({}\"{}\")", names.empty() ? "" : ",", op->name);
    const auto add = [&](const Type& type, std::string_view what) {
      for (std::size_t i = 0; i < type.fields.size(); ++i) {
        const Field& field = type.fields[i];
        const Type& value = field.type->value_type();
        const std::string words =
            value.type_class == TypeClass::kEnum ? "; number of the word: " + words_of(value) : "";
        members +=
            fmt::format(" *   {:<9} {}  {}  {}{}{}\n", what, i, field.name, field.type->word(),
                        meaning_of(field).empty() ? "" : "; " + meaning_of(field), words);
      }
    };
    members += fmt::format(" * {}: {}\n", op->name, op->doc);
    add(*op->arguments, "argument");
    add(*op->returns, "result");
  }
  return text + "};\n\n/* For the greeting. */\n#define OPERATION_NAMES \"" + names + "\"\n\n/*\n" +
         members + " */\n#endif\n";
}

constexpr std::string_view kEmptyC = R"(/* A cache of kind @KIND@. */
#include <stdlib.h>

#include "kvoracle.h"
#include "operations.h"

typedef struct caches {
  int unused; /* what one case has */
} caches;

static void* open_case(const char* kind, const char* profile, const char* config) {
  (void)kind, (void)profile, (void)config;
  return calloc(1, sizeof(caches));
}

static void close_case(void* opened) { free(opened); }

static void call(void* opened, uint32_t operation, const kvoracle_value* arguments,
                 kvoracle_answer* answer) {
  (void)opened, (void)arguments;
  switch (operation) { /* one case for each operation of operations.h */
    default: answer->error = "not_supported";
  }
}

const kvoracle_library* kvoracle_library_of(void) {
  static const kvoracle_library library = {
      KVORACLE_VERSION,
      "{\"system\":\"mine\",\"version\":\"0.1\",\"kinds\":[{\"kind\":\"@KIND@\",\"operations\":["
      OPERATION_NAMES "]}]}",
      open_case, call, close_case};
  return &library;
}
)";

std::vector<ProjectFile> c_project(const CacheKind& kind, const std::string& file,
                                   std::string_view compile, std::string text) {
  std::vector<ProjectFile> files{
      {"kvoracle.h", std::string(project_part("tools/adapters/c/kvoracle.h"))},
      {file, std::move(text)},
      {"Makefile",
       fmt::format(
           "cache.so: {0} kvoracle.h operations.h\n\t{1} -O2 -Wall -Wextra -shared -fPIC {0} -o "
           "$@\n\ntest: cache.so\n\tkvoracle check \"{2}@lib:./cache.so\" --profile documented "
           "--conventions conventions --cases 200\n",
           file, compile, kind.name())}};
  const std::string subject = kind.name() + "@lib:./cache.so";
  files.push_back({"README.md", readme_text(kind, "make", subject,
                                            file + ". operations.h documents the operations")});
  files.push_back({".github/workflows/kvoracle.yml", ci_text("make", subject)});
  return files;
}

std::vector<ProjectFile> c_files(const CacheKind& kind) {
  return c_project(kind, "cache.c", "$(CC) -std=gnu11",
                   example_or(kind, "c", ".c", std::string(kEmptyC)));
}

std::vector<ProjectFile> cpp_files(const CacheKind& kind) {
  return c_project(kind, "cache.cpp", "$(CXX) -std=c++17",
                   example_or(kind, "cpp", ".cpp", std::string(kEmptyC)));
}

constexpr std::array<Language, 5> kLanguages{
    {{"python", "operations.py", python_operations, python_files},
     {"go", "operations.go", go_operations, go_files},
     {"rust", "src/operations.rs", rust_operations, rust_files},
     {"c", "operations.h", c_operations, c_files},
     {"cpp", "operations.h", c_operations, cpp_files}}};

}  // namespace

std::string rust_name(std::string_view name) {
  constexpr std::array<std::string_view, 9> kRustKeywords{"box",  "loop", "match", "move", "ref",
                                                          "type", "use",  "where", "yield"};
  return (std::ranges::find(kRustKeywords, name) != kRustKeywords.end() ? "r#" : "") +
         std::string(name);
}

std::string_view project_part(std::string_view path) {
  for (const traces::EmbeddedFile& file : project_parts())
    if (file.name == path) return file.text;
  KVO_CHECK(false);
  return {};
}

std::string python_name(std::string_view name) {
  constexpr std::array<std::string_view, 35> kPythonKeywords{
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  const bool keyword = std::ranges::find(kPythonKeywords, name) != kPythonKeywords.end();
  return std::string(name) + (keyword ? "_" : "");
}

std::string member_name(std::string_view name) {
  std::string out;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') out += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = c == '_';
  }
  return out;
}

std::span<const std::string_view> project_languages() {
  static const auto kNames = [] {
    std::array<std::string_view, kLanguages.size()> names;
    std::ranges::transform(kLanguages, names.begin(), &Language::name);
    return names;
  }();
  return kNames;
}

std::vector<ProjectFile> adapter_project(std::string_view language, const CacheKind& kind) {
  const Language& found = *std::ranges::find(kLanguages, language, &Language::name);
  std::vector<ProjectFile> files = found.others(kind);
  files.push_back({std::string(found.operations), found.operations_text(kind)});
  return files;
}

}  // namespace kvo::tools
