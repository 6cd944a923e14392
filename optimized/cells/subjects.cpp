#include "optimized/cells/subjects.hpp"

#include "optimized/cells/kv_cells_cache.hpp"
#include "optimized/cells/meta_table.hpp"
#include "optimized/cells/recurrent_cells.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::optimized {

std::vector<Subject> cells_subjects() {
  return {cells::make_meta_subject("optimized", "bitmaps, and each sequence's cells by position",
                                   CellsMetaTable::make),
          cells::make_subject(cells::kv_kind(), "optimized",
                              "bitmaps, and each sequence's cells by position", KvCellsCache::make),
          cells::make_subject(cells::iswa_kind(), "optimized",
                              "bitmaps, and each sequence's cells by position", KvCellsCache::make),
          cells::make_recurrent_subject("optimized", "sets of bits; nothing is rehearsed",
                                        RecurrentCells::make)};
}

}  // namespace kvo::optimized
