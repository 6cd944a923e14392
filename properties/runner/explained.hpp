// properties/runner/explained.hpp: what leads to the cause of a mismatch, in sentences.
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

}  // namespace kvo
