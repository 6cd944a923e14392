// reference/snapshot/rotating_cache.hpp: a ring of the newest tokens (MR-20 to MR-30).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "reference/snapshot/held.hpp"

namespace kvo::snapshot {

class RotatingCache final : public Cache {
 public:
  RotatingCache(std::int64_t window, const StorageFormat& storage, QuirkSet<Quirk> quirks)
      : window_(window), storage_(storage), quirks_(quirks) {}

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
  using Own = Held<RotatingCache>;
  /// What an update works on before it takes effect.
  struct Ring {
    std::optional<Pair> rows;
    std::int64_t offset = 0;
    std::int64_t idx = 0;  ///< slot that is written next
    [[nodiscard]] std::int64_t slots() const { return tokens_of(rows->k); }
  };
  /// The same for rows as they are stored.
  [[nodiscard]] Result<std::shared_ptr<const Pair>> add(const Array& k, const Array& v);
  [[nodiscard]] Status fits(const Array& k, const Array& v) const;
  void append_chunk(Ring& ring, const Array& k, const Array& v) const;
  void write_single(Ring& ring, const Array& k, const Array& v) const;

  std::int64_t window_;
  StorageFormat storage_;
  QuirkSet<Quirk> quirks_;
  std::shared_ptr<Pair> buffer_ = nullptr;  ///< shared with who keeps a chunk's rows (MR-23)
  std::int64_t offset_ = 0;
  std::int64_t idx_ = 0;
};

}  // namespace kvo::snapshot
