// optimized/positional/mask.hpp: masks that are changed from pass to pass, not built.
//
// What a token sees is an interval of its sequence's cells (OK-31). A row of the buffer remembers
// which interval it shows; when it shows the same sequence again, only the difference is written. A
// batch is looked for by its first sequence, so that several batches that take turns keep rows
// each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "optimized/positional/cells.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo::optimized {

/// What a row of a mask lets a token see: the cells of a sequence from one index to another.
struct SeenCells {
  const SequenceCells* sequence = nullptr;  ///< null: sees nothing
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The mask of a pass, in a buffer that later passes use again (OK-30 to OK-37).
class MaskRows {
 public:
  /// Shape of a mask: rows of `range` of a pool of `cells` cells.
  struct Layout {
    std::int64_t rows = 0;
    std::int64_t cells = 0;
    CellRange range = {};
    DType dtype = DType::kF32;
  };

  /// Makes room for a mask; the one shown stays. Throws std::bad_alloc or std::length_error.
  void reserve(const Layout& layout);
  /// Begins the mask that reserve made room for last. Each row must be shown; `first` is what the
  /// first of them shows.
  void begin(const Layout& layout, const SeenCells& first) noexcept;
  /// Writes a row: 0 for what is seen, -inf elsewhere. `like` is a row of this mask that is written
  /// already and shows the same sequence.
  void show(std::int64_t row, const SeenCells& seen, std::optional<std::int64_t> like) noexcept;
  /// Nothing is known of the rows of this mask any more: cells outside the range were shown.
  void forget() noexcept;
  [[nodiscard]] StridedView view() const;

 private:
  /// What a row of the buffer shows: within `written`, 0 for cells [begin, end) of a sequence.
  struct Row {
    std::uint64_t version = 0;  ///< of the sequence; 0: nothing is known
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    CellRange written = {};
  };
  /// How rows lie in the buffer.
  struct Grid {
    std::int64_t base = 0;    ///< the cell of the first column
    std::int64_t stride = 0;  ///< bytes
    std::int64_t rows = 0;    ///< rows that fit
    DType dtype = DType::kF32;
  };

  [[nodiscard]] static Grid grid_of(const Layout& layout);
  template <class Word>
  void show_as(std::int64_t row, const SeenCells& seen, std::optional<std::int64_t> like) noexcept;
  template <class Word>
  [[nodiscard]] Word* at(std::int64_t row, std::int64_t cell) const;
  /// Makes a row cover the range and show [begin, end) of a sequence, from what it shows now.
  template <class Word>
  void extend(std::int64_t row) noexcept;
  template <class Word>
  void change(std::int64_t row, const SeenCells& seen) noexcept;
  [[nodiscard]] Row& row_at(std::int64_t row) {
    return rows_[static_cast<std::size_t>(first_row_ + row)];
  }

  Cells buffer_;
  std::byte* start_ = nullptr;  ///< in the buffer, at a cache line
  std::size_t bytes_ = 0;       ///< from there on
  Cells larger_;                ///< takes the place of the buffer with the next mask
  std::size_t larger_bytes_ = 0;
  std::vector<Row> rows_;
  Grid grid_;
  Layout layout_;
  std::int64_t first_row_ = 0;  ///< row of the buffer that is the first of the mask
  std::int64_t next_row_ = 0;   ///< for a mask whose first row no row of the buffer resembles
};

}  // namespace kvo::optimized
