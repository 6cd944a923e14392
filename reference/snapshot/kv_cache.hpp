// reference/snapshot/kv_cache.hpp: a cache of all tokens (MR-10 to MR-17).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "reference/snapshot/held.hpp"

namespace kvo::snapshot {

class KvCache final : public Cache {
 public:
  KvCache(const StorageFormat& storage, QuirkSet<Quirk> quirks)
      : storage_(storage), quirks_(quirks) {}

  [[nodiscard]] Result<std::shared_ptr<const Pair>> update(const Array& k,
                                                           const Array& v) override {
    const auto rows = as_stored(storage_, k, v, quirks_);
    if (!rows) return rows.error();
    return add(rows->k, rows->v);
  }
  [[nodiscard]] std::optional<State> state() const override;
  [[nodiscard]] std::int64_t offset() const override { return offset_; }
  void free() override;
  [[nodiscard]] Result<SnapshotPtr> snapshot(std::int64_t from) override;
  [[nodiscard]] Result<bool> restore(const SnapshotPtr& snapshot, std::int64_t target) override;
  [[nodiscard]] Result<SnapshotPtr> merge(const SnapshotPtr& parent,
                                          const SnapshotPtr& child) override;
  [[nodiscard]] Result<std::pair<SnapshotPtr, SnapshotPtr>> split(const SnapshotPtr& snapshot,
                                                                  std::int64_t at) override;

 private:
  using Own = Held<KvCache>;
  /// The same for rows as they are stored.
  [[nodiscard]] Result<std::shared_ptr<const Pair>> add(const Array& k, const Array& v);
  [[nodiscard]] Status fits(const Array& k, const Array& v) const;
  /// The buffer with rows behind token `offset` (MR-10).
  [[nodiscard]] Pair appended(std::int64_t offset, const Array& k, const Array& v) const;
  [[nodiscard]] SnapshotPtr held(std::int64_t from, std::int64_t to, const Pair& rows) const;

  StorageFormat storage_;
  QuirkSet<Quirk> quirks_;
  std::optional<Pair> buffer_;
  std::int64_t offset_ = 0;
};

}  // namespace kvo::snapshot
