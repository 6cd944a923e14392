#include "reference/subjects.hpp"

#include "reference/cells/meta_operations.hpp"
#include "reference/cells/plain_kv_cache.hpp"
#include "reference/cells/plain_recurrent_cache.hpp"
#include "reference/cells/plain_table_cache.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {

std::vector<Subject> references() {
  return {make_meta_subject("reference", "cell by cell", PlainTable::make),
          make_subject(kv_kind(), "reference", "cell by cell", PlainKv::make),
          make_subject(iswa_kind(), "reference", "cell by cell, the halves in turn", PlainKv::make),
          make_recurrent_subject("reference", "cell by cell", PlainRecurrent::make)};
}

}  // namespace kvo::cells
