#include "properties/arenas/arena_mutants.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "properties/arenas/faults.hpp"
#include "properties/seeded/optimized/block_pool/arena_pool.hpp"
#include "properties/seeded/optimized/layered/arena_cache.hpp"
#include "properties/seeded/optimized/provider/contiguous_arena_cache.hpp"
#include "properties/seeded/optimized/provider/paged_arena_cache.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/layered/operations.hpp"
#include "reference/provider/contiguous_operations.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::arenas {
namespace {

/// One of each kind, its caches and pools seeded copies.
std::vector<Subject> copies(const std::string& variant, const std::string& doc) {
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
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) {
    const std::vector<Subject> subjects =
        copies("mutant:" + std::string(fault.name), std::string(fault.fault));
    const auto found = std::ranges::find(
        subjects, fault.kind, [](const Subject& subject) { return subject.kind->name(); });
    KVO_CHECK(found != subjects.end());
    if (found->kind->contract == contract)
      made.push_back({.subject = seeding::with_fault(*found, fault),
                      .fault = std::string(fault.fault),
                      .origin = std::string(fault.origin),
                      .profile = fault.profile,
                      .longest_script = fault.longest_script});
  }
  return made;
}

std::vector<Subject> sound_copies() {
  return copies("copy_of_optimized", "no fault is on");
}

}  // namespace kvo::arenas
