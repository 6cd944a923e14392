// The history of a cache of cells, or of a pair of them.
//
// Known is which token lies in which cell, whose it is, and what its row holds.
// Judged
// batches   get cells that were empty or that nobody sees any more, each once; every token is
//           placed once; it sees exactly the cells of its sequence up to it, in its window; a batch
//           is refused only where too few cells are free; one that is refused, or rehearsed, leaves
//           nothing behind.
// keys      stand at the positions of their cells once shifts are applied.
// rows      are those of the tokens that were placed, copied and loaded; a copy between streams has
//           those of its source at the time of the call, whatever comes between.
// states    hold the cells of a sequence; loaded they are there again, beside what was there.
// figures   used cells are those with a position; extremes, shifts and bytes are those of the
//           cells.
// Skipped   in profile original: with a window, tables after a refused batch, and masks and tables
//           after one of several ubatches, until a look at them (rehearsal_purges); what a load
//           that failed has touched (failed_load_removes, half_loaded); positions below 0. Followed
//           are division_turns_back, copy_is_late, saved_before_update, keeps_other_streams,
//           empty_state_changes_nothing, last_is_primary. In both, what an altered state is loaded
//           into, and cells with two tokens at one position after a load.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "properties/cells/history.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::cells {
namespace {

/// The row of a cell (LC-46).
struct KnownRow {
  std::int64_t k = 0;
  std::int64_t rot = 0;  ///< position that the key is turned to
  std::int64_t v = 0;
  friend bool operator==(const KnownRow&, const KnownRow&) = default;
};

struct KnownCell {
  bool used = false;
  std::int64_t pos = -1;
  std::int64_t shift = 0;
  std::set<std::int64_t> owners = {};
  std::optional<KnownRow> row = KnownRow();  ///< none: not known

  [[nodiscard]] bool has(std::int64_t seq) const { return used && owners.contains(seq); }
  /// Empties the cell; its row stays.
  void empty() { *this = {.row = row}; }
};

/// A token of a batch.
struct KnownToken {
  std::int64_t pos = 0;
  std::set<std::int64_t> seqs = {};
  std::int64_t primary = 0;  ///< whose cells it sees (LC-38)
};

using Tokens = std::vector<KnownToken>;

/// Rows of a batch, and their cells in one half.
struct KnownUbatch {
  const Tokens& tokens;  ///< of the batch
  const std::vector<std::int32_t>& rows;
  const std::vector<std::int32_t>& slots;

  [[nodiscard]] const KnownToken& token(std::size_t i) const {
    return tokens[static_cast<std::size_t>(rows[i])];
  }
};

/// What an ubatch shows of a half.
struct ShownHalf {
  const std::vector<std::int32_t>& slots;
  std::int64_t n_kv;
  const std::optional<Tensor>& mask;
  const std::optional<ShownUbatch::Visible>& visible;
};
ShownHalf half_of(const ShownUbatch& ubatch, std::size_t half) {
  if (half == 0) return {ubatch.slots, ubatch.n_kv, ubatch.mask, ubatch.visible};
  return {ubatch.slots_swa ? *ubatch.slots_swa : ubatch.slots, ubatch.n_kv_swa.value_or(0),
          ubatch.mask_swa, ubatch.visible_swa};
}

/// Cells of a stream as they were saved; none: not known.
using KnownSaved = std::optional<std::vector<KnownCell>>;

std::string cell_text(std::int64_t cell) {
  return "cell " + std::to_string(cell);
}

std::map<std::int64_t, ShownCell> by_cell(const ShownTable& table) {
  std::map<std::int64_t, ShownCell> cells;
  for (const ShownCell& cell : table.cells) cells.emplace(cell.cell, cell);
  return cells;
}

bool is_same(const ShownCell& shown, const KnownCell& known) {
  return shown.pos == known.pos && shown.shift == known.shift &&
         std::ranges::equal(shown.seqs, known.owners);
}

// Words where shown tables contradict themselves (LC-3).
Oracle::Words wrong_figures(const std::vector<ShownTable>& shown) {
  for (const ShownTable& table : shown) {
    std::int64_t last = -1;
    for (const ShownCell& cell : table.cells) {
      if (cell.cell <= last) return "cells are not ascending";
      last = cell.cell;
      if (!std::ranges::is_sorted(cell.seqs)) return cell_text(cell.cell) + ": owners not in order";
    }
    if (table.used != std::ssize(table.cells))
      return std::to_string(table.used) + " cells are used, " + std::to_string(table.cells.size()) +
             " are not empty";
    const std::int64_t begin = table.cells.empty() ? 0 : table.cells.front().cell;
    if (table.used_min != begin || table.used_end != last + 1)
      return "the used cells do not begin and end where the first and the last one is";
  }
  return std::nullopt;
}

/// What is known of the tables and rows of a cache, or of a half of a pair. The cells of a batch
/// are those of its result. After a load into a sequence the next `state` shows its cells: it must
/// have the loaded ones beside the earlier ones. A stream of which nothing is known is adopted from
/// the next `state` and `rows`.
class HalfHistory {
 public:
  using Words = Oracle::Words;

  HalfHistory(const KvOptions& options, std::int64_t size, const Window& window)
      : options_(options), size_(size), window_(window) {
    streams_.resize(static_cast<std::size_t>(options.streams()));
    for (Stream& stream : streams_) stream.cells.resize(static_cast<std::size_t>(size));
  }

