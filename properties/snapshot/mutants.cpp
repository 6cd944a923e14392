#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "properties/seeded/optimized/snapshot/kv_cache.hpp"
#include "properties/seeded/optimized/snapshot/prefix_trie.hpp"
#include "properties/seeded/optimized/snapshot/ring_cache.hpp"
#include "properties/seeded/optimized/snapshot/state_cache.hpp"
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

MakeCaches seeded_reference_caches() {
  return {.kv = [](QuirkSet<Quirk> quirks) { return std::make_unique<seeded::KvCache>(quirks); },
          .rotating =
              [](std::int64_t window, QuirkSet<Quirk> quirks) {
                return std::make_unique<seeded::RotatingCache>(window, quirks);
              },
          .recurrent =
              [](const StateSizes& sizes, QuirkSet<Quirk> quirks) {
                return std::make_unique<seeded::RecurrentCache>(sizes, quirks);
              }};
}

// One of each kind, its caches seeded copies of the reference.
std::vector<Subject> reference_copies(const std::string& variant, const std::string& doc) {
  std::vector<Subject> all = make_subjects(variant, doc, seeded_reference_caches());
  all.push_back(make_trie_subject(variant, doc, seeded_reference_caches(), seeded::make_trie));
  return all;
}

MakeCaches seeded_optimized_caches() {
  namespace seeded = optimized::seeded;
  const auto live = std::make_shared<seeded::LiveBytes>();
  return {.kv =
              [live](QuirkSet<Quirk> quirks) {
                return std::make_unique<seeded::SnapshotKvCache>(quirks, live);
              },
          .rotating =
              [live](std::int64_t window, QuirkSet<Quirk> quirks) {
                return std::make_unique<seeded::SnapshotRingCache>(window, quirks, live);
              },
          .recurrent =
              [](const StateSizes& sizes, QuirkSet<Quirk> quirks) {
                return std::make_unique<seeded::SnapshotStateCache>(sizes, quirks);
              }};
}

// Those that are seeded copies of the optimized ones.
std::vector<Subject> optimized_copies(const std::string& variant, const std::string& doc) {
  std::vector<Subject> all = make_subjects(variant, doc, seeded_optimized_caches());
  all.push_back(make_trie_subject(variant, doc, seeded_optimized_caches(),
                                  optimized::seeded::make_prefix_trie));
  return all;
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) {
    const bool fast = fault.edits.front().file.starts_with("optimized/");
    const std::vector<Subject> subjects = (fast ? optimized_copies : reference_copies)(
        "mutant:" + std::string(fault.name), std::string(fault.fault));
    const auto found = std::ranges::find(
        subjects, fault.kind, [](const Subject& subject) { return subject.kind->name(); });
    KVO_CHECK(found != subjects.end());
    made.push_back({.subject = seeding::with_fault(*found, fault),
                    .fault = std::string(fault.fault),
                    .origin = std::string(fault.origin),
                    .profile = fault.profile,
                    .longest_script = fault.longest_script});
  }
  return made;
}

std::vector<Subject> sound_copies() {
  std::vector<Subject> all = reference_copies("copy_of_reference", "no fault is on");
  for (Subject& copy : optimized_copies("copy_of_optimized", "no fault is on"))
    all.push_back(std::move(copy));
  return all;
}

}  // namespace kvo::snapshot
