#include "properties/seeding/mutants.hpp"

#include <memory>
#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/optimized/snapshot/prefix_trie.hpp"
#include "properties/seeded/optimized/snapshot/slots.hpp"
#include "properties/seeded/reference/snapshot/kv_cache.hpp"
#include "properties/seeded/reference/snapshot/make_trie.hpp"
#include "properties/seeded/reference/snapshot/recurrent_cache.hpp"
#include "properties/seeded/reference/snapshot/rotating_cache.hpp"
#include "properties/seeded/snapshot/faults.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {
namespace {

MakeCaches seeded_optimized_caches() {
  namespace seeded = optimized::seeded;
  return seeded::caches_over<seeded::SlotsPair>(std::make_shared<seeded::LiveBytes>());
}

// One of each kind that there is.
std::vector<Subject> copies(std::string_view room, const std::string& variant,
                            const std::string& doc) {
  const bool fast = room == "optimized";
  MakeCaches caches =
      fast ? seeded_optimized_caches()
           : caches_of<seeded::KvCache, seeded::RotatingCache, seeded::RecurrentCache>();
  std::vector<Subject> all = make_subjects(variant, doc, caches);
  if (fast) caches.recurrent = make_state_cache;
  all.push_back(make_trie_subject(variant, doc, caches,
                                  fast ? optimized::seeded::make_prefix_trie : seeded::make_trie));
  return all;
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::snapshot
