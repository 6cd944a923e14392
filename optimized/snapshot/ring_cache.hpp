// optimized/snapshot/ring_cache.hpp: a ring of the newest tokens (MR-20 to MR-30) that is written
// in place. Only a chunk behind single tokens that have wrapped puts it in order, because the rules
// show it so (MR-21).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "optimized/snapshot/block.hpp"
#include "optimized/snapshot/slots.hpp"

namespace kvo::optimized {

class SnapshotRingCache final : public snapshot::Cache {
 public:
  SnapshotRingCache(std::int64_t window, const StorageFormat& storage,
                    QuirkSet<snapshot::Quirk> quirks, const LiveBytesPtr& live)
      : window_(window),
        encoder_(storage),
        quirks_(quirks),
        slots_(live, std::max<std::int64_t>(window, 1)) {}

  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> update(
      const snapshot::Array& k, const snapshot::Array& v) override {
    if (!encoder_.encodes()) return add(k, v);
    const auto rows = encoder_.encoded(k, v, quirks_);
    if (!rows) return rows.error();
    return add(rows->k, rows->v);
  }
  [[nodiscard]] std::optional<snapshot::State> state() const override;
  [[nodiscard]] std::int64_t offset() const override { return offset_; }
  void free() override;
  [[nodiscard]] Result<snapshot::SnapshotPtr> snapshot(std::int64_t from) override;
  [[nodiscard]] Result<bool> restore(const snapshot::SnapshotPtr& snapshot,
                                     std::int64_t target) override;
  [[nodiscard]] Result<snapshot::SnapshotPtr> merge(const snapshot::SnapshotPtr& parent,
                                                    const snapshot::SnapshotPtr& child) override;
  [[nodiscard]] Result<std::pair<snapshot::SnapshotPtr, snapshot::SnapshotPtr>> split(
      const snapshot::SnapshotPtr& snapshot, std::int64_t at) override;

 private:
  using Own = RowsSnapshot<SnapshotRingCache>;
  /// An update with rows as they are stored.
  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> add(const snapshot::Array& k,
                                                                  const snapshot::Array& v);
  std::int64_t window_;
  RowEncoder encoder_;
  QuirkSet<snapshot::Quirk> quirks_;
  SlotsPair slots_;
  std::int64_t offset_ = 0;
  std::int64_t idx_ = 0;                     ///< slot that is written next
  std::weak_ptr<snapshot::Pair> live_ = {};  ///< a chunk's rows that show the ring of now (MR-23)
};

}  // namespace kvo::optimized
