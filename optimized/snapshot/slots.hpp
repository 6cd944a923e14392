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

namespace kvo::optimized {

/// What is to become of some slots. It starts as they are; the calls follow one another as the
/// rules say it of arrays (MR-A2 to MR-A5). Bounds are clamped.
class SlotsChange {
 public:
  [[nodiscard]] bool exists() const { return form_.has_value(); }
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// No slots, but the shape and type of `like` (MR-10, MR-22).
  void start(const snapshot::Array& like);
  /// Adds `count` zero slots, in the wider type. Returns  false: fewer than none, or rows of
  /// another shape, and nothing is added.
  bool extend(const snapshot::Array& like, std::int64_t count);
  /// Slots [begin, end) stay.
  void keep(std::int64_t begin, std::int64_t end);
  /// Slots from `at` on go in front of those before it.
  void rotate(std::int64_t at);
  /// Puts rows into slots [begin, end): the last thing that is done. `rows` is borrowed until the
  /// change is applied. Returns  false: they do not fit, and nothing is put (MR-A3).
  bool put(std::int64_t begin, std::int64_t end, const snapshot::Array& rows);
  /// Slots up to `end` will be shown.
  void show(std::int64_t end);
  /// What slots from `at` on hold is not needed any more.
  void forget_from(std::int64_t at) { needed_ = std::max(at, std::int64_t{0}); }

 private:
  friend class Slots;
  struct Part {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    [[nodiscard]] std::int64_t size() const { return end - begin; }
  };
  [[nodiscard]] std::int64_t held() const { return parts_[0].size() + parts_[1].size(); }

  std::optional<RowForm> form_;
  std::int64_t size_ = 0;
  std::array<Part, 2> parts_ = {};  ///< of the slots that were; zeros behind them
  std::int64_t put_begin_ = 0;
  std::int64_t put_end_ = 0;
  const snapshot::Array* rows_ = nullptr;
  std::int64_t shown_ = 0;
  std::int64_t needed_ = std::numeric_limits<std::int64_t>::max();  ///< of the slots that were
};

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
  /// What slots from `at` on hold is not needed any more.
  void forget_from(std::int64_t at) { stored_ = std::min(stored_, std::max(at, std::int64_t{0})); }

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
  void apply(const SlotsChange& k_change, const SlotsChange& v_change) {
    BlockPtr k_room = k.room_for(k_change);
    BlockPtr v_room = v.room_for(v_change);
    k.apply(k_change, std::move(k_room));
    v.apply(v_change, std::move(v_room));
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

}  // namespace kvo::optimized
