// properties/snapshot/lowering.hpp: the parts of snapshot::lowerings().
#pragma once

#include <cstdint>
#include <vector>

#include "properties/replay/lowering.hpp"

namespace kvo::snapshot {

/// kv, rotating, recurrent.
[[nodiscard]] std::vector<replay::Lowering> cache_lowerings();
/// trie, on layers of two makes.
[[nodiscard]] std::vector<replay::Lowering> trie_lowerings();

/// What a replay costs: each call works on all rows of its sequence.
struct Cost {
  double other_calls;     ///< of a request, beside its chunks and decoded tokens
  double rows_a_request;  ///< that may be worked on, on average
};
/// In parts of that cost, and of that of 12,000 requests (Lowering::cost).
[[nodiscard]] double cost_by(const replay::LoweringInput& input, const Cost& cost);

/// Tokens of the rings of a case: half of what its mean sequence holds, so that most wrap.
[[nodiscard]] std::int64_t ring_window(const replay::LoweringInput& input);

}  // namespace kvo::snapshot
