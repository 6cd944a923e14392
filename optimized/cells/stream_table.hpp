// optimized/cells/stream_table.hpp: the cells of a stream, and which sequences own them.
//
// Each sequence keeps its own cells by position; bitmaps say which cells are used, shifted, and
// usable for the next token. No operation passes over all cells.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optimized/cells/bitmap.hpp"
#include "optimized/cells/owners.hpp"
#include "reference/cells/values.hpp"

namespace kvo::optimized {

/// A cell and its position.
struct CellAt {
  std::int32_t pos = 0;
  std::int32_t cell = 0;
  friend auto operator<=>(const CellAt&, const CellAt&) = default;
};

/// The cells of one sequence, by position, then cell. Extremes are its ends, ranges of positions
/// are intervals, and what is taken at either end moves nothing: the next token comes last, and a
/// window gives up the first.
class OwnedCells {
 public:
  [[nodiscard]] std::span<const CellAt> all() const {
    return std::span<const CellAt>(cells_).subspan(first_);
  }
  [[nodiscard]] bool empty() const { return first_ == cells_.size(); }
  [[nodiscard]] std::size_t size() const { return cells_.size() - first_; }
  /// The ends; there must be cells. @{
  [[nodiscard]] std::int32_t min() const { return cells_[first_].pos; }
  [[nodiscard]] std::int32_t max() const { return cells_.back().pos; }
  /// @}
  /// Number, in all(), of the first cell at `pos` or behind.
  [[nodiscard]] std::size_t index_of(std::int64_t pos) const noexcept;
  /// The cells with positions in [begin, end).
  [[nodiscard]] std::span<const CellAt> between(std::int64_t begin, std::int64_t end) const {
    const std::size_t low = index_of(begin);
    const std::size_t high = end <= begin ? low : index_of(end);
    return all().subspan(low, high - low);
  }

  /// Room for `more` cells. Throws std::bad_alloc, and then nothing changed.
  void reserve(std::size_t more) {
    if (cells_.size() + more > cells_.capacity()) grow(more);
  }
  /// One more, at its place. reserve has made room.
  void insert(CellAt cell) noexcept;
  /// One less, which must be there.
  void erase(CellAt cell) noexcept;
  /// Without those numbered [begin, end) in all().
  void erase(std::size_t begin, std::size_t end) noexcept;
  void clear() noexcept;
  /// To write to: settle must follow. reserve has made room for what is added behind. @{
  [[nodiscard]] std::span<CellAt> unsettled() { return std::span<CellAt>(cells_).subspan(first_); }
  void append(CellAt cell) noexcept { cells_.push_back(cell); }
  /// @}
  /// Brings what was written into order.
  void settle() noexcept;
  /// Has the cells of another. Throws std::bad_alloc, and then nothing changed.
  void copy(const OwnedCells& other);
  [[nodiscard]] bool sorted() const;

 private:
  void grow(std::size_t more);

  std::vector<CellAt> cells_;
  std::size_t first_ = 0;  ///< those before it are given up
};

/// A cell as it was: what undoing an operation puts back.
struct CellBefore {
  std::int32_t cell = 0;
  std::int32_t pos = -1;
  std::int32_t shift = 0;
  std::int32_t seq = -1;  ///< the owner that left; -1: none did
};

/// The cells of a stream (LC-2 to LC-20). Cells and sequences that calls name must exist.
class StreamTable {
 public:
  /// Sequences that may own cells: `count` from `first` on.
  struct Sequences {
    std::int32_t first = 0;
    std::int32_t count = cells::kSequences;
  };
  /// As lowest emptied cell: none.
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

  /// All cells empty. `window` says which cells are usable besides (LC-35). Throws std::bad_alloc.
  StreamTable(std::int64_t cells, const Sequences& sequences, const cells::Window& window);

