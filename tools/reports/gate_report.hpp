// tools/reports/gate_report.hpp: what a gate found, for people, for a merge request, and for CI
// systems.
#pragma once

#include <string>

#include <boost/json.hpp>

#include "tools/reports/gate.hpp"

namespace kvo::tools {

/// A line a regression and one that sums up; with `all`, a table of every time that was compared.
[[nodiscard]] std::string gate_text(const GateResult& result, bool all);

/// The same as Markdown: a heading, and a table of what is worse.
[[nodiscard]] std::string gate_markdown(const GateResult& result);

/// The members of the result `gate` of docs/schema.
[[nodiscard]] boost::json::object gate_json(const GateResult& result);

/// Writes JUnit XML: a suite for what was found and reached, and one for times; a test each subject
/// and operation. Throws FileError.
void write_gate_junit(const std::string& path, const GateResult& result);

}  // namespace kvo::tools
