// reference/snapshot/recurrent_cache.hpp: a state of fixed size (MR-40 to MR-49).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

class RecurrentCache final : public StateCache {
 public:
  RecurrentCache(const StateSizes& sizes, QuirkSet<Quirk> quirks)
      : sizes_(sizes), quirks_(quirks) {}

  [[nodiscard]] Result<std::shared_ptr<const Pair>> update(const Array& k, const Array& v) override;
  [[nodiscard]] std::optional<State> state() const override;
  [[nodiscard]] std::int64_t offset() const override { return offset_; }
  void free() override;
  [[nodiscard]] Result<SnapshotPtr> snapshot(std::int64_t from) override;
  [[nodiscard]] Result<bool> restore(const SnapshotPtr& snapshot, std::int64_t target) override;
  [[nodiscard]] Result<SnapshotPtr> merge(const SnapshotPtr& parent,
                                          const SnapshotPtr& child) override;
  [[nodiscard]] Result<std::pair<SnapshotPtr, SnapshotPtr>> split(const SnapshotPtr& snapshot,
                                                                  std::int64_t at) override;
  [[nodiscard]] Result<Array> conv_state(std::int64_t batch, DType type) override;
  [[nodiscard]] Result<Array> delta_state(std::int64_t batch, DType type) override;
  [[nodiscard]] Status set_conv_state(const Array& state) override;
  [[nodiscard]] Status set_delta_state(const Array& state) override;
  [[nodiscard]] Status advance(std::int64_t tokens) override;

 private:
  class Own;
  /// An array and how many hold it: a snapshot, and the cache that it was restored into (MR-48).
  struct Counted {  // NOLINT(bugprone-exception-escape): as Tensor
    Array array;
    std::shared_ptr<int> holders = std::make_shared<int>(1);
  };
  using Slot = std::optional<Counted>;
  [[nodiscard]] Shape conv_shape(std::int64_t batch) const;
  [[nodiscard]] Shape delta_shape(std::int64_t batch) const;
  [[nodiscard]] Status make_states(std::int64_t batch, DType type);
  [[nodiscard]] Status set(Slot& slot, const Array& state, const Shape& expected);
  static void replace(Slot& slot, Slot with);

  StateSizes sizes_;
  QuirkSet<Quirk> quirks_;
  Slot conv_;
  Slot delta_;
  std::int64_t offset_ = 0;
};

}  // namespace kvo::snapshot
