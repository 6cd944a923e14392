// cuda/snapshot/kv_device_cache.hpp: `snapshot.kv` with its rows on a device (MR-10 to MR-17).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "cuda/snapshot/device_slots.hpp"

namespace kvo::cuda {

/// Appends in place; snapshots share its rows until they are overwritten, and a restore of what is
/// there copies nothing. Errors beside those of the contract: kOutOfMemory; the device's own, which
/// calls that can answer none throw as ErrorThrown.
class SnapshotKvDeviceCache final : public snapshot::Cache {
 public:
  /// Stores rows in a format that device_stores.
  SnapshotKvDeviceCache(const std::shared_ptr<Device>& device, const StorageFormat& storage,
                        QuirkSet<snapshot::Quirk> quirks)
      : storage_(storage), quirks_(quirks), sides_(device) {}

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
  using Own = RowsSnapshot<SnapshotKvDeviceCache>;
  /// An update with rows as they are stored.
  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> add(const snapshot::Array& k,
                                                                  const snapshot::Array& v);
  [[nodiscard]] Status fits(const snapshot::Array& k, const snapshot::Array& v) const;
  /// One range of two, whose rows are copied if they do not lie behind one another.
  [[nodiscard]] Result<RowRange> joined(const RowRange& first, const RowRange& second) const;

  StorageFormat storage_;
  QuirkSet<snapshot::Quirk> quirks_;
  DeviceSides sides_;
  std::int64_t offset_ = 0;
};

}  // namespace kvo::cuda
