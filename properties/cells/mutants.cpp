#include <string>
#include <utility>
#include <vector>

#include "properties/cells/contract.hpp"
#include "properties/cells/faults.hpp"
#include "properties/seeded/optimized/cells/kv_cells_cache.hpp"
#include "properties/seeded/optimized/cells/meta_table.hpp"
#include "properties/seeded/optimized/cells/recurrent_cells.hpp"
#include "properties/seeded/reference/cells/plain_kv_cache.hpp"
#include "properties/seeded/reference/cells/plain_recurrent_cache.hpp"
#include "properties/seeded/reference/cells/plain_table_cache.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {
namespace {

// Of a kind, over seeded copies of the reference, or of what is optimized.
Subject copy_of(std::string_view kind, bool fast, std::string variant, std::string doc) {
  if (kind == "cells.meta")
    return make_meta_subject(std::move(variant), std::move(doc),
                             fast ? MakeTable(optimized::seeded::CellsMetaTable::make)
                                  : MakeTable(seeded::PlainTable::make));
  if (kind == "cells.recurrent")
    return make_recurrent_subject(std::move(variant), std::move(doc),
                                  fast ? MakeRecurrent(optimized::seeded::RecurrentCells::make)
                                       : MakeRecurrent(seeded::PlainRecurrent::make));
  return make_subject(
      kind == "cells.kv" ? kv_kind() : iswa_kind(), std::move(variant), std::move(doc),
      fast ? MakeKv(optimized::seeded::KvCellsCache::make) : MakeKv(seeded::PlainKv::make));
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) {
    Subject subject = copy_of(fault.kind, fault.edits.front().file.starts_with("optimized/"),
                              "mutant:" + std::string(fault.name), std::string(fault.fault));
    made.push_back({.subject = seeding::with_fault(std::move(subject), fault),
                    .fault = std::string(fault.fault),
                    .origin = std::string(fault.origin),
                    .profile = fault.profile,
                    .longest_script = fault.longest_script});
  }
  return made;
}

std::vector<Subject> sound_copies() {
  std::vector<Subject> all;
  for (const std::string_view kind : {"cells.meta", "cells.kv", "cells.iswa", "cells.recurrent"})
    for (const bool fast : {false, true})
      all.push_back(
          copy_of(kind, fast, fast ? "copy_of_optimized" : "copy_of_reference", "no fault is on"));
  return all;
}

}  // namespace kvo::cells
