#include "reference/subjects.hpp"

#include "reference/prefix/blocks_cache.hpp"
#include "reference/prefix/operations.hpp"
#include "reference/prefix/radix_cache.hpp"

namespace kvo::prefix {

std::vector<Subject> references() {
  return {make_blocks_subject("reference", "by the rules", BlockManager::make),
          make_radix_subject("reference", "by the rules", RadixManager::make)};
}

}  // namespace kvo::prefix
