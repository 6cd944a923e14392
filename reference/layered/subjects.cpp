#include "reference/subjects.hpp"

#include "reference/layered/cache.hpp"
#include "reference/layered/vector_cache.hpp"

namespace kvo::layered {

std::vector<Subject> references() {
  return {make_subject("reference", "std::vector a layer", VectorCache::make)};
}

}  // namespace kvo::layered
