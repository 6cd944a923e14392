// tools/adapters/style.hpp: a failing script as a test in the style of the project that has the
// cache.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {

/// "pytest-vllm" and the others of tools/adapters/styles.
[[nodiscard]] std::vector<std::string> style_names();

/// A test that carries out the operations of a case with the project's own interface, and fails if
/// the last one does not return the last of `returned`, which has what each of them should return.
/// `heading`: what is wrong.
/// Throws UsageError: the style has no words for the kind, an operation, an argument that is given,
/// or what is returned. Requires one of style_names(); the case has an operation.
[[nodiscard]] std::string styled_test(std::string_view style, const traces::Case& failing,
                                      std::span<const Observation> returned,
                                      const std::string& heading);

}  // namespace kvo::tools
