#include "optimized/prefix/subjects.hpp"

#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/radix_cache.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::optimized {

std::vector<Subject> prefix_subjects() {
  return {
      prefix::make_blocks_subject("optimized", "contents by number, free blocks in a list of links",
                                  PrefixBlockCache::make),
      prefix::make_radix_subject("optimized",
                                 "edges in one index, leaves in a heap, runs in a pool",
                                 PrefixRadixCache::make)};
}

}  // namespace kvo::optimized
