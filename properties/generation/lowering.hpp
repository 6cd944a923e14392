// properties/generation/lowering.hpp: requests of a trace as prompts.
//
// Policy   each request is one call, in order of arrival: its prompt has as many tokens as the
//          request's, its text at most as many as the answer. Blocks of a trace that have one id
//          are the same tokens, so that prompts share prefixes as those of the trace do.
#pragma once

#include <vector>

#include "properties/replay/lowering.hpp"

namespace kvo::generation {

/// Of `contiguous`, `paged` and `speculative`.
[[nodiscard]] std::vector<replay::Lowering> lowerings();

}  // namespace kvo::generation