  // ---- Sequences (LC-40 to LC-47, LC-66) ----

  void remove(std::int64_t seq, const Range& range) {
    if (seq >= 0) {
      if (Stream* stream = settled(number_of(seq))) remove(*stream, seq, range.begin, range.end);
      return;
    }
    for (std::size_t i = 0; i < streams_.size(); ++i)
      if (Stream* stream = settled(i))
        for (KnownCell& cell : stream->cells)
          if (cell.used && range.has(cell.pos)) cell.empty();
  }
  void share(std::int64_t src, std::int64_t dst, const Range& range) {
    each_cell(src, range, [&](Stream&, KnownCell& cell) { cell.owners.insert(dst); });
  }
  void copy(std::int64_t src, std::int64_t dst) {
    const bool late = options_.quirks.has(Quirk::kCopyIsLate);
    if (late) copies_.emplace_back(number_of(src), number_of(dst));
    const Stream* from = settled(number_of(src));
    Stream& to = streams_[number_of(dst)];
    if (!is_settled(to)) forget(to);
    to.known = from != nullptr;
    to.has_shift = false;
    for (std::size_t i = 0; i < to.cells.size(); ++i) {
      const KnownCell& cell = streams_[number_of(src)].cells[i];
      to.cells[i].empty();
      if (!late) to.cells[i].row = cell.row;
      if (!to.known || !cell.has(src)) continue;
      to.cells[i] = {.used = true,
                     .pos = cell.pos,
                     .shift = cell.shift,
                     .owners = {dst},
                     .row = to.cells[i].row};
      to.has_shift = to.has_shift || cell.shift != 0;
    }
  }
  void keep(std::int64_t seq) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (options_.quirks.has(Quirk::kKeepsOtherStreams) && i != number_of(seq)) continue;
      Stream* stream = settled(i);
      if (stream == nullptr) continue;
      for (KnownCell& cell : stream->cells) {
        if (!cell.used || cell.owners.empty()) continue;
        if (cell.has(seq))
          cell.owners = {seq};
        else
          cell.empty();
      }
    }
  }
  // Keys are to be turned by as much as their position moves: the rest is update's.
  void move(std::int64_t seq, const Range& range, std::int64_t delta) {
    each_cell(seq, range, [&](Stream& stream, KnownCell& cell) {
      stream.has_shift = true;
      cell.pos += delta;
      cell.shift += delta;
      if (cell.pos < 0) cell.empty();
    });
  }
  void divide(std::int64_t seq, const Range& range, std::int64_t d) {
    const bool back = options_.quirks.has(Quirk::kDivisionTurnsBack);
    each_cell(seq, range, [&](Stream& stream, KnownCell& cell) {
      stream.has_shift = true;
      const std::int64_t moved = cell.pos / d - cell.pos;
      cell.pos += moved;
      cell.shift += back ? -moved : moved;
    });
  }
  void clear(bool data) {
    for (Stream& stream : streams_) {
      if (!is_settled(stream)) forget(stream);
      stream.known = true;
      stream.has_shift = false;
      for (KnownCell& cell : stream.cells) {
        cell.empty();
        if (data) cell.row = KnownRow();
      }
    }
  }
  /// Whether anything was pending; nothing: not known.
  std::optional<bool> update() {
    bool pending = !copies_.empty();
    bool all_known = true;
    for (const auto& [from, to] : copies_) {
      if (streams_[to].loaded) forget(streams_[to]);
      const bool known = is_settled(streams_[from]);
      for (std::size_t i = 0; i < streams_[to].cells.size(); ++i)
        streams_[to].cells[i].row = known ? streams_[from].cells[i].row : std::nullopt;
    }
    copies_.clear();
    for (Stream& stream : streams_) {
      all_known = all_known && stream.known;
      if (!stream.known) forget(stream);
      if (!stream.known || !stream.has_shift) continue;
      pending = true;
      if (stream.loaded) forget(stream);
      for (KnownCell& cell : stream.cells) {
        if (cell.used && cell.row && cell.row->k != 0) cell.row->rot += cell.shift;
        cell.shift = 0;
      }
      stream.has_shift = false;
    }
    return all_known ? std::optional(pending) : std::nullopt;
  }

  // ---- Saved states (LC-70 to LC-76) ----

  // LC-71, LC-72
  [[nodiscard]] std::vector<KnownSaved> save(std::int64_t seq) const {
    std::vector<KnownSaved> saved;
    for (const Stream& stream : streams_) {
      KnownSaved& to = saved.emplace_back();
      if (!is_settled(stream)) continue;
      to.emplace();
      const std::int64_t max = seq < 0 ? -1 : extremes(stream, seq).max;
      for (const KnownCell& cell : stream.cells) {
        if (!cell.used || (seq >= 0 && (!cell.has(seq) || window_.masks(cell.pos, max)))) continue;
        KnownCell& one = to->emplace_back(cell);
        one.shift = 0;
        if (seq >= 0) one.owners = {seq};
        std::erase_if(one.owners, [&](std::int64_t owner) { return owner >= options_.n_seq_max; });
      }
    }
    return saved;
  }
  // LC-73, LC-75
  void load(const std::vector<KnownSaved>& saved, std::int64_t seq) {
    if (seq < 0) {
      clear(true);
      for (std::size_t s = 0; s < saved.size() && s < streams_.size(); ++s) {
        if (!saved[s] || saved[s]->size() > streams_[s].cells.size())
          forget(streams_[s]);
        else
          std::ranges::copy(*saved[s], streams_[s].cells.begin());
      }
      return;
    }
    const std::vector<KnownCell>* cells = nullptr;
    for (const KnownSaved& stream : saved) {
      if (!stream || (!stream->empty() && cells != nullptr)) return forget(seq);
      if (!stream->empty()) cells = &*stream;
    }
    if (cells == nullptr && options_.quirks.has(Quirk::kEmptyStateChangesNothing)) return;
    Stream* stream = settled(number_of(seq));
    if (stream == nullptr) return;
    remove(*stream, seq, 0, kMaxPosition);
    if (cells != nullptr) stream->loaded.emplace(seq, *cells);
  }
  /// Nothing is known any more of a sequence's stream, or with -1 of any.
  void forget(std::int64_t seq) {
    for (std::size_t i = 0; i < streams_.size(); ++i)
      if (seq < 0 || i == number_of(seq)) forget(streams_[i]);
  }

  // ---- Batches ----

  /// Cells that a token of a stream may get (LC-35); nothing: not known.
  [[nodiscard]] std::optional<std::int64_t> usable(std::int64_t seq) const {
    const std::size_t number = number_of(seq);
    if (number >= streams_.size() || !is_settled(streams_[number])) return std::nullopt;
    std::map<std::int64_t, std::int64_t> next;
    return std::ranges::count_if(streams_[number].cells, [&](const KnownCell& cell) {
      return is_usable(streams_[number], cell, next);
    });
  }
  /// Words where a slot may not be had, or twice.
  [[nodiscard]] Words wrong_slots(const KnownUbatch& ubatch) const {
    const auto& [tokens, rows, slots] = ubatch;
    if (slots.size() != rows.size()) return "there is not one slot for each token";
    std::set<std::pair<std::size_t, std::int32_t>> taken;
    std::map<std::int64_t, std::int64_t> next;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t number = number_of(ubatch.token(i).primary);
      if (slots[i] < 0 || slots[i] >= size_) return cell_text(slots[i]) + " is a slot, and is not";
      if (!taken.insert({number, slots[i]}).second) return cell_text(slots[i]) + " is a slot twice";
      const Stream& stream = streams_[number];
      if (!is_settled(stream)) continue;
      if (!is_usable(stream, stream.cells[static_cast<std::size_t>(slots[i])], next))
        return cell_text(slots[i]) + " is a slot, and its token is still seen";
    }
    return std::nullopt;
  }
  /// LC-36, LC-61. Requires  the slots are not wrong.
  void place(const KnownUbatch& ubatch) {
    std::map<std::int64_t, std::int64_t> lost;  // by sequence, its largest position
    for (std::size_t i = 0; i < ubatch.rows.size(); ++i) {
      const KnownToken& token = ubatch.token(i);
      Stream* stream = settled(number_of(token.primary));
      if (stream == nullptr) continue;
      KnownCell& cell = stream->cells[static_cast<std::size_t>(ubatch.slots[i])];
      for (const std::int64_t seq : cell.owners)
        lost[seq] = std::max(lost.try_emplace(seq, cell.pos).first->second, cell.pos);
      cell = {.used = true, .pos = token.pos, .owners = token.seqs, .row = cell.row};
    }
    for (const auto& [seq, pos] : lost) {
      Stream& stream = streams_[number_of(seq)];
      const std::int64_t min = extremes(stream, seq).min;
      if (min >= 0 && min <= pos) remove(stream, seq, min, pos + 1);
    }
  }
  void write(const KnownUbatch& ubatch, std::int64_t first_tag) {
    for (std::size_t i = 0; i < ubatch.rows.size(); ++i) {
      const KnownToken& token = ubatch.token(i);
      const std::int64_t tag = first_tag + ubatch.rows[i];
      if (Stream* stream = settled(number_of(token.primary)))
        stream->cells[static_cast<std::size_t>(ubatch.slots[i])].row = {tag, token.pos, tag};
    }
  }
  /// Words where a token sees other cells than it must (LC-50 to LC-58).
  [[nodiscard]] Words wrong_mask(const KnownUbatch& ubatch, bool causal,
                                 const ShownHalf& shown) const {
    const auto& [slots, n_kv, mask, visible] = shown;
    if (options_.non_causal == NonCausal::kSwaOnly && !has_window()) causal = true;
    const bool own_are_seen = !causal && options_.non_causal == NonCausal::kSwaFull;
    std::map<std::int64_t, std::int64_t> first;
    for (std::size_t i = 0; i < ubatch.rows.size(); ++i) {
      const KnownToken& token = ubatch.token(i);
      first[token.primary] =
          std::min(first.try_emplace(token.primary, token.pos).first->second, token.pos);
    }
    if (mask && mask->dtype != DType::kF32) return "the mask is not of floats";
    const auto entries = mask ? mask->floats() : std::span<const float>();
    if (mask && std::ssize(entries) != std::ssize(ubatch.rows) * n_kv)
      return "the mask has another shape";
    if (visible && visible->size() != ubatch.rows.size())
      return "not every token has a list of cells";
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < ubatch.rows.size(); ++i) {
      const KnownToken& token = ubatch.token(i);
      const Stream& stream = streams_[number_of(token.primary)];
      if (!is_settled(stream)) continue;
      std::vector<std::int32_t> seen;
      for (std::int64_t j = 0; j < size_; ++j) {
        const KnownCell& cell = stream.cells[static_cast<std::size_t>(j)];
        const bool exempt = own_are_seen && cell.pos >= first[token.primary];
        const bool is_seen = cell.has(token.primary) && (!causal || cell.pos <= token.pos) &&
                             (exempt || !window_.masks(cell.pos, token.pos));
        if (is_seen && j >= n_kv) return cell_text(j) + " is seen, and the mask ends before it";
        if (is_seen) seen.push_back(static_cast<std::int32_t>(j));
        if (!mask || j >= n_kv) continue;
        const float distance =
            options_.alibi ? static_cast<float>(-std::abs(cell.pos - token.pos)) : 0.0F;
        if (entries[i * static_cast<std::size_t>(n_kv) + static_cast<std::size_t>(j)] !=
            (is_seen ? distance : kHidden))
          return "the token at " + std::to_string(token.pos) + (is_seen ? " must" : " must not") +
                 " see " + cell_text(j);
      }
      if (visible && (*visible)[i] != seen)
        return "the token at " + std::to_string(token.pos) + " sees other cells than it must";
    }
    return std::nullopt;
  }

  // ---- Figures ----

  /// LC-4; nothing: not known.
  [[nodiscard]] std::optional<Extremes> extremes(std::int64_t seq) const {
    const std::size_t number = number_of(seq);
    if (number >= streams_.size()) return Extremes();
    if (!is_settled(streams_[number])) return std::nullopt;
    return extremes(streams_[number], seq);
  }
  [[nodiscard]] Words compare(const std::vector<ShownTable>& shown) {
    if (auto words = wrong_figures(shown)) return words;
    if (shown.size() != streams_.size()) return "not every stream is shown";
    for (std::size_t s = 0; s < shown.size(); ++s) {
      Stream& stream = streams_[s];
      const auto cells = by_cell(shown[s]);
      if (!cells.empty() && cells.rbegin()->first >= size_)
        return "there are more cells than there are";
      if (stream.known && shown[s].has_shift != stream.has_shift)
        return stream.has_shift ? "shifts are pending, and are not shown" : "no shift is pending";
      Words words;
      if (!stream.known)
        adopt(stream, cells);
      else
        words = stream.loaded ? compare_loaded(stream, cells) : compare_known(stream, cells);
      if (words) return "stream " + std::to_string(s) + ": " + *words;
      stream.known = true;
      stream.has_shift = shown[s].has_shift;
    }
    return std::nullopt;
  }
  [[nodiscard]] Words compare(const std::vector<StreamRows>& shown) {
    if (shown.size() != streams_.size()) return "not every stream is shown";
    for (std::size_t s = 0; s < shown.size(); ++s) {
      Stream& stream = streams_[s];
      const auto& [k, rot, v] = shown[s];
      if (std::ssize(k) != size_ || std::ssize(rot) != size_ || std::ssize(v) != size_)
        return "not every cell has a row";
      if (stream.loaded) continue;
      for (std::size_t i = 0; i < stream.cells.size(); ++i) {
        KnownCell& cell = stream.cells[i];
        const KnownRow row{k[i], rot[i], v[i]};
        if (!cell.row) cell.row = row;
        if (*cell.row == row) continue;
        const std::string where =
            "stream " + std::to_string(s) + ": " + cell_text(static_cast<std::int64_t>(i));
        if (cell.row->k == row.k && cell.row->v == row.v)
          return where + ": the key is turned to " + std::to_string(row.rot) + ", not to " +
                 std::to_string(cell.row->rot);
        return where + " has the row of another token";
      }
    }
    return std::nullopt;
  }
  /// "cell 0 (position 0 of sequences 0, 1)", with the window where there is one.
  [[nodiscard]] std::string held_text(std::int64_t seq, std::int32_t cell) const {
    std::string text = "cell " + std::to_string(cell);
    if (!is_used(seq, cell)) return text;
    const KnownCell& held = streams_[number_of(seq)].cells[static_cast<std::size_t>(cell)];
    text += " (position " + std::to_string(held.pos) + " of sequence";
    if (held.owners.size() > 1) text += "s";
    for (const std::int64_t owner : held.owners)
      text += (owner == *held.owners.begin() ? " " : ", ") + std::to_string(owner);
    return text + (has_window() ? "; window " + std::to_string(window_.size) : "") + ")";
  }
  [[nodiscard]] bool is_used(std::int64_t seq, std::int32_t cell) const {
    const Stream& stream = streams_[number_of(seq)];
    const auto at = static_cast<std::size_t>(cell);
    return stream.known && at < stream.cells.size() && stream.cells[at].used;
  }
  [[nodiscard]] bool has_window() const { return window_.type != WindowType::kNone; }

 private:
  struct Stream {
    bool known = true;
    bool has_shift = false;
    std::vector<KnownCell> cells = {};
    /// Cells of a sequence that lie somewhere.
    std::optional<std::pair<std::int64_t, std::vector<KnownCell>>> loaded = std::nullopt;
  };

  [[nodiscard]] std::size_t number_of(std::int64_t seq) const {
    return options_.unified ? 0 : static_cast<std::size_t>(seq);
  }
  [[nodiscard]] bool is_settled(const Stream& stream) const {
    return stream.known && !stream.loaded;
  }
  /// The stream of a sequence, if it is known; what is not is forgotten.
  [[nodiscard]] Stream* settled(std::size_t number) {
    if (number >= streams_.size()) return nullptr;
    Stream& stream = streams_[number];
    if (!is_settled(stream)) forget(stream);
    return stream.known ? &stream : nullptr;
  }
  void forget(Stream& stream) {
    stream.known = false;
    stream.loaded.reset();
    for (KnownCell& cell : stream.cells) cell.row.reset();
  }
  [[nodiscard]] static Extremes extremes(const Stream& stream, std::int64_t seq) {
    Extremes extremes;
    for (const KnownCell& cell : stream.cells) {
      if (!cell.has(seq)) continue;
      extremes.min = extremes.min < 0 ? cell.pos : std::min(extremes.min, cell.pos);
      extremes.max = std::max(extremes.max, cell.pos);
    }
    return extremes;
  }
  [[nodiscard]] bool is_usable(const Stream& stream, const KnownCell& cell,
                               std::map<std::int64_t, std::int64_t>& next) const {
    if (!cell.used) return true;
    if (!has_window() || cell.owners.size() != 1) return false;
    const std::int64_t seq = *cell.owners.begin();
    const auto [found, is_new] = next.try_emplace(seq, 0);
    if (is_new) found->second = extremes(stream, seq).max + 1;
    return window_.masks(cell.pos, found->second);
  }
  void remove(Stream& stream, std::int64_t seq, std::int64_t begin, std::int64_t end) {
    for (KnownCell& cell : stream.cells) {
      if (!cell.has(seq) || cell.pos < begin || cell.pos >= end) continue;
      cell.owners.erase(seq);
      if (cell.owners.empty()) cell.empty();
    }
  }
  void each_cell(std::int64_t seq, const Range& range,
                 const std::function<void(Stream&, KnownCell&)>& change) {
    Stream* stream = settled(number_of(seq));
    if (stream == nullptr) return;
    for (KnownCell& cell : stream->cells)
      if (cell.has(seq) && range.has(cell.pos)) change(*stream, cell);
  }
  [[nodiscard]] Words compare_known(Stream& stream,
                                    const std::map<std::int64_t, ShownCell>& shown) const {
    for (std::int64_t i = 0; i < size_; ++i) {
      const KnownCell& known = stream.cells[static_cast<std::size_t>(i)];
      const auto cell = shown.find(i);
      if (known.used && cell == shown.end()) return cell_text(i) + " has lost its token";
      if (!known.used && cell != shown.end()) return cell_text(i) + " has a token that has gone";
      if (known.used && !is_same(cell->second, known))
        return cell_text(i) + " has another position, shift or other owners than it was given";
    }
    return std::nullopt;
  }
  // What was loaded lies where nothing was, or under a window where nothing is seen any more.
  [[nodiscard]] Words compare_loaded(Stream& stream,
                                     const std::map<std::int64_t, ShownCell>& shown) {
    auto& [seq, cells] = *stream.loaded;
    std::multimap<std::int64_t, std::int64_t> placed;  // [position], cells
    for (std::int64_t i = 0; i < size_; ++i) {
      const KnownCell& known = stream.cells[static_cast<std::size_t>(i)];
      const auto cell = shown.find(i);
      if (known.used && cell != shown.end() && is_same(cell->second, known)) continue;
      if (known.used && !has_window()) return "a load has changed " + cell_text(i);
      if (cell == shown.end()) continue;
      if (!std::ranges::equal(cell->second.seqs, std::array{seq}) || cell->second.shift != 0) {
        if (!known.used || cell->second.pos != known.pos)
          return cell_text(i) + " has a token that was not loaded";
        continue;
      }
      placed.emplace(cell->second.pos, i);
    }
    if (placed.size() != cells.size())
      return std::to_string(cells.size()) + " cells were loaded, " + std::to_string(placed.size()) +
             " are there";
    const std::vector<KnownCell> loaded = cells;
    stream.loaded.reset();
    adopt(stream, shown);
    for (const auto& [pos, cell] : placed) stream.cells[static_cast<std::size_t>(cell)].row.reset();
    for (const KnownCell& from : loaded) {
      if (!placed.contains(from.pos))
        return "the loaded token at " + std::to_string(from.pos) + " is not there";
      if (placed.count(from.pos) == 1)
        stream.cells[static_cast<std::size_t>(placed.find(from.pos)->second)].row = from.row;
    }
    return std::nullopt;
  }
  void adopt(Stream& stream, const std::map<std::int64_t, ShownCell>& shown) {
    for (KnownCell& cell : stream.cells) cell.empty();
    for (const auto& [number, cell] : shown) {
      KnownCell& to = stream.cells[static_cast<std::size_t>(number)];
      to = {.used = true,
            .pos = cell.pos,
            .shift = cell.shift,
            .owners = {cell.seqs.begin(), cell.seqs.end()},
            .row = to.row};
    }
  }

  KvOptions options_;
  std::int64_t size_;
  Window window_;
  std::vector<Stream> streams_;
  std::vector<std::pair<std::size_t, std::size_t>> copies_ = {};  ///< whose rows follow (LC-66)
};

