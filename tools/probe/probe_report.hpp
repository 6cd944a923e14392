// tools/probe/probe_report.hpp: what `probe check` found, as text, as JUnit, and as cases of a run
// file.
#pragma once

#include <string>
#include <vector>

#include "properties/runner/case_result.hpp"
#include "tools/probe/check.hpp"
#include "tools/reports/junit.hpp"

namespace kvo::tools {

/// Commands that repeat a run.
struct ProbeRepeat {
  std::string run;
  std::string plan = {};  ///< one plan, whose number follows; empty: none can be
  [[nodiscard]] std::string of_plan(std::uint64_t number) const;
};

/// The verdict, each wrong answer with its evidence, and how to repeat them: lines.
[[nodiscard]] std::string probe_report_text(const ProbeReport& report, const ProbeRepeat& repeat);
/// What plans would show: faults and coverage, as tables.
[[nodiscard]] std::string probe_plans_text(const ProbeReport& report);

/// A test for each kind of plans, and one for each fault, which is skipped if no answer shows it.
[[nodiscard]] std::vector<JunitSuite> probe_suites(const ProbeReport& report,
                                                   const std::vector<PlanResult>& plans,
                                                   const ProbeRepeat& repeat);

/// The subject of all cases.
inline constexpr const char* kProbedEngine = "probe@engine";
/// A plan as a case: its kind is the law, and the faults that it would show are the labels.
[[nodiscard]] CaseResult probe_case(const PlanResult& plan, std::uint64_t index, std::uint64_t seed,
                                    const ProbeRepeat& repeat);

}  // namespace kvo::tools
