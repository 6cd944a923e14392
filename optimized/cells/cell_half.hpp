// optimized/cells/cell_half.hpp: the streams of a cache, or of a half of a pair, with their rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

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
  CellHalf(const cells::KvOptions& options, std::int64_t size, const cells::Window& window)
      : window_(window), lost_(static_cast<std::size_t>(cells::kSequences)) {
    streams_.reserve(static_cast<std::size_t>(options.streams()));
    for (std::int32_t i = 0; i < options.streams(); ++i) {
      const StreamTable::Sequences sequences =
          options.unified ? StreamTable::Sequences() : StreamTable::Sequences{i, 1};
      streams_.push_back(
          {StreamTable(size, sequences, window), std::vector<Row>(static_cast<std::size_t>(size))});
    }
  }

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
  [[nodiscard]] bool search(const PlacedBatch& batch) noexcept {
    return std::ranges::all_of(batch.runs, [&](const PlacedRun& run) {
      const std::size_t n = run.end - run.begin;
      return table(run.stream)
          .search(start(run.stream, static_cast<std::int64_t>(n)),
                  batch.slots.subspan(run.begin, n));
    });
  }
  /// Puts an ubatch into its slots (LC-36), and purges (LC-61). What undo needs is added to the
  /// journal; reserve_journal has made room.
  void place(const PlacedBatch& batch) noexcept {
    for (const PlacedRun& run : batch.runs) {
      StreamTable& its = table(run.stream);
      for (std::size_t i = run.begin; i < run.end; ++i) {
        const auto row = static_cast<std::size_t>(batch.plan.rows()[i]);
        const BatchPlan::Token& token = batch.plan.tokens()[row];
        const auto seqs = batch.plan.seqs_of(token);
        const std::int32_t cell = batch.slots[i];
        empty_slot(run.stream, cell);
        its.take(cell, token.pos, seqs.front());
        for (const std::int32_t seq : seqs.subspan(1)) its.add_owner(cell, seq);
      }
      purge(run.stream);
      set_head(run.stream, batch.slots[run.end - 1] + 1);
    }
  }
  /// Writes the rows of an ubatch (LC-46).
  void write_rows(const PlacedBatch& batch) noexcept {
    for (const PlacedRun& run : batch.runs)
      for (std::size_t i = run.begin; i < run.end; ++i) {
        const std::int32_t row = batch.plan.rows()[i];
        const std::int64_t tag = batch.first_tag + row;
        const std::int32_t pos = batch.plan.tokens()[static_cast<std::size_t>(row)].pos;
        write_row(at(run.stream), batch.slots[i], {tag, pos, tag});
      }
  }
  /// LC-56.
  [[nodiscard]] std::int64_t n_kv(std::span<const PlacedRun> runs, std::int64_t n_pad) const {
    const std::int64_t grain = std::max<std::int64_t>(n_pad, 256);
    std::int64_t most = 0;
    for (const PlacedRun& run : runs) most = std::max(most, table(run.stream).used_end());
    return std::min(size(), std::max(grain, (most + grain - 1) / grain * grain));
  }
  /// Writes the mask of an ubatch, [token][n_kv].
  void mask(const PlacedBatch& batch, const MaskRule& rule, std::int64_t n_kv,
            std::span<float> out) const {
    std::array<std::int64_t, cells::kSequences> first{};  // of the ubatch, by primary
    const bool whole = rule.whole_ubatch && !rule.causal;
    const auto token_at = [&](std::size_t i) -> const BatchPlan::Token& {
      return batch.plan.tokens()[static_cast<std::size_t>(batch.plan.rows()[i])];
    };
    if (whole) {
      first.fill(std::numeric_limits<std::int64_t>::max());
      for (const PlacedRun& run : batch.runs)
        for (std::size_t i = run.begin; i < run.end; ++i) {
          std::int64_t& lowest = first[static_cast<std::size_t>(token_at(i).primary)];
          lowest = std::min<std::int64_t>(lowest, token_at(i).pos);
        }
    }
    std::ranges::fill(out, -std::numeric_limits<float>::infinity());
    float* row = out.data();
    for (const PlacedRun& run : batch.runs)
      for (std::size_t i = run.begin; i < run.end; ++i, row += n_kv) {
        const BatchPlan::Token& token = token_at(i);
        SeenPositions seen = seen_from(token.pos);
        if (rule.causal) seen.end = std::min<std::int64_t>(seen.end, std::int64_t{token.pos} + 1);
        if (whole) {
          const std::int64_t from = first[static_cast<std::size_t>(token.primary)];
          seen = {std::min(seen.begin, from), std::numeric_limits<std::int64_t>::max()};
        }
        const OwnedCells& its = table(run.stream).of(token.primary);
        for (const CellAt& each : its.between(std::max<std::int64_t>(seen.begin, 0), seen.end)) {
          const std::int64_t distance = std::abs(std::int64_t{each.pos} - token.pos);
          row[each.cell] = rule.alibi ? static_cast<float>(-distance) : 0.0F;
        }
      }
  }

  /// Takes cells for a saved stream, and purges; whether there were enough (LC-73). reserve of the
  /// table and reserve_journal have made room.
  [[nodiscard]] bool restore(const cells::SavedStream& saved, std::int32_t seq,
                             std::span<std::int32_t> slots) noexcept {
    const std::int32_t stream = stream_of(seq);
    StreamTable& its = table(stream);
    if (!its.search(start(stream, std::ssize(slots)), slots)) return false;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      empty_slot(stream, slots[i]);
      its.take(slots[i], saved[i].pos, seq);
    }
    purge(stream);
    set_head(stream, slots.back() + 1);
    return true;
  }
  void restore_rows(const cells::SavedStream& saved, std::int32_t stream,
                    std::span<const std::int32_t> slots) noexcept {
    for (std::size_t i = 0; i < slots.size(); ++i)
      write_row(at(stream), slots[i], {saved[i].k, saved[i].rot, saved[i].v});
  }
  /// Takes a sequence out of its stream (LC-40), with a journal to take that back.
  void remove(std::int32_t seq, std::int64_t begin, std::int64_t end) noexcept {
    const std::int32_t stream = stream_of(seq);
    note_removal(stream, seq, begin, end);
    lower_head(stream, table(stream).remove_range(seq, begin, end));
  }
  void remove_any(std::int64_t begin, std::int64_t end) noexcept {
    for (std::int32_t i = 0; i < streams(); ++i) lower_head(i, table(i).remove_range(begin, end));
  }

  /// Changes from now on are in the journal: `purges` whether removals are, too.
  void keep_journal(bool purges) noexcept {
    journal_.clear();
    journaling_ = true;
    purges_too_ = purges;
  }
  void stop_journal() noexcept { journaling_ = false; }
  /// Room for n tokens and for all cells that purges could remove. Throws std::bad_alloc.
  void reserve_journal(std::size_t tokens, bool purges) {
    // A slot that is written is noted with its owner. What is placed can be purged, too.
    std::size_t most = tokens * 3;
    for (const Stream& stream : streams_) {
      const StreamTable::Sequences& range = stream.table.sequences();
      for (std::int32_t seq = range.first; seq < range.first + range.count; ++seq) {
        const OwnedCells& its = stream.table.of(seq);
        most += purges ? its.size() : its.index_of(0);
      }
    }
    journal_.reserve(most);
  }
  [[nodiscard]] std::size_t journal() const { return journal_.size(); }
  /// Takes back what the journal has from number `from` on.
  void undo(std::size_t from) noexcept {
    journaling_ = false;
    for (; journal_.size() > from; journal_.pop_back()) {
      const auto& [before, stream, slot] = journal_.back();
      StreamTable& its = table(stream);
      if (slot) {
        if (its.is_used(before.cell)) its.remove(before.cell);
      } else if (its.is_used(before.cell)) {
        its.add_owner(before.cell, before.seq);
      } else {
        its.take(before.cell, before.pos, before.seq);
        its.set_shift(before.cell, before.shift);
      }
    }
  }

  /// Empties all cells, with `data` the rows, too (LC-47).
  void clear(bool data) noexcept {
    for (Stream& stream : streams_) {
      stream.table.reset();
      stream.head = 0;
      if (!data) continue;
      std::fill_n(stream.rows.begin(), stream.written, Row());
      stream.written = 0;
    }
  }
  /// Turns keys by their cells' shifts; whether there was anything to do (LC-45).
  bool turn() noexcept {
    bool any = false;
    for (Stream& stream : streams_) {
      if (!stream.table.has_shift()) continue;
      any = true;
      stream.table.each_shift([&](std::int64_t cell, std::int32_t shift) {
        auto& row = stream.rows[static_cast<std::size_t>(cell)];
        if (row.k != 0) row.rot += shift;  // a row that was never written stays 0
      });
      stream.table.reset_shift();
    }
    return any;
  }
  void copy_rows(std::int32_t from, std::int32_t to) noexcept {
    const Stream& source = at(from);
    Stream& target = at(to);
    // Behind both ends rows are alike.
    std::copy_n(source.rows.begin(), std::max(source.written, target.written), target.rows.begin());
    target.written = source.written;
  }

  /// What state_save has of a stream (LC-71, LC-72), with the number of the cell in the place of
  /// its row, until fill_rows. Throws std::bad_alloc.
  [[nodiscard]] cells::SavedStream saved(std::int32_t stream, std::int32_t seq,
                                         std::int64_t n_seq_max) const {
    const Stream& its = at(stream);
    std::vector<std::int32_t> numbers;
    if (seq < 0) {
      numbers.reserve(static_cast<std::size_t>(its.table.used()));
      its.table.each_used([&](std::int32_t cell) { numbers.push_back(cell); });
    } else if (stream_of(seq) == stream) {
      const cells::Extremes extremes = its.table.extremes(seq);
      for (const CellAt& each : its.table.of(seq).all())
        if (!window_.masks(each.pos, extremes.max)) numbers.push_back(each.cell);
      std::ranges::sort(numbers);
    }
    cells::SavedStream saved(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      saved[i].k = numbers[i];
      saved[i].pos = its.table.pos(numbers[i]);
      if (seq < 0) {
        its.table.owners(numbers[i]).each([&](std::int32_t owner) {
          if (owner < n_seq_max) saved[i].seqs.push_back(owner);
        });
      } else if (seq < n_seq_max) {
        saved[i].seqs.push_back(seq);
      }
    }
    return saved;
  }
  void fill_rows(cells::SavedStream& saved, std::int32_t stream) const noexcept {
    for (cells::SavedCell& cell : saved) {
      const Row& row = at(stream).rows[static_cast<std::size_t>(cell.k)];
      cell.k = row.k;
      cell.rot = row.rot;
      cell.v = row.v;
    }
  }
  /// Puts saved cells into a stream that is empty (LC-75), maybe without their rows (LC-76);
  /// reserve_whole, which throws std::bad_alloc, has made room. @{
  void reserve_whole(const cells::SavedStream& saved, std::int32_t stream) {
    std::vector<std::size_t> counts(static_cast<std::size_t>(cells::kSequences));
    for (const cells::SavedCell& cell : saved)
      for (const std::int64_t seq : cell.seqs) ++counts[static_cast<std::size_t>(seq)];
    for (std::int32_t seq = 0; seq < cells::kSequences; ++seq)
      if (const std::size_t count = counts[static_cast<std::size_t>(seq)]; count > 0)
        table(stream).reserve(seq, count);
  }
  void put_whole(const cells::SavedStream& saved, std::int32_t stream, bool rows) noexcept {
    StreamTable& its = table(stream);
    for (std::size_t i = 0; i < saved.size(); ++i) {
      const auto cell = static_cast<std::int32_t>(i);
      its.set_pos(cell, saved[i].pos);
      for (const std::int64_t seq : saved[i].seqs)
        its.add_owner(cell, static_cast<std::int32_t>(seq));
      if (rows) write_row(at(stream), cell, {saved[i].k, saved[i].rot, saved[i].v});
    }
  }
  /// @}

  [[nodiscard]] std::vector<cells::ShownTable> tables() const {
    std::vector<cells::ShownTable> shown;
    shown.reserve(streams_.size());
    for (const Stream& stream : streams_) shown.push_back(stream.table.shown());
    return shown;
  }
  [[nodiscard]] std::vector<cells::StreamRows> rows() const {
    std::vector<cells::StreamRows> shown(streams_.size());
    for (std::size_t s = 0; s < shown.size(); ++s) {
      for (auto* column : {&shown[s].k, &shown[s].rot, &shown[s].v})
        column->reserve(streams_[s].rows.size());
      for (const Row& row : streams_[s].rows) {
        shown[s].k.push_back(row.k);
        shown[s].rot.push_back(row.rot);
        shown[s].v.push_back(row.v);
      }
    }
    return shown;
  }
  [[nodiscard]] std::optional<std::string> broken() const {
    for (std::size_t i = 0; i < streams_.size(); ++i)
      if (const auto found = streams_[i].table.broken())
        return fmt::format("stream {}: {}", i, *found);
    return std::nullopt;
  }

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
  // Makes room in a slot, and remembers who lost what.
  void empty_slot(std::int32_t stream, std::int32_t cell) noexcept {
    StreamTable& its = table(stream);
    if (!its.is_used(cell)) {
      note(stream, {.cell = cell}, true);
      return;
    }
    const std::int32_t pos = its.pos(cell);
    const std::int32_t shift = its.shift(cell);
    const OwnerSet owners = its.owners(cell);
    // Undoing goes backwards: the cell is emptied, and then its owners come back.
    owners.each([&](std::int32_t seq) { note(stream, {cell, pos, shift, seq}, false); });
    note(stream, {.cell = cell}, true);
    its.remove(cell);
    if (pos < 0) return;
    owners.each([&](std::int32_t seq) {
      std::int32_t& most = lost_[static_cast<std::size_t>(seq)];
      most = losing_.has(seq) ? std::max(most, pos) : pos;
    });
    losing_.insert(owners);
  }
  void purge(std::int32_t stream) noexcept {
    if (losing_ == OwnerSet()) return;
    losing_.each([&](std::int32_t seq) {
      // What counts as empty at position -1 hides that anything is left to purge.
      if (table(stream).extremes(seq).min < 0) return;
      const std::int32_t end =
          std::min(lost_[static_cast<std::size_t>(seq)], cells::kMaxPosition - 1) + 1;
      note_removal(stream, seq, 0, end);
      table(stream).remove_range(seq, 0, end);
    });
    losing_ = {};
  }
  /// A sequence is about to leave its cells in range.
  void note_removal(std::int32_t stream, std::int32_t seq, std::int64_t begin,
                    std::int64_t end) noexcept {
    if (!journaling_ || !purges_too_) return;
    for (const CellAt& each : table(stream).of(seq).between(begin, end))
      note(stream, {each.cell, each.pos, table(stream).shift(each.cell), seq}, false);
  }
  /// Positions [begin, end) that a window lets a token at `pos` see (LC-53). Position -1 is none.
  struct SeenPositions {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  [[nodiscard]] SeenPositions seen_from(std::int64_t pos) const {
    SeenPositions seen{0, std::numeric_limits<std::int64_t>::max()};
    switch (window_.type) {
      case cells::WindowType::kNone:
        break;
      case cells::WindowType::kStandard:
        seen.begin = pos - window_.size + 1;
        break;
      case cells::WindowType::kChunked:
        seen.begin = pos / window_.size * window_.size;
        break;
      case cells::WindowType::kSymmetric:
        seen = {pos - window_.size / 2, pos + window_.size / 2 + 1};
        break;
    }
    return seen;
  }
  void write_row(Stream& stream, std::int32_t cell, const Row& row) noexcept {
    const auto place = static_cast<std::size_t>(cell);
    stream.rows[place] = row;
    stream.written = std::max(stream.written, place + 1);
  }

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
