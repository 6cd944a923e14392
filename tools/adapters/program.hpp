// tools/adapters/program.hpp: a failing script as a program in the language of its cache.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "reference/contract/subject/subject.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {

/// A value of an operation log as a literal of Python.
[[nodiscard]] std::string python_literal(const boost::json::value& value);

/// The languages of programs: "python", "pytest", "go", "rust", "c", "cpp", and "text" for people.
[[nodiscard]] std::span<const std::string_view> program_languages();

/// A program that carries out the operations of a case on a cache of its reader, and fails if the
/// last one does not return the last of `returned`, which has what each of them should return. It
/// needs that cache and the language, and nothing of kvoracle. `difference`: how it failed, for the
/// comment at its head. `cache`: where the program gets the cache from, in Python "MODULE:CLASS";
/// empty: as in projects of `adapter new`. Requires  one of program_languages() or style_names();
/// the case has an operation.
[[nodiscard]] std::string program_text(std::string_view language, const traces::Case& failing,
                                       const Setup& setup, std::span<const Observation> returned,
                                       const std::string& difference, const std::string& cache);

}  // namespace kvo::tools
