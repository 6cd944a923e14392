// optimized/cells/cell_half.hpp: the streams of a cache, or of a half of a pair, with their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optimized/cells/batch_plan.hpp"
#include "optimized/cells/stream_table.hpp"
#include "reference/cells/cache.hpp"

namespace kvo::optimized {

/// Tokens of an ubatch in one stream: numbers [begin, end) in the rows of the plan.
struct PlacedRun {
  std::int32_t stream = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A batch on its way into the cells of a half.
struct PlacedBatch {
  const BatchPlan& plan;
  std::span<const PlacedRun> runs = {};  ///< of an ubatch
  std::span<std::int32_t> slots = {};    ///< [number in the rows of the plan]
  std::int64_t first_tag = 0;            ///< of row 0
};

/// What a token sees (LC-50 to LC-58).
struct MaskRule {
  bool causal = true;
  bool alibi = false;
  bool whole_ubatch = false;  ///< the window does not hide what came with the ubatch (swa_full)
};

/// The streams of a cache, or of a half of a pair: cells, heads, rows.
class CellHalf {
 public:
  /// Throws std::bad_alloc.
  CellHalf(const cells::KvOptions& options, std::int64_t size, const cells::Window& window);

  [[nodiscard]] std::int64_t size() const { return streams_.front().table.size(); }
  [[nodiscard]] std::int32_t streams() const { return static_cast<std::int32_t>(streams_.size()); }
  [[nodiscard]] const cells::Window& window() const { return window_; }
  [[nodiscard]] std::int32_t stream_of(std::int32_t seq) const {
    return streams_.size() == 1 ? 0 : seq;
  }
  [[nodiscard]] StreamTable& table(std::int32_t stream) { return at(stream).table; }
  [[nodiscard]] const StreamTable& table(std::int32_t stream) const { return at(stream).table; }
  [[nodiscard]] StreamTable& table_of(std::int32_t seq) { return table(stream_of(seq)); }
  [[nodiscard]] const StreamTable& table_of(std::int32_t seq) const {
    return table(stream_of(seq));
  }
  [[nodiscard]] std::int64_t head(std::int32_t stream) const { return at(stream).head; }
  void set_head(std::int32_t stream, std::int64_t head) { at(stream).head = head; }
  /// The head is at most there.
  void lower_head(std::int32_t stream, std::int64_t cell) {
    at(stream).head = std::min(at(stream).head, cell);
  }

  /// Where the search for n cells begins (LC-35).
  [[nodiscard]] std::int64_t start(std::int32_t stream, std::int64_t n) const {
    const Stream& its = at(stream);
    return its.head > its.table.used() + 2 * n ? 0 : its.head;
  }
  /// Finds cells for the runs of an ubatch; whether there are enough in each stream.
  [[nodiscard]] bool search(const PlacedBatch& batch) noexcept;
  /// Puts an ubatch into its slots (LC-36), and purges (LC-61). What undo needs is added to the
  /// journal; reserve_journal has made room.
  void place(const PlacedBatch& batch) noexcept;
  /// Writes the rows of an ubatch (LC-46).
  void write_rows(const PlacedBatch& batch) noexcept;
  /// LC-56.
  [[nodiscard]] std::int64_t n_kv(std::span<const PlacedRun> runs, std::int64_t n_pad) const;
  /// Writes the mask of an ubatch, [token][n_kv].
  void mask(const PlacedBatch& batch, const MaskRule& rule, std::int64_t n_kv,
            std::span<float> out) const;

  /// Takes cells for a saved stream, and purges; whether there were enough (LC-73). reserve of the
  /// table and reserve_journal have made room.
  [[nodiscard]] bool restore(const cells::SavedStream& saved, std::int32_t seq,
                             std::span<std::int32_t> slots) noexcept;
  void restore_rows(const cells::SavedStream& saved, std::int32_t stream,
                    std::span<const std::int32_t> slots) noexcept;
  /// Takes a sequence out of its stream (LC-40), with a journal to take that back.
  void remove(std::int32_t seq, std::int64_t begin, std::int64_t end) noexcept;
  void remove_any(std::int64_t begin, std::int64_t end) noexcept;

  /// Changes from now on are in the journal: `purges` whether removals are, too.
  void keep_journal(bool purges) noexcept;
  void stop_journal() noexcept { journaling_ = false; }
  /// Room for n tokens and for all cells that purges could remove. Throws std::bad_alloc.
  void reserve_journal(std::size_t tokens, bool purges);
  [[nodiscard]] std::size_t journal() const { return journal_.size(); }
  /// Takes back what the journal has from number `from` on.
  void undo(std::size_t from) noexcept;

  /// Empties all cells, with `data` the rows, too (LC-47).
  void clear(bool data) noexcept;
  /// Turns keys by their cells' shifts; whether there was anything to do (LC-45).
  bool turn() noexcept;
  void copy_rows(std::int32_t from, std::int32_t to) noexcept;

  /// What state_save has of a stream (LC-71, LC-72), with the number of the cell in the place of
  /// its row, until fill_rows. Throws std::bad_alloc.
  [[nodiscard]] cells::SavedStream saved(std::int32_t stream, std::int32_t seq,
                                         std::int64_t n_seq_max) const;
  void fill_rows(cells::SavedStream& saved, std::int32_t stream) const noexcept;
  /// Puts saved cells into a stream that is empty (LC-75), maybe without their rows (LC-76);
  /// reserve_whole, which throws std::bad_alloc, has made room. @{
  void reserve_whole(const cells::SavedStream& saved, std::int32_t stream);
  void put_whole(const cells::SavedStream& saved, std::int32_t stream, bool rows) noexcept;
  /// @}

  [[nodiscard]] std::vector<cells::ShownTable> tables() const;
  [[nodiscard]] std::vector<cells::StreamRows> rows() const;
  [[nodiscard]] std::optional<std::string> broken() const;

 private:
  /// K and V of a cell: their tags, and the position that the key is turned to.
  struct Row {
    std::int64_t k = 0;
    std::int64_t rot = 0;
    std::int64_t v = 0;
  };
  struct Stream {
    StreamTable table;
    std::vector<Row> rows;
    std::int64_t head = 0;
    std::size_t written = 0;  ///< behind the last row that is not as at first
  };
  struct Change {
    CellBefore before;
    std::int32_t stream = 0;
    bool slot = false;  ///< the cell was written; otherwise a sequence left it
  };

  [[nodiscard]] Stream& at(std::int32_t stream) {
    return streams_[static_cast<std::size_t>(stream)];
  }
  [[nodiscard]] const Stream& at(std::int32_t stream) const {
    return streams_[static_cast<std::size_t>(stream)];
  }
  void note(std::int32_t stream, const CellBefore& before, bool slot) noexcept {
    if (journaling_) journal_.push_back({before, stream, slot});
  }
  void empty_slot(std::int32_t stream, std::int32_t cell) noexcept;
  void purge(std::int32_t stream) noexcept;
  void write_row(Stream& stream, std::int32_t cell, const Row& row) noexcept;

  cells::Window window_;
  std::vector<Stream> streams_;
  std::vector<Change> journal_;
  bool journaling_ = false;
  bool purges_too_ = false;
  /// Sequences that lost cells to the ubatch that is being placed, and the largest position lost.
  OwnerSet losing_;
  std::vector<std::int32_t> lost_;
};

}  // namespace kvo::optimized
