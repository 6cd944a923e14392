// tools/verdict_junit.hpp: a summary as JUnit: a suite a subject, a test a law.
#pragma once

#include <vector>

#include "tools/junit.hpp"
#include "tools/verdict_report.hpp"

namespace kvo::tools {

/// The suites of a summary, and those of the options. A test fails with every kind of failure that
/// was kept of its subject and law, shrunk script and repeat command; it is an error if the subject
/// died, or the law judged nothing in the whole run, and skipped if the law judged nothing of this
/// subject. Times, those of the subject's own operations, are there if the options ask for them.
[[nodiscard]] std::vector<JunitSuite> junit_suites(const Summary& summary,
                                                   const ReportOptions& options);

}  // namespace kvo::tools
