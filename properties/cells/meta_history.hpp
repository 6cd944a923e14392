// properties/cells/meta_history.hpp: the history of a table of cells.
//
// Known are position, shift, owners and extra data of every cell, from what was set, moved,
// divided, copied and pasted; each answer must be what they say (LC-2 to LC-23). The quirks of
// profile original are followed.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"
#include "reference/cells/meta_operations.hpp"

namespace kvo::cells {

[[nodiscard]] std::unique_ptr<Oracle> meta_history(std::int64_t size, QuirkSet<Quirk> quirks);

}  // namespace kvo::cells
