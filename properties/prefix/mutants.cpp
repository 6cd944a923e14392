#include <string>
#include <vector>

#include "properties/prefix/contract.hpp"
#include "properties/prefix/faults.hpp"
#include "properties/seeded/optimized/prefix/block_cache.hpp"
#include "properties/seeded/optimized/prefix/radix_cache.hpp"
#include "properties/seeded/reference/prefix/blocks_cache.hpp"
#include "properties/seeded/reference/prefix/radix_cache.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {
namespace {

// Of a kind, over seeded copies of the reference, or of what is optimized.
Subject copy_of(std::string_view kind, bool fast, std::string variant, std::string doc) {
  if (kind == "prefix.blocks")
    return make_blocks_subject(std::move(variant), std::move(doc),
                               fast ? MakeBlocks(optimized::seeded::PrefixBlockCache::make)
                                    : MakeBlocks(seeded::BlockManager::make));
  return make_radix_subject(std::move(variant), std::move(doc),
                            fast ? MakeRadix(optimized::seeded::PrefixRadixCache::make)
                                 : MakeRadix(seeded::RadixManager::make));
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) {
    Subject subject = copy_of(fault.kind, fault.edits.front().file.starts_with("optimized/"),
                              "mutant:" + std::string(fault.name), std::string(fault.fault));
    made.push_back({.subject = seeding::with_fault(std::move(subject), fault),
                    .fault = std::string(fault.fault),
                    .origin = std::string(fault.origin),
                    .profile = fault.profile,
                    .longest_script = fault.longest_script});
  }
  return made;
}

std::vector<Subject> sound_copies() {
  std::vector<Subject> all;
  for (const std::string_view kind : {"prefix.blocks", "prefix.radix"}) {
    all.push_back(copy_of(kind, false, "copy_of_reference", "no fault is on"));
    all.push_back(copy_of(kind, true, "copy_of_optimized", "no fault is on"));
  }
  return all;
}

}  // namespace kvo::prefix
