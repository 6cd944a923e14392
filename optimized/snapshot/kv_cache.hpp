// optimized/snapshot/kv_cache.hpp: a cache of all tokens (MR-10 to MR-17) that appends in place,
// and whose snapshots share its rows.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "optimized/snapshot/rows_snapshot.hpp"
#include "optimized/snapshot/slots.hpp"

namespace kvo::optimized {

class SnapshotKvCache final : public snapshot::Cache {
 public:
  SnapshotKvCache(QuirkSet<snapshot::Quirk> quirks, const LiveBytesPtr& live)
      : quirks_(quirks), live_(live), slots_(live) {}

  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> update(
      const snapshot::Array& k, const snapshot::Array& v) override;
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
  [[nodiscard]] Status fits(const snapshot::Array& k, const snapshot::Array& v) const;
  [[nodiscard]] RowRange joined(const RowRange& first, const RowRange& second) const;

  QuirkSet<snapshot::Quirk> quirks_;
  LiveBytesPtr live_;
  SlotsPair slots_;
  std::int64_t offset_ = 0;
};

}  // namespace kvo::optimized
