// reference/cells/table.hpp: one table of cells (LC-2 to LC-24).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/cells/values.hpp"

namespace kvo::cells {

/// Extra data of a cell.
KVO_RECORD_WITH((friend bool operator==(const Extra&, const Extra&) = default;), Extra,
                (std::int32_t, x, "column in an image"), (std::int32_t, y, "row in an image"),
                (std::int32_t, token, "token; -1: none", -1))

/// A cell of a copy.
struct CopiedCell {
  std::int32_t pos = -1;                ///< -1: empty
  std::vector<std::int32_t> seqs = {};  ///< ascending
  Extra extra = {};
};

/// Cells that were copied out of a table (LC-21). It has no shifts.
struct CellCopy {
  std::vector<CopiedCell> cells = {};
  std::int64_t used = 0;
  std::int64_t used_min = 0;
  std::int64_t used_end = 0;

  [[nodiscard]] std::size_t cell_count() const { return cells.size(); }
};

/// A position of a sequence, and the cell that has it.
KVO_RECORD_WITH((friend bool operator==(const PositionEntry&, const PositionEntry&) = default;),
                PositionEntry, (std::int32_t, pos, "position"),
                (std::int64_t, cell, "cell, from 0"))

struct TableOptions {
  QuirkSet<Quirk> quirks = QuirkSet<Quirk>(Profile::kOriginal);
  Build build = Build::kRelease;
  std::int64_t size = 0;  ///< 1 to kMostCells
};
/// Errors  kOutOfRange.
[[nodiscard]] inline Status check_options(const TableOptions& options) {
  return check_in("size", options.size, 1, kMostCells);
}

/// One table of cells (LC-2 to LC-24). The public calls refuse misuse, whatever the table, and hand
/// the rest to do_*. A cell must be in [0, size), a sequence in [0, kSequences).
class CellTable {
 public:
  explicit CellTable(const TableOptions& options)
      : quirks_(options.quirks), build_(options.build) {}
  virtual ~CellTable() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Empties all cells (LC-5).
  virtual void reset() = 0;
  /// Empties all cells, and has n from now on (LC-5).
  /// Errors  kOutOfRange: n is not in [1, kMostCells].
  [[nodiscard]] Status resize(std::int64_t n);
  /// Gives an empty cell a position, at least 0 (LC-10).
  [[nodiscard]] Status pos_set(std::int64_t cell, std::int32_t pos);
  /// Adds an owner to a used cell (LC-11, LC-24).
  [[nodiscard]] Status seq_add(std::int64_t cell, std::int64_t seq);
  /// Takes an owner off a cell; whether the cell was emptied (LC-12).
  [[nodiscard]] Result<bool> seq_rm(std::int64_t cell, std::int64_t seq);
  /// Leaves a cell to one sequence; whether the cell was emptied (LC-13). An empty cell stays so.
  [[nodiscard]] Result<bool> seq_keep(std::int64_t cell, std::int64_t seq);
  /// Empties a used cell (LC-14).
  [[nodiscard]] Status rm(std::int64_t cell);
  /// Moves a used cell; whether it was emptied (LC-15). The position must stay an int32.
  [[nodiscard]] Result<bool> pos_add(std::int64_t cell, std::int32_t delta);
  /// Divides the position of a used cell by d, at least 1 (LC-16).
  [[nodiscard]] Status pos_div(std::int64_t cell, std::int32_t d);
  /// Forgets shifts (LC-17).
  virtual void reset_shift() = 0;
  /// Writes the extra data of any cell (LC-18).
  [[nodiscard]] Status ext_set(std::int64_t cell, const Extra& extra);

