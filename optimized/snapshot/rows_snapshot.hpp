// optimized/snapshot/rows_snapshot.hpp: snapshots that share the rows of the cache that they are
// of.
#pragma once

#include <cstdint>
#include <optional>

#include "optimized/snapshot/block.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

/// A snapshot of rows. `Issuer` sets the kinds apart (MR-5). It is taken in the same time whatever
/// it holds: the rows stay where they are.
template <class Issuer>
class RowsSnapshot final : public snapshot::Snapshot {
 public:
  /// Where in the sequence its rows stand, and what a ring needs.
  struct Place {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::optional<std::int64_t> idx = std::nullopt;
    std::int64_t window = 0;
  };

  RowsSnapshot(const Place& place, RowRange k, RowRange v, QuirkSet<snapshot::Quirk> quirks)
      : place_(place), k_(std::move(k)), v_(std::move(v)), quirks_(quirks) {}

  [[nodiscard]] snapshot::Content content() const override {
    return {.from = place_.from,
            .to = place_.to,
            .idx = place_.idx,
            .first = k().array(),
            .second = v().array()};
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    if (closed_) return snapshot::closed_error(quirks_);
    closed_ = true;
    k_.drop();
    v_.drop();
    return {};
  }
  /// Closed, but its content can still be looked at (MR-28, profile original).
  void close_and_keep() { closed_ = true; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const RowRange& k() const { return k_.rows(); }
  [[nodiscard]] const RowRange& v() const { return v_.rows(); }

 private:
  Place place_;
  KeptRows k_;
  KeptRows v_;
  QuirkSet<snapshot::Quirk> quirks_;
  bool closed_ = false;
};

}  // namespace kvo::optimized
