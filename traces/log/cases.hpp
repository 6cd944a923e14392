// traces/log/cases.hpp: rule cases, which are written by hand as text.
//
// A file of rule cases (docs/cases.md) states single rules of a contract: operations with the
// answers that every cache must give. It is read whole, into cases of a log.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/log/kvlog.hpp"

namespace kvo::traces {

/// Whether a file of that name has rule cases, not an operation log.
[[nodiscard]] bool holds_rule_cases(std::string_view name);

/// The text of a file of rule cases.
/// Errors   as TextSource; more than 16 MiB
[[nodiscard]] TraceResult<std::string> text_of(TextSource source);

/// The cases of a text. A case is there once for each kind, value of its loops and profile that it
/// names; its name says which.
/// Errors   an unknown kind, operation, argument, config field or answer; a rule that is no rule
///          number; a loop without values, operations or end; two answers for one profile, or none;
///          more than 100,000 operations of a case or 1,000,000 of a file. Each names file, line
///          and word, and says what is allowed.
[[nodiscard]] TraceResult<std::vector<Case>> read_cases(std::string_view name,
                                                        std::string_view text,
                                                        const FindKind& find);

/// What a reference observes of the operations of a case.
using ObserveCase = std::function<std::vector<Observation>(const Case&)>;

/// The text with the answers that `observe` gives: of profile documented where they differ from
/// what is written, and those that are written as `?`. Nothing else changes.
/// Errors   as read_cases; turns of a loop that have different answers; a case of which `observe`
///          observes less than all operations
[[nodiscard]] TraceResult<std::string> updated_cases(std::string_view name, std::string_view text,
                                                     const FindKind& find,
                                                     const ObserveCase& observe);

/// A case as text, for profile original; with `documented`, what is observed there, for both.
/// Ends with an empty line.
[[nodiscard]] std::string case_text(const Case& written,
                                    const std::vector<Observation>* documented = nullptr);

}  // namespace kvo::traces
