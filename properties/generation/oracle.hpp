// properties/generation/oracle.hpp: the oracle of generations: the text without any cache.
//
// Each token is computed from the whole text so far, over rows that are kept in plain lists and
// thrown away again.
// Judged   every text that was returned or streamed; in the original only where no quirk has a say:
//          requests without stop strings. Of speculative decoding in profile documented: against
//          the target's text alone, whatever draft there is. In the original that every forward
//          stood behind all tokens that were fed before it; documented: that a call leaves the pool
//          as it was.
// Skipped  calls that end early by an error, a cancellation or a consumer; long texts.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"

namespace kvo::generation {

/// The oracle of a case; null for other kinds.
[[nodiscard]] std::unique_ptr<Oracle> recompute_oracle(const CacheKind& kind, const Setup& setup);

}  // namespace kvo::generation
