#include "properties/seeding/mutants.hpp"

#include <string>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/cells/faults.hpp"
#include "properties/seeded/optimized/cells/caches.hpp"
#include "properties/seeded/reference/cells/plain_caches.hpp"
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
    return all(optimized::seeded::make_cells_table, optimized::seeded::make_kv_cells,
               optimized::seeded::make_recurrent_cells);
  return all(seeded::make_plain_table, seeded::make_plain_kv, seeded::make_plain_recurrent);
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::cells
