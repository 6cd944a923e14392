#include "optimized/snapshot/subjects.hpp"

#include <memory>

#include "optimized/snapshot/kv_cache.hpp"
#include "optimized/snapshot/prefix_trie.hpp"
#include "optimized/snapshot/ring_cache.hpp"
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::optimized {

snapshot::MakeCaches snapshot_caches(const LiveBytesPtr& live) {
  using Quirks = QuirkSet<snapshot::Quirk>;
  return {.kv =
              [live](const StorageFormat& storage, Quirks quirks) {
                return std::make_unique<SnapshotKvCache>(storage, quirks, live);
              },
          .rotating =
              [live](std::int64_t window, const StorageFormat& storage, Quirks quirks) {
                return std::make_unique<SnapshotRingCache>(window, storage, quirks, live);
              },
          .recurrent = nullptr};
}

std::vector<Subject> snapshot_subjects() {
  snapshot::MakeCaches make = snapshot_caches(std::make_shared<LiveBytes>());
  std::vector<Subject> all =
      snapshot::make_subjects("optimized", "written in place, shared with snapshots", make);
  make.recurrent = snapshot::make_state_cache;
  all.push_back(snapshot::make_trie_subject(
      "optimized", "a compressed radix tree, with an index of what can be evicted", make,
      make_prefix_trie));
  return all;
}

}  // namespace kvo::optimized
