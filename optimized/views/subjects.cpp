#include "optimized/views/subjects.hpp"

#include "optimized/views/paged_views_cache.hpp"
#include "reference/views/operations.hpp"

namespace kvo::optimized {

std::vector<Subject> views_subjects() {
  return {views::make_subject("optimized", "blocks shared, shown where they lie, packed once",
                              make_paged_views)};
}

}  // namespace kvo::optimized
