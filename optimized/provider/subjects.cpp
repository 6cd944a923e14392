#include "optimized/provider/subjects.hpp"

#include "optimized/block_pool/arena_pool.hpp"
#include "optimized/provider/contiguous_arena_cache.hpp"
#include "optimized/provider/paged_arena_cache.hpp"
#include "reference/provider/contiguous_operations.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::optimized {

std::vector<Subject> provider_subjects() {
  return {provider::make_contiguous_subject("optimized", "one arena that is never cleared",
                                            ContiguousArenaCache::make),
          provider::make_paged_subject("optimized", "all positions of a block at once",
                                       ArenaPool::make, PagedArenaCache::make)};
}

}  // namespace kvo::optimized
