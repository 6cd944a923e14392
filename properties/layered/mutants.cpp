#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/layered/faults.hpp"
#include "properties/seeded/optimized/layered/arena_cache.hpp"
#include "properties/seeded/reference/layered/vector_cache.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, [](std::string_view room, const std::string& variant,
                                         const std::string& doc) {
    return std::vector{make_subject(variant, doc,
                                    room == "optimized" ? optimized::seeded::LayeredArenaCache::make
                                                        : seeded::VectorCache::make)};
  });
}

}  // namespace kvo::layered
