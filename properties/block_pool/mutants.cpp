#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/block_pool/faults.hpp"
#include "properties/seeded/optimized/block_pool/arena_pool.hpp"
#include "properties/seeded/reference/block_pool/stack_pool.hpp"
#include "reference/block_pool/operations.hpp"

namespace kvo::block_pool {

std::vector<Mutant> mutants() {
  return seeding::mutants_of(
      kFaults, [](std::string_view room, const std::string& variant, const std::string& doc) {
        return std::vector{make_subject(
            variant, doc,
            room == "optimized" ? optimized::seeded::ArenaPool::make : seeded::StackPool::make)};
      });
}

}  // namespace kvo::block_pool
