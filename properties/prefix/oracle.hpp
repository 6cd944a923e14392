// properties/prefix/oracle.hpp: the oracle of contract `prefix`, from the definitions alone.
//
// Who put which tokens where says what a lookup may find, what may be handed out, and what all
// figures come to; see blocks_history.hpp and radix_history.hpp. Unit: an answer.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"

namespace kvo::prefix {

/// The oracle of a case; null for kinds of other contracts.
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);

}  // namespace kvo::prefix
