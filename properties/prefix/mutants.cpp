#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/optimized/prefix/block_cache.hpp"
#include "properties/seeded/optimized/prefix/radix_cache.hpp"
#include "properties/seeded/prefix/faults.hpp"
#include "properties/seeded/reference/prefix/blocks_cache.hpp"
#include "properties/seeded/reference/prefix/radix_cache.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {
namespace {

// One of each kind.
std::vector<Subject> copies(std::string_view room, const std::string& variant,
                            const std::string& doc) {
  if (room == "optimized")
    return {make_blocks_subject(variant, doc, optimized::seeded::PrefixBlockCache::make),
            make_radix_subject(variant, doc, optimized::seeded::PrefixRadixCache::make)};
  return {make_blocks_subject(variant, doc, seeded::BlockManager::make),
          make_radix_subject(variant, doc, seeded::RadixManager::make)};
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::prefix
