// optimized/snapshot/slots.hpp: the slots of one side (keys or values) of a cache: an array
// [B, H, n, D] that is changed in place where nobody can see it.
//
// What it buys: a token costs the copy of its row. Slots are moved to another block only if
// somebody else looks at what is to be overwritten (copy on write), or if the block is full; before
// that, a larger one is filled beside it, some rows a step, so that no step pays for all.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "optimized/snapshot/block.hpp"
#include "optimized/snapshot/row_caches.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

using snapshot::SlotsChange;

/// The slots.
class Slots {
 public:
  /// Of which at most `most` are wanted for long.
  explicit Slots(LiveBytesPtr live, std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : live_(std::move(live)), most_(most) {}
  ~Slots() { clear(); }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  [[nodiscard]] bool exists() const { return form_.has_value(); }
  [[nodiscard]] const RowForm& form() const { return *form_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] const LiveBytesPtr& live() const { return live_; }
  /// Whether no slot is zero because nobody wrote it.
  [[nodiscard]] bool is_full() const { return stored_ == size_; }
  /// Slots [begin, end), bounds as in MR-A2; they must have been shown by a change.
  [[nodiscard]] RowRange shared(std::int64_t begin, std::int64_t end) const;
  /// Slots [0, end), 0 <= end, as shared() says, into an array that exists: nothing is allocated.
  void show(std::int64_t end, snapshot::Array& out) const;

  [[nodiscard]] SlotsChange change() const;
  /// What slots from `at` on hold is not needed any more. Requires  0 <= at.
  void forget_from(std::int64_t at) { stored_ = std::min(stored_, at); }

  /// Whether one row could be put at slot `at` by a copy and nothing else: as a new one behind
  /// those that are stored, or over one that is not shared.
  [[nodiscard]] bool takes_in_place(std::int64_t at, const snapshot::Array& row) const;
  /// Puts it.
  void put_in_place(std::int64_t at, const snapshot::Array& row) noexcept;

  /// Throws std::bad_alloc; nothing has changed then.
  /// Returns  the block that a change needs; null: it can be made in place.
  [[nodiscard]] BlockPtr room_for(const SlotsChange& change) const;
  /// `room` is that for `change`.
  void apply(const SlotsChange& change, BlockPtr room) noexcept;

  /// Whether a change that puts `rows` at slot `from` could as well share them: they go on where
  /// these slots end, in the same block, or nothing of these slots is left.
  [[nodiscard]] bool can_adopt(const SlotsChange& change, std::int64_t from,
                               const RowRange& rows) const;
  /// Applies such a change.
  void adopt(const SlotsChange& change, std::int64_t from, const RowRange& rows) noexcept;
  /// Takes the place of everything by some rows, shared.
  void replace(const RowRange& rows) noexcept;
  void clear() noexcept;

 private:
  [[nodiscard]] std::int64_t stored_after(const SlotsChange& change) const;
  void enter(BlockPtr block) noexcept;
  void write(const SlotsChange& change) noexcept;

  LiveBytesPtr live_;
  std::int64_t most_;
  std::optional<RowForm> form_;
  std::int64_t size_ = 0;    ///< slots
  std::int64_t stored_ = 0;  ///< of which these lie in the block; the rest are zeros
  BlockPtr block_ = nullptr;
  std::int64_t begin_ = 0;  ///< row of slot 0
};

/// The store of a cache in host memory; row_caches.hpp says what its members do.
struct SlotsPair {
  using Memory = LiveBytesPtr;
  using RowRange = optimized::RowRange;
  using KeptRows = optimized::KeptRows;
  static constexpr bool kInPlace = true;
  // NOLINTNEXTLINE(readability-identifier-naming): a function in other stores
  static constexpr Status (*stores)(const StorageFormat&) = nullptr;  ///< all formats

  RowEncoder encoder;
  Slots k;
  Slots v;

  SlotsPair(const StorageFormat& storage, const LiveBytesPtr& live, std::int64_t most)
      : encoder(storage), k(live, most), v(live, most) {}
  [[nodiscard]] bool encodes() const { return encoder.encodes(); }
  [[nodiscard]] Result<snapshot::Pair> encoded(const snapshot::Array& k_rows,
                                               const snapshot::Array& v_rows,
                                               QuirkSet<snapshot::Quirk> quirks) {
    return encoder.encoded(k_rows, v_rows, quirks);
  }
  [[nodiscard]] bool exists() const { return k.exists(); }
  [[nodiscard]] bool is_full() const { return k.is_full() && v.is_full(); }
  [[nodiscard]] snapshot::SidesChange change() const { return {k.change(), v.change()}; }
  [[nodiscard]] snapshot::Pair read(std::int64_t end) const {
    return look(k.shared(0, end), v.shared(0, end));
  }
  [[nodiscard]] static snapshot::Pair look(const RowRange& k_rows, const RowRange& v_rows) {
    return {k_rows.array(), v_rows.array()};
  }
  /// Slots [0, end), 0 <= end, of both, into a pair that exists.
  void show(std::int64_t end, snapshot::Pair& out) const {
    k.show(end, out.k);
    v.show(end, out.v);
  }
  /// Puts one row into slot `at` of both sides if a copy does it (Slots::takes_in_place).
  /// Returns  whether it was done.
  [[nodiscard]] bool take_in_place(std::int64_t at, const snapshot::Array& k_row,
                                   const snapshot::Array& v_row) {
    if (k_row.view.shape.size() != 4 || v_row.view.shape.size() != 4 ||
        !k.takes_in_place(at, k_row) || !v.takes_in_place(at, v_row))
      return false;
    k.put_in_place(at, k_row);
    v.put_in_place(at, v_row);
    return true;
  }
  [[nodiscard]] Result<snapshot::Pair> apply(const snapshot::SidesChange& change,
                                             std::int64_t end) {
    make(change);
    return read(end);
  }
  [[nodiscard]] Status put_shared(const snapshot::SidesChange& change, std::int64_t from,
                                  const RowRange& k_rows, const RowRange& v_rows);
  [[nodiscard]] Result<RowRange> joined(const RowRange& first, const RowRange& second,
                                        const RowForm& form) const;
  void forget_from(std::int64_t at) {
    k.forget_from(at);
    v.forget_from(at);
  }
  /// Throws std::bad_alloc; nothing has changed then.
  void make(const snapshot::SidesChange& change);
  void clear() noexcept {
    k.clear();
    v.clear();
  }
};

extern template class SnapshotKv<SlotsPair>;
extern template class SnapshotRing<SlotsPair>;

}  // namespace kvo::optimized