  [[nodiscard]] std::int64_t size() const { return std::ssize(cells_); }
  [[nodiscard]] std::int64_t used() const { return used_.count(); }
  [[nodiscard]] std::int64_t used_end() const { return used() == 0 ? 0 : used_.last() + 1; }
  [[nodiscard]] bool is_used(std::int64_t cell) const { return used_.has(cell); }
  [[nodiscard]] bool has_shift() const { return has_shift_; }
  /// -1: empty.
  [[nodiscard]] std::int32_t pos(std::int64_t cell) const { return at(cell).pos; }
  [[nodiscard]] std::int32_t shift(std::int64_t cell) const { return at(cell).shift; }
  [[nodiscard]] bool owns(std::int64_t cell, std::int32_t seq) const {
    return at(cell).owner == seq || (at(cell).owner == kSeveral && set_of(cell).has(seq));
  }
  /// The only owner; below 0 if there is none, or several.
  [[nodiscard]] std::int32_t sole_owner(std::int64_t cell) const { return at(cell).owner; }
  [[nodiscard]] OwnerSet owners(std::int64_t cell) const;
  [[nodiscard]] const OwnedCells& of(std::int32_t seq) const {
    const auto index = static_cast<std::size_t>(seq - range_.first);
    return index < sequences_.size() ? sequences_[index] : kNoCells;
  }
  [[nodiscard]] cells::Extremes extremes(std::int32_t seq) const {
    const OwnedCells& its = of(seq);
    return its.empty() ? cells::Extremes() : cells::Extremes{its.min(), its.max()};
  }
  [[nodiscard]] const Sequences& sequences() const { return range_; }
  [[nodiscard]] cells::ShownTable shown() const;

  /// Room for `more` cells of a sequence. Throws std::bad_alloc, and then nothing changed.
  void reserve(std::int32_t seq, std::size_t more) {
    const auto index = static_cast<std::size_t>(seq - range_.first);
    if (index >= sequences_.size()) sequences_.resize(index + 1);
    if (sole_ == kNoOwner) sole_ = seq;
    if (seq != sole_ && sets_.empty()) sets_.resize(cells_.size());
    its(seq).reserve(more);
  }

  /// Gives an unused cell a position and one owner; reserve has made room. -1 takes a cell that
  /// counts as empty (LC-80).
  void take(std::int32_t cell, std::int32_t pos, std::int32_t seq) noexcept;
  /// Gives an unused cell a position (LC-10).
  void set_pos(std::int32_t cell, std::int32_t pos) noexcept;
  void set_shift(std::int32_t cell, std::int32_t shift) noexcept;
  /// Adds an owner that it does not have; reserve has made room (LC-11).
  void add_owner(std::int32_t cell, std::int32_t seq) noexcept;
  /// Takes an owner off a cell; whether it was emptied (LC-12).
  bool remove_owner(std::int32_t cell, std::int32_t seq) noexcept;
  /// Moves a used cell for all its owners, which counts as a shift (LC-15, LC-16).
  void move(std::int32_t cell, std::int32_t pos, std::int32_t shift) noexcept;
  /// Empties a cell whose position fell below 0, which counts as a shift (LC-15).
  void drop_below_zero(std::int32_t cell) noexcept {
    remove(cell);
    has_shift_ = true;
  }
  /// Empties a used cell (LC-14); its shift goes, too.
  void remove(std::int32_t cell) noexcept;
  /// Empties a cell for others to write: the shift stays (LC-22).
  void vacate(std::int32_t cell) noexcept;
  /// All cells as at first (LC-5).
  void reset() noexcept;
  /// LC-17.
  void reset_shift() noexcept;
  /// Calls see(cell) for each used cell, ascending.
  template <class See>
  void each_used(See&& see) const {
    for (std::int64_t cell = used_.next(0); cell < size(); cell = used_.next(cell + 1))
      see(static_cast<std::int32_t>(cell));
  }
  /// Calls see(cell, shift) for each cell that has one, ascending.
  template <class See>
  void each_shift(See&& see) const {
    for (std::int64_t cell = shifted_.next(0); cell < size(); cell = shifted_.next(cell + 1))
      see(cell, shift(cell));
  }

  /// Takes a sequence out of its cells in range, or everyone (LC-40); the lowest cell that was
  /// emptied. @{
  std::int32_t remove_range(std::int32_t seq, std::int64_t begin, std::int64_t end) noexcept;
  std::int32_t remove_range(std::int64_t begin, std::int64_t end) noexcept;
  /// @}
  /// Takes all others out (LC-42); the lowest cell that was emptied.
  std::int32_t keep(std::int32_t seq) noexcept;
  /// Whether a cell of a sequence in range has other owners.
  [[nodiscard]] bool shares(std::int32_t seq, const cells::Range& range) const;
  /// Makes dst a further owner of cells in range (LC-41). Throws std::bad_alloc, and then nothing
  /// changed.
  void share(std::int32_t src, std::int32_t dst, const cells::Range& range);
  /// Whether all positions and shifts stay in their type. @{
  [[nodiscard]] bool can_add(std::int32_t seq, const cells::Range& range, std::int32_t delta) const;
  [[nodiscard]] bool can_divide(std::int32_t seq, const cells::Range& range, std::int32_t d) const;
  /// @}
  /// Moves positions for all owners (LC-43); the lowest cell that was emptied.
  std::int32_t add(std::int32_t seq, const cells::Range& range, std::int32_t delta) noexcept;
  /// Divides positions for all owners (LC-44); `turn_back` as LC-16 has it.
  void divide(std::int32_t seq, const cells::Range& range, std::int32_t d, bool turn_back) noexcept;
  /// Has the cells of a sequence of another table of this size, as cells of `dst`, and nothing else
  /// (LC-66). Throws std::bad_alloc, and then nothing changed.
  void copy(const StreamTable& from, std::int32_t src, std::int32_t dst);

