// traces/log/conventions_file.hpp: conventions as text, one row a line.
//
//   kind layered.vector                              whose conventions follow
//   refuses append out_of_range as precondition      the class of an error
//   refuses append precondition as bad_position: no layer #
//                                                    the same, only for errors of that text
//   accepts new out_of_range: sizes overflow         carries out what the rules refuse
//   config attention only default "full"             the values of a member of configs
//   config window plus 1                             what the cache counts beyond the rules
//   without remove                                   an operation that the cache lacks
//   copies                                           a convention by name (named_conventions)
// A code that contains a blank is in quotes. Empty lines and lines that begin with '#' say nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/conventions.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::traces {

/// The conventions of one kind.
struct KindConventions {
  const CacheKind* kind = nullptr;
  Conventions conventions = {};
};

/// Reads a file of conventions.
/// Errors  as TextSource; no kind before the first row; an unknown kind, convention, operation or
///         code; two rows about one error that contradict each other. Each names file, line and
///         field.
[[nodiscard]] TraceResult<std::vector<KindConventions>> read_conventions(std::string name,
                                                                         std::string_view text,
                                                                         const FindKind& find);

/// Whether a cache may carry out what the rules refuse with this code: calls that no engine makes.
/// Not for a lack of space, and not for reasons of one contract.
[[nodiscard]] bool may_be_accepted(std::string_view code);

/// The rows of conventions, sorted.
[[nodiscard]] std::vector<std::string> convention_rows(const Conventions& conventions);

/// The rows of a kind as text, sorted.
[[nodiscard]] std::string conventions_text(const KindConventions& written);

/// One row without its end: "refuses append out_of_range as precondition".
[[nodiscard]] std::string convention_text(const RefusalConvention& row);
[[nodiscard]] std::string convention_text(const ConfigConvention& row);

}  // namespace kvo::traces
