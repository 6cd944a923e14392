#include "reference/subjects.hpp"

#include "reference/views/operations.hpp"
#include "reference/views/paged_cache.hpp"

namespace kvo::views {

std::vector<Subject> references() {
  return {make_subject("reference", "row by row, views listed anew each time", make_paged)};
}

}  // namespace kvo::views
