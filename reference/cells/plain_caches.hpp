// reference/cells/plain_caches.hpp: the references of contract `cells`, which examine cell after
// cell.
#pragma once

#include <memory>

#include "reference/cells/cache.hpp"

namespace kvo::cells {

/// The references of `cells.meta`, of `cells.kv` and `cells.iswa`, and of `cells.recurrent`. @{
[[nodiscard]] Result<std::unique_ptr<CellTable>> make_plain_table(const TableOptions& options);
[[nodiscard]] Result<std::unique_ptr<KvCache>> make_plain_kv(const KvOptions& options);
[[nodiscard]] Result<std::unique_ptr<RecurrentMemory>> make_plain_recurrent(
    const RecurrentOptions& options);
/// @}

}  // namespace kvo::cells
