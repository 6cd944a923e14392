// tools/commands/diff.hpp: what `diff` and `learn` say of a reference in its two profiles.
#pragma once

#include <cstdint>
#include <string>

#include "properties/campaign/contracts.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {

/// Prints by which quirks a reference in profile original parts from the rules, each with a script,
/// and writes `json` unless it is empty. Returns the exit status.
[[nodiscard]] int report_quirks(const Contracts& contracts, const Subject& reference,
                                std::uint64_t seed, std::uint64_t cases, const std::string& json,
                                const Limits& limits);

}  // namespace kvo::tools
