// properties/runner/shrinker.hpp: the smallest script that still fails.
//
// Operations are total, so any of them may be left out. Steps, each tried until none helps: drop
// chunks of halving size, drop single operations, end earlier with a query, make the numbers of one
// operation smaller, give what several operations name (a cache, a layer) the number 0.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/contract/describe/operation.hpp"

namespace kvo {

using Script = std::vector<Op>;

/// Calls candidate(script) for simpler scripts, the boldest first, until it returns true.
void for_each_simpler(const Script& script, const std::function<bool(const Script&)>& candidate);

/// Of each operation that returns something, one with all numbers 0; those that need more are left
/// out.
[[nodiscard]] Script simplest_queries(const std::vector<const OpKind*>& operations);

/// A script that fails and of which no simpler candidate does. `fails` is asked at most
/// `most_attempts` times; it must be deterministic. `queries` may end the script.
/// Requires  fails(script).
[[nodiscard]] Script shrink_script(Script script, const std::function<bool(const Script&)>& fails,
                                   std::uint64_t most_attempts = 20'000,
                                   const Script& queries = {});

}  // namespace kvo
