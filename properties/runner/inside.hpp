// properties/runner/inside.hpp: what a failing script shows of the cache that a subject has inside.
#pragma once

#include <string>
#include <vector>

#include "properties/runner/run_case.hpp"

namespace kvo {

/// In words, where a subject over another cache leaves its baseline in operation `guilty` of the
/// script: the first step whose work or outcome differs, and the first operation that the cache
/// inside answers otherwise than the reference of its kind, which is given the same ones. Nothing
/// for a subject that nothing was put inside of, or without a plan.reference_of.
/// Requires  the subject lives through the script.
[[nodiscard]] std::vector<std::string> told_inside(const CasePlan& plan, const Subject& subject,
                                                   const Script& script, std::uint64_t guilty);

}  // namespace kvo
