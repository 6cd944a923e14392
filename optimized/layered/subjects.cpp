#include "optimized/layered/subjects.hpp"

#include "optimized/layered/arena_cache.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::optimized {

std::vector<Subject> layered_subjects() {
  return {layered::make_subject("optimized", "arenas that all layers grow through",
                                LayeredArenaCache::make)};
}

}  // namespace kvo::optimized
