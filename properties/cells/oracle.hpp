// properties/cells/oracle.hpp: the oracle of contract `cells`, from the definitions alone.
//
// Which token lies in which cell, and what became of it, says what each operation must answer; see
// meta_history.hpp, kv_history.hpp and recurrent_history.hpp. Unit: an answer.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"

namespace kvo::cells {

/// The oracle of a case; null for kinds of other contracts.
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);

}  // namespace kvo::cells
