#include "optimized/subjects.hpp"

#include "optimized/arena_pool.hpp"
#include "optimized/contiguous_arena_cache.hpp"
#include "optimized/layered_arena_cache.hpp"
#include "optimized/paged_arena_cache.hpp"

namespace kvo::optimized {

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects{
      layered::make_subject("optimized", "arenas that all layers grow through",
                            LayeredArenaCache::make),
      block_pool::make_subject("optimized", "one arena, cleared block by block when first used",
                               ArenaPool::make),
      provider::make_contiguous_subject("optimized", "one arena that is never cleared",
                                        ContiguousArenaCache::make),
      provider::make_paged_subject("optimized", "all positions of a block at once", ArenaPool::make,
                                   PagedArenaCache::make),
  };
  return kSubjects;
}

const block_pool::MakePool& pool_maker() {
  static const block_pool::MakePool kMake = ArenaPool::make;
  return kMake;
}

}  // namespace kvo::optimized
