// cuda/snapshot/ring_device_cache.hpp: `snapshot.rotating` with its rows on a device (MR-20 to
// MR-30).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cuda/snapshot/device_slots.hpp"

namespace kvo::cuda {

/// A ring that is written in place, slot by slot, and put in order, by one launch a side, where a
/// chunk comes behind rows that have wrapped (MR-21). Snapshots share its rows until a slot that
/// they see is overwritten. Errors as those of SnapshotKvDeviceCache.
class SnapshotRingDeviceCache final : public snapshot::Cache {
 public:
  /// Stores rows in a format that device_stores.
  SnapshotRingDeviceCache(const std::shared_ptr<Device>& device, std::int64_t window,
                          const StorageFormat& storage, QuirkSet<snapshot::Quirk> quirks)
      : window_(window),
        storage_(storage),
        quirks_(quirks),
        sides_(device, std::max<std::int64_t>(window, 1)) {}

  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> update(
      const snapshot::Array& k, const snapshot::Array& v) override {
    const auto rows = snapshot::as_stored(storage_, k, v, quirks_);
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
  using Own = RowsSnapshot<SnapshotRingDeviceCache>;
  /// An update with rows as they are stored.
  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> add(const snapshot::Array& k,
                                                                  const snapshot::Array& v);

  std::int64_t window_;
  StorageFormat storage_;
  QuirkSet<snapshot::Quirk> quirks_;
  DeviceSides sides_;
  std::int64_t offset_ = 0;
  std::int64_t idx_ = 0;                     ///< slot that is written next
  std::weak_ptr<snapshot::Pair> live_ = {};  ///< a chunk's rows that show the ring of now (MR-23)
};

}  // namespace kvo::cuda
