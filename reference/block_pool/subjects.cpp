#include "reference/subjects.hpp"

#include "reference/block_pool/operations.hpp"
#include "reference/block_pool/stack_pool.hpp"

namespace kvo::block_pool {

std::vector<Subject> references() {
  return {make_subject("reference", "std::vector of cells", StackPool::make)};
}

}  // namespace kvo::block_pool
