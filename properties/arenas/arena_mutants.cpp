#include "properties/arenas/arena_mutants.hpp"

#include <string>

#include "properties/arenas/faults.hpp"
#include "properties/seeded/optimized/block_pool/arena_pool.hpp"
#include "properties/seeded/optimized/layered/arena_cache.hpp"
#include "properties/seeded/optimized/provider/contiguous_arena_cache.hpp"
#include "properties/seeded/optimized/provider/paged_arena_cache.hpp"
#include "properties/seeding/mutants.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/layered/cache.hpp"
#include "reference/provider/contiguous_operations.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::arenas {
namespace {

// One of each kind, its caches and pools seeded copies.
std::vector<Subject> copies(std::string_view /*room*/, const std::string& variant,
                            const std::string& doc) {
  return {
      layered::make_subject(variant, doc, optimized::LayeredArenaCache::make),
      block_pool::make_subject(variant, doc, optimized::ArenaPool::make),
      provider::make_contiguous_subject(variant, doc, optimized::ContiguousArenaCache::make),
      provider::make_paged_subject(variant, doc, optimized::ArenaPool::make,
                                   optimized::PagedArenaCache::make),
  };
}

}  // namespace

std::vector<Mutant> mutants_of(std::string_view contract) {
  std::vector<Mutant> mutants = seeding::mutants_of(faults(), copies);
  std::erase_if(mutants,
                [&](const Mutant& mutant) { return mutant.subject.kind->contract != contract; });
  return mutants;
}

std::vector<Subject> sound_copies() {
  return seeding::sound_copies_of({"optimized"}, copies);
}

}  // namespace kvo::arenas
