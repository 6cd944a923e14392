#include "reference/subjects.hpp"

#include "reference/block_pool/stack_pool.hpp"
#include "reference/layered/vector_cache.hpp"
#include "reference/provider/contiguous_cache.hpp"
#include "reference/provider/paged_cache.hpp"

namespace kvo::reference {

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects{
      layered::make_subject("reference", "std::vector a layer", layered::VectorCache::make),
      block_pool::make_subject("reference", "std::vector of cells", block_pool::StackPool::make),
      provider::make_contiguous_subject("reference", "a zeroed K and V buffer a layer",
                                        provider::ContiguousCache::make),
      provider::make_paged_subject("reference", "position by position, channel by channel",
                                   block_pool::StackPool::make, provider::PagedCache::make),
  };
  return kSubjects;
}

}  // namespace kvo::reference
