#include "reference/subjects.hpp"

#include <memory>

#include "reference/snapshot/kv_cache.hpp"
#include "reference/snapshot/make_trie.hpp"
#include "reference/snapshot/recurrent_cache.hpp"
#include "reference/snapshot/rotating_cache.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {

std::unique_ptr<StateCache> make_state_cache(const StateSizes& sizes, QuirkSet<Quirk> quirks) {
  return std::make_unique<RecurrentCache>(sizes, quirks);
}

MakeCaches reference_caches() {
  return caches_of<KvCache, RotatingCache, RecurrentCache>();
}

std::vector<Subject> references() {
  const MakeCaches make = reference_caches();
  std::vector<Subject> all = make_subjects("reference", "by the rules", make);
  all.push_back(make_trie_subject("reference", "by the rules", make, make_trie));
  return all;
}

}  // namespace kvo::snapshot
