// cuda/snapshot/rows_snapshot.hpp: snapshots that share rows on a device with the cache that they
// are of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "cuda/snapshot/row_block.hpp"
#include "reference/contract/values/thrown.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::cuda {

/// What a read-back brought. Throws what demand() throws where it failed.
[[nodiscard]] inline snapshot::Pair demanded(Result<snapshot::Pair> read) {
  if (!read) demand(read.error());
  return std::move(*read);
}

/// A snapshot of rows. `Issuer` sets the kinds apart (MR-5). It is taken in the same time whatever
/// it holds: the rows stay where they are, on the device, and are read back when they are looked
/// at.
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

  RowsSnapshot(const Place& place, std::shared_ptr<Device> device, RowRange k, RowRange v,
               QuirkSet<snapshot::Quirk> quirks)
      : place_(place),
        device_(std::move(device)),
        k_(std::move(k)),
        v_(std::move(v)),
        quirks_(quirks) {}

  /// Throws ErrorThrown when the device fails.
  [[nodiscard]] snapshot::Content content() const override {
    snapshot::Pair shown = demanded(read_rows(*device_, k_, v_));
    return {.from = place_.from,
            .to = place_.to,
            .idx = place_.idx,
            .first = std::move(shown.k),
            .second = std::move(shown.v)};
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    if (closed_) return snapshot::closed_error(quirks_);
    closed_ = true;
    k_ = v_ = {};
    return {};
  }
  /// Closed, but its content can still be looked at (MR-28, profile original).
  void close_and_keep() { closed_ = true; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const RowRange& k() const { return k_; }
  [[nodiscard]] const RowRange& v() const { return v_; }

 private:
  Place place_;
  std::shared_ptr<Device> device_;
  RowRange k_;
  RowRange v_;
  QuirkSet<snapshot::Quirk> quirks_;
  bool closed_ = false;
};

}  // namespace kvo::cuda
