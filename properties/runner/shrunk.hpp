// properties/runner/shrunk.hpp: a failing script made smaller, and what reports say of it.
#pragma once

#include <string>
#include <vector>

#include "properties/runner/run_case.hpp"

namespace kvo {

/// Sentences about a mismatch of `subject` with the plan's baseline on `script`; empty where there
/// are none. In this order:
///   the objection of the kind's oracle (plan.history) to the subject's own history;
///   what the oracle adds about the wanted and the shown result (Oracle::explain);
///   step and offset of the wanted and the shown row, where rows are stored as codes.
/// Runs the script once more on both in this process, and no other operation.
[[nodiscard]] std::vector<std::string> explained(const CasePlan& plan, const Subject& subject,
                                                 const Script& script, const Verdict& verdict);

/// The members of a config whose value is not the default, as JSON; "{}": all are.
[[nodiscard]] std::string config_text(const Record& config);

/// What an operation returned or how it failed, on one line of at most some hundred characters.
[[nodiscard]] std::string observation_text(const Observation& seen);

/// smaller_case by the simplest law that the script fails: the first of plan.simpler_laws, else
/// plan.law. A failure that plain lock-step shows is easier to understand than one of a law over
/// changed scripts or failed allocations.
[[nodiscard]] Smaller simplest_case(const CasePlan& plan, const Subject& subject, Script script,
                                    const ShrinkOptions& shrink);

/// A shrunk script as a case of a log, with what the baseline observes of it. `run`: false runs
/// nothing in this process, and records nothing.
[[nodiscard]] traces::Case log_of(const Smaller& smaller, const Subject& subject, bool run = true);

/// Puts a shrunk script, what reports say of it, and its log into the result of its subject.
void add_shrunk(const Smaller& smaller, const Subject& subject, SubjectResult& result,
                bool run = true);

}  // namespace kvo