class KvHistory final : public Oracle {
 public:
  explicit KvHistory(const KvOptions& options) : options_(options) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.unsupported) return words;
    visit_op(Ops(), op, [&]<class T>(const T& operation) {
      const bool there = std::is_same_v<T, New> || (!halves_.empty() && !lost_);
      const bool judges_errors = OneOf<T, Decode, FindSlot, StateLoad>;
      words = there && (judges_errors || !seen.error) ? observe(operation, seen) : skip();
    });
    return words;
  }
  // The first cell that only one of the results takes: what it holds.
  [[nodiscard]] std::vector<std::string> explain(std::span<const Op> script,
                                                 const Observation& want,
                                                 const Observation& got) const override {
    const auto* op = script.back().as<Decode>();
    if (op == nullptr || halves_.empty() || lost_ || (want.error && got.error)) return {};
    const auto tokens = tokens_of(*op);
    const auto placed = [](const Observation& seen) {
      return seen.error ? std::nullopt : seen.as<Decode::Returns>().ubatches;
    };
    const auto wanted = placed(want);
    const auto shown = placed(got);
    if (!tokens || (!wanted && !shown)) return {};
    std::vector<HalfHistory> halves = halves_;
    const std::vector<ShownUbatch>& all = shown ? *shown : *wanted;
    for (std::size_t u = 0; u < all.size(); ++u)
      for (std::size_t h = 0; h < halves.size(); ++h) {
        const auto& slots = half_of(all[u], h).slots;
        const auto due = shown && wanted && u < wanted->size() ? half_of((*wanted)[u], h).slots
                                                               : std::vector<std::int32_t>();
        for (std::size_t i = 0; i < slots.size() && i < all[u].rows.size(); ++i) {
          const KnownToken& token = (*tokens)[static_cast<std::size_t>(all[u].rows[i])];
          const bool differs =
              i < due.size() ? due[i] != slots[i] : halves[h].is_used(token.primary, slots[i]);
          if (!differs) continue;
          std::string line = "position " + std::to_string(token.pos) + " of sequence " +
                             std::to_string(token.primary);
          line +=
              (shown ? " takes " : " was to take ") + halves[h].held_text(token.primary, slots[i]);
          if (i < due.size())
            line += "; it was to take " + halves[h].held_text(token.primary, due[i]);
          return {line};
        }
        halves[h].place({*tokens, all[u].rows, slots});
      }
    return {};
  }

 private:
  struct Saved {
    std::vector<std::vector<KnownSaved>> halves = {};  ///< none of the base in a partial one
    bool altered = false;
  };

  // ---- Operations ----

  Words observe(const New& /*op*/, const Observation& /*seen*/) {
    halves_.clear();
    saved_.clear();
    tags_ = 0;
    lost_ = false;
    halves_.emplace_back(options_, options_.size, is_pair() ? Window() : options_.window);
    if (is_pair()) halves_.emplace_back(options_, *options_.size_window, options_.window);
    return judged();
  }
  Words observe(const Decode& op, const Observation& seen) {
    if (seen.failed_with(Code::kFull)) return judged(refused(op));
    if (seen.error) return seen.error->code_text() == "other:aborted" ? forget_all() : skip();
    const auto& ubatches = seen.as<Decode::Returns>().ubatches;
    const auto tokens = tokens_of(op);
    const std::int64_t count = std::ssize(op.seqs);
    if (!ubatches || !tokens) {
      tags_ += count;
      return forget_all();
    }
    for (const KnownToken& token : *tokens)
      if (token.pos < 0) lost_ = true;
    if (lost_) return skip();
    if (auto words = wrong_split(op, *ubatches)) return judged(words);
    for (HalfHistory& half : halves_) (void)half.update();
    const bool doubtful = has(Quirk::kRehearsalPurges) && (is_pair() || ubatches->size() > 1);
    for (const ShownUbatch& ubatch : *ubatches)
      if (auto words = placed(*tokens, ubatch, op.causal.value_or(true), doubtful))
        return judged(words);
    tags_ += count;
    return judged();
  }
  Words observe(const FindSlot& op, const Observation& seen) {
    if (op.seqs.empty() || op.seqs.front().empty()) return skip();
    const HalfHistory& half = op.swa.value_or(false) ? halves_.back() : halves_.front();
    const std::int64_t seq = primary_of(op.seqs.front());
    if (seen.failed_with(Code::kFull)) {
      const bool room =
          !op.cont.value_or(false) && half.usable(seq).value_or(0) >= std::ssize(op.seqs);
      return judged(room ? Words("no slots are found, and there is room") : Words());
    }
    if (seen.error) return skip();
    const auto& slots = seen.as<FindSlot::Returns>().slots;
    Tokens tokens;
    std::vector<std::int32_t> rows;
    for (std::size_t i = 0; i < op.seqs.size(); ++i) {
      tokens.push_back({.pos = 0, .seqs = {seq}, .primary = seq});
      rows.push_back(static_cast<std::int32_t>(i));
    }
    if (auto words = half.wrong_slots({tokens, rows, slots})) return judged(words);
    const auto apart = [](std::int32_t a, std::int32_t b) { return b != a + 1; };
    const bool adjacent = std::ranges::adjacent_find(slots, apart) == slots.end();
    return judged(op.cont.value_or(false) && !adjacent ? Words("the slots are not adjacent")
                                                       : Words());
  }
  Words observe(const SeqRm& op, const Observation& /*seen*/) {
    for (HalfHistory& half : halves_) half.remove(op.seq, range_of(op.p0, op.p1));
    return judged();
  }
  Words observe(const SeqCp& op, const Observation& /*seen*/) {
    if (op.src == op.dst) return skip();
    for (const std::int64_t seq : {op.src, op.dst})
      if (!options_.unified && (seq < 0 || seq >= options_.n_seq_max))
        return "sequence " + std::to_string(seq) + " cannot be, and is copied";
    for (HalfHistory& half : halves_)
      options_.unified ? half.share(op.src, op.dst, range_of(op.p0, op.p1))
                       : half.copy(op.src, op.dst);
    return judged();
  }
  Words observe(const SeqKeep& op, const Observation& /*seen*/) {
    for (HalfHistory& half : halves_) half.keep(op.seq);
    return judged();
  }
  Words observe(const SeqAdd& op, const Observation& /*seen*/) {
    const Range range = range_of(op.p0, op.p1);
    if (op.delta == 0 || range.begin == range.end) return judged();
    for (HalfHistory& half : halves_) half.move(op.seq, range, op.delta);
    return judged();
  }
  Words observe(const SeqDiv& op, const Observation& /*seen*/) {
    const Range range = range_of(op.p0, op.p1);
    if (op.d <= 1 || range.begin == range.end) return judged();
    for (HalfHistory& half : halves_) half.divide(op.seq, range, op.d);
    return judged();
  }
  Words observe(const SeqPos& op, const Observation& seen) {
    const auto extremes = halves_.back().extremes(op.seq);
    if (!extremes) return skip();
    return judged(seen.as<SeqPos::Returns>() == *extremes
                      ? Words()
                      : Words("the extremes are not those of the sequence's cells"));
  }
  Words observe(const CanShift& /*op*/, const Observation& /*seen*/) { return skip(); }
  Words observe(const Clear& op, const Observation& /*seen*/) {
    for (HalfHistory& half : halves_) half.clear(op.data);
    return judged();
  }
  Words observe(const UpdatePending& /*op*/, const Observation& seen) {
    bool known = true;
    bool pending = false;
    for (HalfHistory& half : halves_) {
      const auto updated = half.update();
      known = known && updated.has_value();
      pending = pending || updated.value_or(false);
    }
    if (!known) return skip();
    return judged(seen.as<UpdatePending::Returns>().updated == pending
                      ? Words()
                      : Words(pending ? "shifts were pending" : "nothing was pending"));
  }
  Words observe(const StateSave& op, const Observation& seen) {
    Saved saved;
    for (std::size_t h = 0; h < halves_.size(); ++h) {
      if (!has(Quirk::kSavedBeforeUpdate)) (void)halves_[h].update();
      if (h == 0 && op.partial.value_or(false))
        saved.halves.emplace_back();
      else
        saved.halves.push_back(halves_[h].save(op.seq));
    }
    const auto& shown = seen.as<StateSave::Returns>();
    const auto bytes = bytes_of(saved, is_pair() ? 1 : 2);
    const std::int64_t handle = std::ssize(saved_);
    saved_.push_back(std::move(saved));
    if (shown.handle != handle) return judged("a state has not the next number");
    if (!bytes || shown.bytes == *bytes) return judged();
    return judged(std::to_string(shown.bytes) + " bytes are saved, the cells take " +
                  std::to_string(*bytes));
  }
  Words observe(const StateLoad& op, const Observation& seen) {
    const bool failed = seen.error && seen.error->code_text() == "other:restore_failed";
    if (seen.error && !failed) return skip();
    if (failed && !has(Quirk::kFailedLoadRemoves)) return judged();
    if (op.handle < 0 || op.handle >= std::ssize(saved_)) return skip();
    const Saved& saved = saved_[static_cast<std::size_t>(op.handle)];
    for (std::size_t h = 0; h < halves_.size(); ++h) {
      if (h == 0 && op.partial.value_or(false)) continue;
      if (failed || saved.altered || saved.halves.size() <= h)
        halves_[h].forget(op.seq);
      else
        halves_[h].load(saved.halves[h], op.seq);
    }
    return failed || saved.altered ? skip() : judged();
  }
  Words observe(const StateEdit& op, const Observation& /*seen*/) {
    if (op.handle >= 0 && op.handle < std::ssize(saved_))
      saved_[static_cast<std::size_t>(op.handle)].altered = true;
    return skip();
  }
  Words observe(const ShowRows& /*op*/, const Observation& seen) {
    const auto& shown = seen.as<ShowRows::Returns>();
    return judged(wrong(shown.streams, shown.streams_swa));
  }
  Words observe(const ShowState& /*op*/, const Observation& seen) {
    const auto& shown = seen.as<ShowState::Returns>();
    auto words = wrong(shown.streams, shown.streams_swa);
    return judged(words ? words : wrong_extremes(shown));
  }

  // ---- What follows ----

  [[nodiscard]] bool has(Quirk quirk) const { return options_.quirks.has(quirk); }
  [[nodiscard]] bool is_pair() const { return options_.size_window.has_value(); }
  /// Words where the halves show other tables, or rows, than they must.
  template <class Shown>
  [[nodiscard]] Words wrong(const Shown& base, const std::optional<Shown>& window) {
    if (auto words = halves_.front().compare(base)) return words;
    return is_pair() && window ? halves_.back().compare(*window) : std::nullopt;
  }
  /// A decode has done what cannot be followed.
  Words forget_all() {
    for (HalfHistory& half : halves_) {
      (void)half.update();
      half.forget(-1);
    }
    return skip();
  }
  /// The tokens of a batch; nothing: where they go on is not known.
  [[nodiscard]] std::optional<Tokens> tokens_of(const Decode& op) const {
    Tokens tokens;
    std::map<std::int64_t, std::int64_t> next;
    for (std::size_t i = 0; i < op.seqs.size(); ++i) {
      const std::vector<std::int64_t>& seqs = op.seqs[i];
      KnownToken& token = tokens.emplace_back();
      token.seqs = {seqs.begin(), seqs.end()};
      token.primary = primary_of(seqs);
      if (op.pos.has_value()) {
        token.pos = (*op.pos)[i];
        continue;
      }
      if (!next.contains(seqs.front())) {
        const auto extremes = halves_.back().extremes(seqs.front());
        if (!extremes) return std::nullopt;
        next[seqs.front()] = extremes->max + 1;
      }
      token.pos = next[seqs.front()]++;
    }
    return tokens;
  }
  // LC-38
  [[nodiscard]] std::int64_t primary_of(const std::vector<std::int64_t>& seqs) const {
    std::vector<std::int64_t> once;
    for (const std::int64_t seq : seqs)
      if (std::ranges::find(once, seq) == once.end()) once.push_back(seq);
    return has(Quirk::kLastIsPrimary) ? once.back() : once.front();
  }
  // A batch of one ubatch is refused only where too few cells are free.
  [[nodiscard]] Words refused(const Decode& op) {
    const std::int64_t wanted = std::ssize(op.seqs);
    bool room = options_.unified && wanted <= op.n_ubatch;
    for (HalfHistory& half : halves_) {
      (void)half.update();
      room = room && half.usable(0).value_or(0) >= wanted;
      if (half.has_window() && has(Quirk::kRehearsalPurges)) half.forget(-1);
    }
    return room ? Words("a batch is refused, and there is room for it") : Words();
  }
  [[nodiscard]] Words wrong_split(const Decode& op,
                                  const std::vector<ShownUbatch>& ubatches) const {
    const std::int64_t extra = has(Quirk::kUbatchTooLarge) ? 1 : 0;
    for (const ShownUbatch& ubatch : ubatches)
      if (std::ssize(ubatch.rows) - extra > op.n_ubatch)
        return "an ubatch has more tokens than n_ubatch";
    return wrong_rows(ubatches, op.seqs.size());
  }
  /// Places an ubatch in both halves. `doubtful`: the mask of a window is not judged.
  [[nodiscard]] Words placed(const Tokens& tokens, const ShownUbatch& ubatch, bool causal,
                             bool doubtful) {
    for (std::size_t h = 0; h < halves_.size(); ++h) {
      const ShownHalf shown = half_of(ubatch, h);
      const KnownUbatch known{tokens, ubatch.rows, shown.slots};
      if (doubtful && halves_[h].has_window()) halves_[h].forget(-1);
      if (auto words = halves_[h].wrong_slots(known)) return words;
      halves_[h].place(known);
      if (auto words = halves_[h].wrong_mask(known, causal, shown)) return words;
      halves_[h].write(known, tags_ + 1);
    }
    return std::nullopt;
  }
  // LC-72
  [[nodiscard]] static std::optional<std::int64_t> bytes_of(const Saved& saved,
                                                            std::int64_t layers) {
    std::int64_t bytes = 0;
    for (const std::vector<KnownSaved>& half : saved.halves) {
      if (half.empty()) continue;
      bytes += 4;
      for (const KnownSaved& stream : half) {
        if (!stream) return std::nullopt;
        bytes += 4;
        if (stream->empty()) continue;
        bytes += 8 + layers * 2 * (12 + 8 * std::ssize(*stream));
        for (const KnownCell& cell : *stream) bytes += 8 + 4 * std::ssize(cell.owners);
      }
    }
    return bytes;
  }
  // LC-4, LC-68
  [[nodiscard]] static Words wrong_extremes(const ShowState::Returns& shown) {
    ExtremesOfCells extremes;
    for (const ShownTable& table : shown.streams_swa.value_or(shown.streams))
      for (const ShownCell& cell : table.cells)
        for (const std::int64_t seq : cell.seqs) extremes.add(seq, cell.pos);
    return extremes.wrong(shown.seqs);
  }

  KvOptions options_;
  std::vector<HalfHistory> halves_ = {};  ///< none: there is no cache
  std::vector<Saved> saved_ = {};
  std::int64_t tags_ = 0;
  bool lost_ = false;
};

}  // namespace

std::unique_ptr<Oracle> kv_history(const KvOptions& options) {
  return std::make_unique<KvHistory>(options);
}

}  // namespace kvo::cells
