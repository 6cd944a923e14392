#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "properties/seeded/reference/snapshot/kv_cache.hpp"
#include "properties/seeded/reference/snapshot/make_trie.hpp"
#include "properties/seeded/reference/snapshot/recurrent_cache.hpp"
#include "properties/seeded/reference/snapshot/rotating_cache.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "properties/snapshot/contract.hpp"
#include "properties/snapshot/faults.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::snapshot {
namespace {

// One of each kind, its caches seeded copies.
std::vector<Subject> copies(const std::string& variant, const std::string& doc) {
  const MakeCaches make{
      .kv = [](QuirkSet<Quirk> quirks) { return std::make_unique<seeded::KvCache>(quirks); },
      .rotating =
          [](std::int64_t window, QuirkSet<Quirk> quirks) {
            return std::make_unique<seeded::RotatingCache>(window, quirks);
          },
      .recurrent =
          [](const StateSizes& sizes, QuirkSet<Quirk> quirks) {
            return std::make_unique<seeded::RecurrentCache>(sizes, quirks);
          }};
  std::vector<Subject> all = make_subjects(variant, doc, make);
  all.push_back(make_trie_subject(variant, doc, make, seeded::make_trie));
  return all;
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) {
    const std::vector<Subject> subjects =
        copies("mutant:" + std::string(fault.name), std::string(fault.fault));
    const auto found = std::ranges::find(
        subjects, fault.kind, [](const Subject& subject) { return subject.kind->name(); });
    KVO_CHECK(found != subjects.end());
    made.push_back({.subject = seeding::with_fault(*found, fault),
                    .fault = std::string(fault.fault),
                    .origin = std::string(fault.origin)});
  }
  return made;
}

std::vector<Subject> sound_copies() {
  return copies("copy_of_reference", "no fault is on");
}

}  // namespace kvo::snapshot
