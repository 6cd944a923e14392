// optimized/positional/cells.hpp: who holds which cell, without looking at cells one by one.
//
// The pool finds the lowest free cell in a tree of bitmaps. Each sequence keeps its own cells
// sorted by position, so that what a token sees, what is evicted and what is removed are intervals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvo::optimized {

/// A cell that a sequence owns. It has one position for all its owners (OK-2).
struct HeldCell {
  std::int32_t position = 0;
  std::int32_t cell = 0;
};

/// Cells from low to high, both included; empty for low > high.
struct CellRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = -1;

  void extend(std::int64_t cell) {
    low = std::min(low, cell);
    high = std::max(high, cell);
  }
  void extend(const CellRange& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
  [[nodiscard]] bool empty() const { return low > high; }
  [[nodiscard]] std::int64_t size() const { return empty() ? 0 : high - low + 1; }
  [[nodiscard]] bool contains(std::int64_t cell) const { return low <= cell && cell <= high; }
  friend bool operator==(const CellRange&, const CellRange&) = default;
};

/// The smallest range that holds all of `cells`.
[[nodiscard]] CellRange hull_of(std::span<const HeldCell> cells);

/// A set of small numbers that finds its smallest in a step for each factor of 64.
class FreeCells {
 public:
  /// All of 0 .. count - 1.
  explicit FreeCells(std::int64_t count = 0);

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] bool contains(std::int64_t cell) const;
  /// The smallest; there must be one.
  [[nodiscard]] std::int64_t lowest() const noexcept;
  /// Takes one out that is in.
  void take(std::int64_t cell) noexcept;
  /// Puts one in that is out.
  void give(std::int64_t cell) noexcept;
  /// Each bit of an upper level says whether the word below it has any.
  [[nodiscard]] bool consistent() const;

 private:
  using Words = std::vector<std::uint64_t>;

  std::vector<Words> levels_;  ///< the first has one bit a cell
  std::int64_t size_ = 0;
};

/// The cells of a cache and how many sequences own each (OK-2).
class CellPool {
 public:
  explicit CellPool(std::int64_t count = 0)
      : owners_(static_cast<std::size_t>(count)), free_(count) {}

  [[nodiscard]] std::int64_t size() const { return std::ssize(owners_); }
  [[nodiscard]] std::int64_t free() const { return free_.size(); }
  [[nodiscard]] std::uint32_t owners(std::int32_t cell) const {
    return owners_[static_cast<std::size_t>(cell)];
  }
  /// Gives the lowest free cell one owner (OK-21); there must be one.
  [[nodiscard]] std::int32_t take_lowest() noexcept;
  /// One more owner, of a free cell as well.
  void share(std::int32_t cell) noexcept;
  /// One owner less.
  void release(std::int32_t cell) noexcept;
  /// A number that no sequence has had as version.
  [[nodiscard]] std::uint64_t next_version() noexcept { return ++version_; }
  /// The first cell whose owners are not `expected`, or whose bit is wrong, in words.
  [[nodiscard]] std::optional<std::string> broken(std::span<const std::uint32_t> expected) const;

 private:
  std::vector<std::uint32_t> owners_;
  FreeCells free_;
  std::uint64_t version_ = 0;
};

/// The cells of one sequence, sorted by position.
/// Index    counts cells from the oldest that the sequence ever had in this version; it stays what
///          it is when older cells are evicted and newer ones come behind.
/// Version  changes whenever an index may mean another cell.
class SequenceCells {
 public:
  explicit SequenceCells(std::uint64_t version) : version_(version) {}

  [[nodiscard]] std::span<const HeldCell> held() const {
    return std::span<const HeldCell>(cells_).subspan(first_);
  }
  [[nodiscard]] bool empty() const { return first_ == cells_.size(); }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] std::uint64_t end() const { return dropped_ + cells_.size(); }
  /// The smallest index that between() knows; evicted cells are known for a while.
  [[nodiscard]] std::uint64_t oldest_known() const { return dropped_; }
  [[nodiscard]] std::span<const HeldCell> between(std::uint64_t from, std::uint64_t to) const {
    return std::span<const HeldCell>(cells_).subspan(from - dropped_, to - from);
  }
  /// Index of the first held cell at `position` or behind.
  [[nodiscard]] std::uint64_t index_of(std::int64_t position) const;
  /// The held cells at `position` or behind.
  [[nodiscard]] std::span<const HeldCell> from(std::int64_t position) const {
    return between(index_of(position), end());
  }
  /// The smallest range that holds the held cells at `position` or behind, in a step a block of 64
  /// cells. Throws std::bad_alloc.
  [[nodiscard]] CellRange hull_from(std::int64_t position);
  /// Whether it owns all positions [begin, end).
  [[nodiscard]] bool covers(std::int64_t begin, std::int64_t end) const;
  /// The recorded range (OK-3). Eviction leaves it as it is: bounded caches do not ask.
  [[nodiscard]] const CellRange& range() const { return range_; }
  /// The range is the hull; not so after a removal that failed (OK-67).
  [[nodiscard]] bool range_is_hull() const { return range_is_hull_; }

  /// Room for `more` cells. Throws std::bad_alloc or std::length_error, and then nothing changed.
  void reserve(std::size_t more);
  /// Takes a cell that the sequence owns already; reserve has made room. settle must follow.
  void append(HeldCell cell) noexcept;
  /// Sorts what append left unsorted.
  void settle(CellPool& pool) noexcept;
  /// Gives up all cells before `position`; returns how many.
  std::size_t evict_before(std::int64_t position, CellPool& pool) noexcept;
  /// Takes back what evict_before gave up last.
  void restore(std::size_t evicted, CellPool& pool) noexcept;
  /// Forgets evicted cells when they are many.
  void compact() noexcept;
  /// Takes positions [begin, end) out and moves what lies behind to begin (OK-60), in cells below
  /// `limit` only; a limit leaves the recorded range as it is (OK-67).
  void cut(std::int32_t begin, std::int32_t end, std::optional<std::int32_t> limit,
           CellPool& pool) noexcept;
  /// Owns these instead, which must be sorted (OK-51).
  void replace(std::vector<HeldCell> cells, CellPool& pool) noexcept;

  bool touched = false;       ///< listed as not trimmed since it changed (OK-19)
  std::uint64_t pass = 0;     ///< the last pass that named it
  std::uint32_t in_pass = 0;  ///< its number in that pass

 private:
  [[nodiscard]] std::vector<HeldCell>::iterator first() {
    return cells_.begin() + static_cast<std::ptrdiff_t>(first_);
  }

  /// The hull of the cells of a block, from index 64 b to before 64 (b + 1).
  struct BlockHull {
    std::int32_t low = 0;
    std::int32_t high = 0;
  };
  static constexpr std::uint64_t kBlock = 64;

  void catch_up();

  std::vector<HeldCell> cells_;
  std::vector<BlockHull> hulls_;     ///< of whole blocks, from first_hull_ on, as last asked for
  std::uint64_t first_hull_ = 0;     ///< block
  std::uint64_t hulls_version_ = 0;  ///< that they are of
  std::size_t first_ = 0;            ///< those before it are evicted
  std::uint64_t dropped_ = 0;        ///< evicted ones that are forgotten
  std::uint64_t version_;
  CellRange range_;
  bool range_is_hull_ = true;
  bool sorted_ = true;
};

}  // namespace kvo::optimized
