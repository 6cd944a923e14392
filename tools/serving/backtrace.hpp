// tools/serving/backtrace.hpp: where a process crashed, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/serving/isolated.hpp"

namespace kvo::tools {

/// A line a frame, "function at file:line", innermost first, from the crash to the harness's call
/// of the subject. The process that crashed was forked from this one, so that addresses are the
/// same.
[[nodiscard]] std::vector<std::string> backtrace_lines(const std::vector<std::uint64_t>& frames);
/// Puts the crashes of an answer into its record, in words.
void tell_crashes(CaseAnswer& answer);

}  // namespace kvo::tools
