// properties/cells/recurrent_history.hpp: what must be true of a recurrent memory, at any look.
//
// Judged  `used` counts the cells with owners; a tail is a cell that its sequence owns; extremes
// are
//         those of the cells, and what is asked for is what was last shown, while nothing has
//         changed; each token of a batch is in one ubatch, and an ubatch's sequences have cells of
//         their own, in a row (LC-90 to LC-94).
// Skipped positions below 0, and in profile original `used` (state_below_zero).
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {

[[nodiscard]] std::unique_ptr<Oracle> recurrent_history(const RecurrentConfig& config,
                                                        QuirkSet<Quirk> quirks);

}  // namespace kvo::cells