  /// Cells for n tokens in the order of their search from `start` on (LC-35); whether there are as
  /// many.
  [[nodiscard]] bool search(std::int64_t start, std::span<std::int32_t> slots) noexcept;
  /// As search, for adjacent cells (LC-39).
  [[nodiscard]] bool search_adjacent(std::int64_t start, std::span<std::int32_t> slots) noexcept;
  /// Cells that are usable now.
  [[nodiscard]] std::int64_t usable() noexcept;

  /// Walks everything; nothing, or the first broken invariant in words.
  [[nodiscard]] std::optional<std::string> broken() const;

 private:
  static inline const OwnedCells kNoCells;
  static constexpr std::int32_t kNoOwner = -1;
  static constexpr std::int32_t kSeveral = -2;  ///< as owner: those of set_of

  struct Cell {
    std::int32_t pos = -1;
    std::int32_t shift = 0;
    std::int32_t owner = kNoOwner;
  };

  [[nodiscard]] Cell& at(std::int64_t cell) { return cells_[static_cast<std::size_t>(cell)]; }
  [[nodiscard]] const Cell& at(std::int64_t cell) const {
    return cells_[static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] OwnerSet& set_of(std::int64_t cell) {
    return sets_[static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] const OwnerSet& set_of(std::int64_t cell) const {
    return sets_[static_cast<std::size_t>(cell)];
  }
  /// The cells of a sequence, which may change. Requires  it has cells, or reserve was called.
  [[nodiscard]] OwnedCells& its(std::int32_t seq) {
    if (windowed_) stale_.insert(seq);
    return sequences_[static_cast<std::size_t>(seq - range_.first)];
  }
  template <class See>
  void each_owner(std::int64_t cell, See&& see) const;

  // Of the cell alone, not of its owners' lists. @{
  bool drop_owner(std::int32_t cell, std::int32_t seq) noexcept;
  void join_owner(std::int32_t cell, std::int32_t seq) noexcept;
  void forget(std::int32_t cell) noexcept;
  /// @}
  /// The end of the sequences that may have cells.
  [[nodiscard]] std::int32_t sequences_end() const {
    return range_.first + static_cast<std::int32_t>(sequences_.size());
  }
  /// Writes whether a cell is usable.
  void refresh(std::int32_t cell) noexcept;
  /// The position from which a sequence's window protects its cells (LC-35).
  [[nodiscard]] std::int64_t protected_from(std::int32_t seq) const;
  /// Brings the usable cells up to date with the extremes of sequences.
  void catch_up() noexcept;
  /// Moves the cells of a sequence in range to new_pos(pos), for all owners; the lowest cell that
  /// was emptied. Shifts change by as much, or by the opposite with `turn_back`.
  template <class NewPos>
  std::int32_t move_range(std::int32_t seq, const cells::Range& range, bool turn_back,
                          NewPos&& new_pos) noexcept;
  /// Brings the positions of a sequence up to date with its cells.
  void reread(std::int32_t seq) noexcept;

  std::vector<Cell> cells_;
  std::vector<OwnerSet> sets_;         ///< [cell], meaningful with kSeveral; none for one sequence
  std::int32_t sole_ = kNoOwner;       ///< the first sequence with reserved cells
  std::vector<OwnedCells> sequences_;  ///< [sequence], up to the last one that ever had cells
  std::vector<std::int64_t> protected_;  ///< [sequence]: the position that `usable_` goes by
  OwnerSet stale_;                       ///< whose protected_ may be out of date
  Sequences range_;
  cells::Window window_;
  bool windowed_;
  CellBitmap used_;
  CellBitmap usable_;
  CellBitmap shifted_;
  bool has_shift_ = false;
  std::int64_t ownerless_ = 0;  ///< used cells without owners
};

}  // namespace kvo::optimized
