// optimized/cells/caches.hpp: the caches of contract `cells`, fast.
#pragma once

#include <memory>

#include "reference/cells/cache.hpp"

namespace kvo::optimized {

/// `cells.meta`, `cells.kv` and `cells.iswa`, and `cells.recurrent`. Throw std::bad_alloc. @{
[[nodiscard]] Result<std::unique_ptr<cells::CellTable>> make_cells_table(
    const cells::TableOptions& options);
[[nodiscard]] Result<std::unique_ptr<cells::KvCache>> make_kv_cells(
    const cells::KvOptions& options);
[[nodiscard]] Result<std::unique_ptr<cells::RecurrentMemory>> make_recurrent_cells(
    const cells::RecurrentOptions& options);
/// @}

}  // namespace kvo::optimized
