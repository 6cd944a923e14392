// tools/apart.hpp: a case of which a process has died, each subject in a process of its own.
#pragma once

#include <cstdint>
#include <functional>

#include "properties/runner/run_case.hpp"
#include "tools/child.hpp"
#include "tools/run_file.hpp"

namespace kvo::tools {

/// Runs a case as run_case does, each subject in a process of its own: a crash, an end or a hang is
/// its verdict, with the shrunk script, and says nothing about the others. `keep` gets each
/// failure that has a script, with its part of the record.
[[nodiscard]] CaseRecord run_case_apart(
    std::uint64_t index, const CasePlan& plan, std::uint64_t shrink_attempts, ChildLimits limits,
    const std::function<void(const SubjectResult&, SubjectRecord&)>& keep);

/// run_script in a process of its own.
[[nodiscard]] Verdict run_script_apart(const CasePlan& plan, const Subject& subject,
                                       const Script& script, ChildLimits limits);

}  // namespace kvo::tools
