#include "reference/subjects.hpp"

#include "reference/cells/meta_operations.hpp"
#include "reference/cells/plain_caches.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {

std::vector<Subject> references() {
  return {make_meta_subject("reference", "cell by cell", make_plain_table),
          make_subject(kv_kind(), "reference", "cell by cell", make_plain_kv),
          make_subject(iswa_kind(), "reference", "cell by cell, the halves in turn", make_plain_kv),
          make_recurrent_subject("reference", "cell by cell", make_plain_recurrent)};
}

}  // namespace kvo::cells
