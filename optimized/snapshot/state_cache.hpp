// optimized/snapshot/state_cache.hpp: a state of fixed size (MR-40 to MR-49), whose arrays are
// those of the caller: a step copies and allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

class SnapshotStateCache final : public snapshot::StateCache {
 public:
  SnapshotStateCache(const snapshot::StateSizes& sizes, QuirkSet<snapshot::Quirk> quirks)
      : sizes_(sizes), quirks_(quirks) {}

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
  [[nodiscard]] Result<snapshot::Array> conv_state(std::int64_t batch, DType type) override;
  [[nodiscard]] Result<snapshot::Array> delta_state(std::int64_t batch, DType type) override;
  [[nodiscard]] Status set_conv_state(const snapshot::Array& state) override;
  [[nodiscard]] Status set_delta_state(const snapshot::Array& state) override;
  [[nodiscard]] Status advance(std::int64_t tokens) override;

 private:
  class Own;
  /// One of the two states. With kSharedReference a snapshot and the caches that it was restored
  /// into count together how many of them hold it.
  struct Held {  // NOLINT(bugprone-exception-escape): as Tensor
    std::optional<snapshot::Array> array = std::nullopt;
    std::shared_ptr<std::int64_t> holders = nullptr;  ///< null: it was never restored

    void put(const snapshot::Array& state);
    void drop();
  };
  [[nodiscard]] Status make_missing(std::int64_t batch, DType type);

  snapshot::StateSizes sizes_;
  QuirkSet<snapshot::Quirk> quirks_;
  Held conv_;
  Held delta_;
  std::int64_t offset_ = 0;
};

}  // namespace kvo::optimized
