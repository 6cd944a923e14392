// optimized/snapshot/kv_cache.hpp: a cache of all tokens (MR-10 to MR-17) that appends in place,
// and whose snapshots share its rows.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "optimized/snapshot/block.hpp"
#include "optimized/snapshot/slots.hpp"

namespace kvo::optimized {

class SnapshotKvCache final : public snapshot::Cache {
 public:
  SnapshotKvCache(const StorageFormat& storage, QuirkSet<snapshot::Quirk> quirks,
                  const LiveBytesPtr& live)
      : encoder_(storage), quirks_(quirks), live_(live), slots_(live) {}

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
  using Own = RowsSnapshot<SnapshotKvCache>;
  /// An update with rows as they are stored.
  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> add(const snapshot::Array& k,
                                                                  const snapshot::Array& v);
  [[nodiscard]] Status fits(const snapshot::Array& k, const snapshot::Array& v) const;
  [[nodiscard]] RowRange joined(const RowRange& first, const RowRange& second) const;

  RowEncoder encoder_;
  QuirkSet<snapshot::Quirk> quirks_;
  LiveBytesPtr live_;
  SlotsPair slots_;
  std::int64_t offset_ = 0;
};

}  // namespace kvo::optimized
