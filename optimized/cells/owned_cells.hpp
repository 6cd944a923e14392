// optimized/cells/owned_cells.hpp: the cells of one sequence in the order of their positions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace kvo::optimized
