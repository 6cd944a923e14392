#include "optimized/block_pool/subjects.hpp"

#include "optimized/block_pool/arena_pool.hpp"
#include "reference/block_pool/operations.hpp"

namespace kvo::optimized {

std::vector<Subject> block_pool_subjects() {
  return {block_pool::make_subject("optimized", "one arena, cleared block by block when first used",
                                   ArenaPool::make)};
}

}  // namespace kvo::optimized
