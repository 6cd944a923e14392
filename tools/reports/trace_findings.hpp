// tools/reports/trace_findings.hpp: faults of a request trace, as `trace info` and `run` report
// them.
#pragma once

#include <string>

#include "traces/figures/validate.hpp"

namespace kvo::tools {

/// "2 errors, 1 warning"
[[nodiscard]] std::string findings_text(const traces::Validation& validation);

/// One line about a trace with errors: which ones, how many, and the command that shows them.
/// Empty: there are none. `file`: as on the command line.
[[nodiscard]] std::string errors_line(const std::string& file,
                                      const traces::Validation& validation);

/// Writes all findings to standard error, a line each.
void print_findings(const std::string& name, const traces::Validation& validation);

}  // namespace kvo::tools
