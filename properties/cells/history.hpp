// properties/cells/history.hpp: the histories of the kinds of contract `cells`. The file of each
// says what it judges.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/operations.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {

[[nodiscard]] std::unique_ptr<Oracle> kv_history(const KvOptions& options);

[[nodiscard]] std::unique_ptr<Oracle> meta_history(std::int64_t size, QuirkSet<Quirk> quirks);

[[nodiscard]] std::unique_ptr<Oracle> recurrent_history(const RecurrentConfig& config,
                                                        QuirkSet<Quirk> quirks);

}  // namespace kvo::cells
