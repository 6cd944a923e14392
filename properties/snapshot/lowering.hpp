// properties/snapshot/lowering.hpp: the parts of snapshot::lowerings().
#pragma once

#include <cstdint>
#include <vector>

#include "properties/replay/lowering.hpp"

namespace kvo::snapshot {

/// trie, on layers of two makes.
[[nodiscard]] std::vector<replay::Lowering> trie_lowerings();

/// Tokens of the rings of a case: half of what its mean sequence holds, so that most wrap.
[[nodiscard]] std::int64_t ring_window(const replay::LoweringInput& input);

}  // namespace kvo::snapshot