  [[nodiscard]] Result<bool> is_empty(std::int64_t cell) const;
  /// Owners of a used cell.
  [[nodiscard]] Result<std::int64_t> seq_count(std::int64_t cell) const;
  /// Whether a cell, which may be empty, has that owner.
  [[nodiscard]] Result<bool> seq_has(std::int64_t cell, std::int64_t seq) const;
  /// The only owner of a used cell.
  [[nodiscard]] Result<std::int64_t> seq_get(std::int64_t cell) const;
  [[nodiscard]] Result<std::int64_t> pos_get(std::int64_t cell) const;
  [[nodiscard]] Result<std::int64_t> get_shift(std::int64_t cell) const;
  [[nodiscard]] Result<Extra> ext_get(std::int64_t cell) const;
  /// Whether the position of a cell is in [p0, p1), as they are (LC-20).
  [[nodiscard]] Result<bool> pos_in(std::int64_t cell, std::int32_t p0, std::int32_t p1) const;
  [[nodiscard]] Result<Extremes> seq_pos(std::int64_t seq) const;
  /// The cells of a sequence, by position, then cell (LC-6).
  [[nodiscard]] Result<std::vector<PositionEntry>> seq_pos_get(std::int64_t seq) const;
  /// LC-19.
  [[nodiscard]] Result<std::int64_t> token_at_or_before(std::int64_t seq, std::int32_t pos) const;

  /// Copies cells in that order (LC-21, LC-23).
  [[nodiscard]] Result<CellCopy> copy(std::span<const std::int64_t> cells) const;
  /// Puts a copy's cells into as many cells of this table, in that order (LC-22, LC-23).
  [[nodiscard]] Status paste(const CellCopy& from, std::span<const std::int64_t> cells);

  [[nodiscard]] virtual ShownTable shown() const = 0;
  /// Walks the internal state; nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }

 protected:
  // Cells and sequences are in range, and cells in the condition that the public call asks for.
  virtual void do_resize(std::int64_t n) = 0;
  virtual void do_pos_set(std::int64_t cell, std::int32_t pos) = 0;
  virtual void do_seq_add(std::int64_t cell, std::int32_t seq) = 0;
  virtual bool do_seq_rm(std::int64_t cell, std::int32_t seq) = 0;
  virtual bool do_seq_keep(std::int64_t cell, std::int32_t seq) = 0;
  virtual void do_rm(std::int64_t cell) = 0;
  virtual bool do_pos_add(std::int64_t cell, std::int32_t delta) = 0;
  virtual void do_pos_div(std::int64_t cell, std::int32_t d) = 0;
  virtual void do_ext_set(std::int64_t cell, const Extra& extra) = 0;
  /// The position of a cell, -1 if it is empty.
  [[nodiscard]] virtual std::int32_t do_pos(std::int64_t cell) const = 0;
  [[nodiscard]] virtual std::int32_t do_shift(std::int64_t cell) const = 0;
  [[nodiscard]] virtual Extra do_ext(std::int64_t cell) const = 0;
  [[nodiscard]] virtual bool do_seq_has(std::int64_t cell, std::int32_t seq) const = 0;
  [[nodiscard]] virtual std::int64_t do_seq_count(std::int64_t cell) const = 0;
  /// Requires  the cell has one owner.
  [[nodiscard]] virtual std::int32_t do_seq_get(std::int64_t cell) const = 0;
  [[nodiscard]] virtual Extremes do_seq_pos(std::int32_t seq) const = 0;
  [[nodiscard]] virtual std::vector<PositionEntry> do_seq_pos_get(std::int32_t seq) const = 0;
  [[nodiscard]] virtual std::int32_t do_token_at_or_before(std::int32_t seq,
                                                           std::int32_t pos) const = 0;
  [[nodiscard]] virtual CellCopy do_copy(std::span<const std::int64_t> cells) const = 0;
  virtual void do_paste(const CellCopy& from, std::span<const std::int64_t> cells) = 0;

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }

 private:
  /// Errors  kPrecondition: no such cell or sequence, an empty cell, a shifted one. @{
  [[nodiscard]] Status in_table(std::int64_t cell) const;
  [[nodiscard]] Status used(std::int64_t cell) const;
  [[nodiscard]] Status owned(std::int64_t cell, std::int64_t seq) const;
  [[nodiscard]] Status copyable(std::span<const std::int64_t> cells) const;
  /// @}

  QuirkSet<Quirk> quirks_;
  Build build_;
};

using MakeTable = std::function<Result<std::unique_ptr<CellTable>>(const TableOptions& options)>;

}  // namespace kvo::cells
