#include "properties/seeding/mutants.hpp"

#include <string>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/cells/faults.hpp"
#include "properties/seeded/optimized/cells/kv_cells_cache.hpp"
#include "properties/seeded/optimized/cells/meta_table.hpp"
#include "properties/seeded/optimized/cells/recurrent_cells.hpp"
#include "properties/seeded/reference/cells/plain_kv_cache.hpp"
#include "properties/seeded/reference/cells/plain_recurrent_cache.hpp"
#include "properties/seeded/reference/cells/plain_table_cache.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {
namespace {

// One of each kind.
std::vector<Subject> copies(std::string_view room, const std::string& variant,
                            const std::string& doc) {
  const auto all = [&](MakeTable table, MakeKv kv, MakeRecurrent recurrent) {
    return std::vector{make_meta_subject(variant, doc, std::move(table)),
                       make_subject(kv_kind(), variant, doc, kv),
                       make_subject(iswa_kind(), variant, doc, kv),
                       make_recurrent_subject(variant, doc, std::move(recurrent))};
  };
  if (room == "optimized")
    return all(optimized::seeded::CellsMetaTable::make, optimized::seeded::KvCellsCache::make,
               optimized::seeded::RecurrentCells::make);
  return all(seeded::PlainTable::make, seeded::PlainKv::make, seeded::PlainRecurrent::make);
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::cells
