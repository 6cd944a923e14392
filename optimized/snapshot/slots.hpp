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
  /// Whether no slot is zero because nobody wrote it.
  [[nodiscard]] bool is_full() const { return stored_ == size_; }
  /// Slots [begin, end), bounds as in MR-A2; they must have been shown by a change.
  [[nodiscard]] RowRange range(std::int64_t begin, std::int64_t end) const;
  /// Slots [0, end), 0 <= end, as range() says, into an array that exists: nothing is allocated.
  void show(std::int64_t end, snapshot::Array& out) const;

  [[nodiscard]] SlotsChange change() const;
  /// What slots from `at` on hold is not needed any more. Requires  0 <= at.
  void forget_from(std::int64_t at) { stored_ = std::min(stored_, at); }

  /// Whether one row could be put at slot `at` by a copy and nothing else: as a new one behind
  /// those that are stored, or over one that nobody else sees.
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

/// Both sides of a cache, which change together or not at all.
struct SlotsPair {
  Slots k;
  Slots v;

  explicit SlotsPair(const LiveBytesPtr& live,
                     std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : k(live, most), v(live, most) {}
  [[nodiscard]] bool exists() const { return k.exists(); }
  [[nodiscard]] snapshot::SidesChange change() const { return {k.change(), v.change()}; }
  /// Slots [begin, end) of both.
  [[nodiscard]] snapshot::Pair pair(std::int64_t begin, std::int64_t end) const {
    return {k.range(begin, end).array(), v.range(begin, end).array()};
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
  /// Throws std::bad_alloc; nothing has changed then.
  void apply(const snapshot::SidesChange& change) {
    BlockPtr k_room = k.room_for(change.k);
    BlockPtr v_room = v.room_for(change.v);
    k.apply(change.k, std::move(k_room));
    v.apply(change.v, std::move(v_room));
  }
  /// What slots from `at` on hold is not needed any more.
  void forget_from(std::int64_t at) {
    k.forget_from(at);
    v.forget_from(at);
  }
  void clear() noexcept {
    k.clear();
    v.clear();
  }
};

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
