#include "reference/cells/plain_half_cache.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kvo::cells {
namespace {

/// A run of an ubatch's tokens that are in one stream: their places in the ubatch.
struct Run {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int32_t seq = 0;
};

const Token& token_of(const std::vector<Token>& tokens, std::int32_t row) {
  return tokens[static_cast<std::size_t>(row)];
}

// Unified: all tokens. Otherwise each sequence's, in the order of the ubatch.
std::vector<Run> runs_of(const std::vector<Token>& tokens, const Ubatch& ubatch, bool unified) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < ubatch.size(); ++i) {
    const std::int32_t seq = token_of(tokens, ubatch[i]).primary;
    if (runs.empty() || (!unified && runs.back().seq != seq)) runs.push_back({i, i, seq});
    runs.back().end = i + 1;
  }
  return runs;
}

/// What a rehearsed ubatch has changed.
struct Rehearsed {
  std::vector<PlainCell> cells = {};     ///< [token], its slot as it was
  std::vector<std::int64_t> heads = {};  ///< [stream]
};

}  // namespace

PlainHalf::PlainHalf(const KvOptions& options, std::int64_t size, const Window& window)
    : options_(options),
      size_(size),
      window_(window),
      streams_(static_cast<std::size_t>(options.streams())) {
  for (PlainStream& stream : streams_) {
    stream.table.cells.resize(static_cast<std::size_t>(size));
    stream.rows.resize(static_cast<std::size_t>(size));
  }
}

Extremes PlainHalf::extremes(std::int32_t seq) const {
  if (!options_.unified && seq >= options_.n_seq_max) return {};
  return stream_of(seq).table.extremes(seq);
}

std::int64_t PlainHalf::search_begin(const PlainStream& stream, std::int64_t n) const {
  return stream.head > stream.table.used() + 2 * n ? 0 : stream.head;
}

// Behind its window a cell of an idle sequence counts as free, too (LC-60).
std::vector<bool> PlainHalf::usable(const PlainStream& stream) const {
  std::array<std::optional<std::int64_t>, kSequences> next = {};  // position, by sequence
  std::vector<bool> usable;
  for (const PlainCell& cell : stream.table.cells) {
    bool free = cell.empty();
    if (!free && cell.owners.count() == 1 && window_.type != WindowType::kNone) {
      const std::size_t seq = cell.owners._Find_first();
      if (!next[seq]) next[seq] = stream.table.extremes(static_cast<std::int32_t>(seq)).max + 1;
      free = window_.masks(cell.pos, *next[seq]);
    }
    usable.push_back(free);
  }
  return usable;
}

std::optional<Slots> PlainHalf::find(std::int32_t seq, std::int64_t n) const {
  if (n > size_) return std::nullopt;
  const PlainStream& stream = stream_of(seq);
  const std::int64_t begin = search_begin(stream, n);
  const std::vector<bool> free = usable(stream);
  Slots slots;
  for (std::int64_t looked = 0; looked < size_; ++looked) {
    const std::int64_t cell = (begin + looked) % size_;
    if (free[static_cast<std::size_t>(cell)]) slots.push_back(static_cast<std::int32_t>(cell));
    if (static_cast<std::int64_t>(slots.size()) == n) return slots;
  }
  return std::nullopt;
}

std::optional<Slots> PlainHalf::find_adjacent(std::int32_t seq, std::int64_t n) const {
  if (n > size_) return std::nullopt;
  const PlainStream& stream = stream_of(seq);
  const std::vector<bool> free = usable(stream);
  std::int64_t start = search_begin(stream, n);
  Slots slots;
  for (std::int64_t tested = 0; static_cast<std::int64_t>(slots.size()) < n;) {
    if (slots.empty() && start + n > size_) {
      tested += size_ - start;
      start = 0;
    }
    ++tested;
    if (free[static_cast<std::size_t>(start)]) {
      slots.push_back(static_cast<std::int32_t>(start++));
      continue;
    }
    slots.clear();
    ++start;
    if (tested >= size_) return std::nullopt;
  }
  return slots;
}

std::optional<Slots> PlainHalf::search(const std::vector<Token>& tokens,
                                       const Ubatch& ubatch) const {
  Slots all;
  for (const Run& run : runs_of(tokens, ubatch, options_.unified)) {
    const auto slots = find(run.seq, static_cast<std::int64_t>(run.end - run.begin));
    if (!slots) return std::nullopt;
    all.insert(all.end(), slots->begin(), slots->end());
  }
  return all;
}

std::optional<std::vector<Slots>> PlainHalf::rehearse(const std::vector<Token>& tokens,
                                                      const std::vector<Ubatch>& ubatches) {
  const std::vector<PlainStream> before = streams_;
  std::vector<Slots> found;
  std::vector<Rehearsed> done;
  for (const Ubatch& ubatch : ubatches) {
    const auto slots = search(tokens, ubatch);
    if (!slots) break;
    Rehearsed& now = done.emplace_back();
    for (std::size_t i = 0; i < ubatch.size(); ++i)
      now.cells.push_back(stream_of(token_of(tokens, ubatch[i]).primary).table.at((*slots)[i]));
    for (const PlainStream& stream : streams_) now.heads.push_back(stream.head);
    place(tokens, ubatch, *slots);
    found.push_back(*slots);
  }
  for (std::size_t u = done.size(); u-- > 0;) {
    const std::vector<Run> runs = runs_of(tokens, ubatches[u], options_.unified);
    for (std::size_t x = 0; x < runs.size(); ++x) {
      PlainStream& stream = stream_of(runs[x].seq);
      for (std::size_t i = runs[x].begin; i < runs[x].end; ++i)
        stream.table.at(found[u][i]) = done[u].cells[i];
      stream.head = done[u].heads[x];
    }
  }
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (!has(Quirk::kRehearsalPurges)) streams_[s].table = before[s].table;
    if (!has(Quirk::kHeadsOfOtherStreams)) streams_[s].head = before[s].head;
  }
  if (found.size() < ubatches.size()) return std::nullopt;
  return found;
}

void PlainHalf::place(const std::vector<Token>& tokens, const Ubatch& ubatch, const Slots& slots) {
  std::map<std::int32_t, std::int32_t> lost;  // by sequence, its largest position
  for (std::size_t i = 0; i < ubatch.size(); ++i) {
    const Token& token = token_of(tokens, ubatch[i]);
    PlainCell& cell = stream_of(token.primary).table.at(slots[i]);
    if (!cell.empty())
      for (const std::int32_t seq : list_of(cell.owners))
        lost[seq] = std::max(lost.try_emplace(seq, cell.pos).first->second, cell.pos);
    cell = {.used = true, .pos = token.pos};
    for (const std::int32_t seq : token.seqs) cell.owners |= owner(seq);
  }
  for (const auto& [seq, pos] : lost) {
    const std::int64_t min = extremes(seq).min;
    if (min >= 0 && min <= pos)
      remove(seq, {static_cast<std::int32_t>(min), std::min(pos, kMaxPosition - 1) + 1});
  }
  for (const Run& run : runs_of(tokens, ubatch, options_.unified))
    stream_of(run.seq).head = slots[run.end - 1] + 1;
}

void PlainHalf::write_rows(const std::vector<Token>& tokens, const Ubatch& ubatch,
                           const Slots& slots, std::int64_t first_tag) {
  for (std::size_t i = 0; i < ubatch.size(); ++i) {
    const Token& token = token_of(tokens, ubatch[i]);
    const std::int64_t tag = first_tag + ubatch[i];
    stream_of(token.primary).rows[static_cast<std::size_t>(slots[i])] = {tag, token.pos, tag};
  }
}

std::int64_t PlainHalf::n_kv(const std::vector<Token>& tokens, const Ubatch& ubatch) const {
  const std::int64_t unit = std::max<std::int64_t>(options_.n_pad, 256);
  std::int64_t most = 0;
  for (const Run& run : runs_of(tokens, ubatch, options_.unified)) {
    const std::int64_t end = stream_of(run.seq).table.used_end();
    most = std::max(most, std::min(size_, std::max(unit, (end + unit - 1) / unit * unit)));
  }
  return most;
}

void PlainHalf::mask(const std::vector<Token>& tokens, const Ubatch& ubatch, bool causal,
                     std::span<float> out) const {
  if (options_.non_causal == NonCausal::kSwaOnly && window_.type == WindowType::kNone)
    causal = true;
  const bool own_are_seen = !causal && options_.non_causal == NonCausal::kSwaFull;
  std::map<std::int32_t, std::int32_t> first;  // by primary, its smallest position in the ubatch
  for (const std::int32_t row : ubatch) {
    const auto& [pos, seqs, primary] = token_of(tokens, row);
    first[primary] = std::min(first.try_emplace(primary, pos).first->second, pos);
  }
  const std::size_t n = out.size() / ubatch.size();
  std::ranges::fill(out, -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < ubatch.size(); ++i) {
    const Token& token = token_of(tokens, ubatch[i]);
    const PlainCells& table = stream_of(token.primary).table;
    for (std::size_t j = 0; j < n; ++j) {
      const PlainCell& cell = table.cells[j];
      if (cell.empty() || !cell.has(token.primary)) continue;
      if (causal && cell.pos > token.pos) continue;
      const bool exempt = own_are_seen && cell.pos >= first[token.primary];
      if (!exempt && window_.masks(cell.pos, token.pos)) continue;
      // LC-52: in integers, so that a distance of 0 is no -0.
      const std::int64_t bias = std::abs(std::int64_t{cell.pos} - token.pos);
      out[i * n + j] = options_.alibi ? static_cast<float>(-bias) : 0.0F;
    }
  }
}

// ---- sequences and saved states ----

namespace {

constexpr Range kAll{0, kMaxPosition};

// Heads go down to a cell that became empty (LC-40).
void lower_head(PlainStream& stream, std::int64_t emptied) {
  stream.head = std::min(stream.head, emptied);
}

}  // namespace

std::vector<std::int64_t> PlainHalf::cells_of(std::int32_t seq, const Range& range) const {
  const PlainCells& table = stream_of(seq).table;
  std::vector<std::int64_t> cells;
  for (std::int64_t i = 0; i < table.size(); ++i)
    if (table.at(i).has(seq) && range.has(table.at(i).pos)) cells.push_back(i);
  return cells;
}

void PlainHalf::remove(std::int32_t seq, const Range& range) {
  if (seq >= 0) {
    PlainStream& stream = stream_of(seq);
    for (std::int64_t i = 0; i < size_; ++i) {
      const PlainCell& cell = stream.table.at(i);
      if (cell.has(seq) && range.has(cell.pos) && stream.table.remove_owner(i, seq))
        lower_head(stream, i);
    }
    return;
  }
  for (PlainStream& stream : streams_)
    for (std::int64_t i = 0; i < size_; ++i)
      if (range.has(stream.table.at(i).pos)) {
        stream.table.remove(i);
        lower_head(stream, i);
      }
}

bool PlainHalf::shares(std::int32_t src, std::int32_t dst, const Range& range) const {
  return std::ranges::any_of(cells_of(src, range),
                             [&](std::int64_t i) { return stream_of(src).table.at(i).has(dst); });
}

void PlainHalf::share(std::int32_t src, std::int32_t dst, const Range& range) {
  for (PlainCell& cell : stream_of(src).table.cells)
    if (cell.has(src) && range.has(cell.pos)) cell.owners |= owner(dst);
}

bool PlainHalf::shifted_from_below(std::int32_t seq) const {
  return std::ranges::any_of(stream_of(seq).table.cells, [&](const PlainCell& cell) {
    return cell.has(seq) && std::int64_t{cell.pos} - cell.shift < 0;
  });
}

void PlainHalf::copy(std::int32_t src, std::int32_t dst) {
  const PlainStream& from = stream_of(src);
  PlainStream& to = stream_of(dst);
  copies_.emplace_back(stream_number(src), stream_number(dst));
  to.table.reset();
  to.head = from.head;
  for (std::int64_t i = 0; i < size_; ++i) {
    const PlainCell& cell = from.table.at(i);
    if (!cell.has(src)) continue;
    to.table.at(i) = {.used = true, .pos = cell.pos, .shift = cell.shift, .owners = owner(dst)};
    if (cell.shift != 0) to.table.has_shift = true;
  }
  if (has(Quirk::kCopyIsLate)) return;
  to.rows = from.rows;
  copies_.clear();
}

void PlainHalf::keep(std::int32_t seq) {
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (has(Quirk::kKeepsOtherStreams) && s != stream_number(seq)) continue;
    for (std::int64_t i = 0; i < size_; ++i)
      if (streams_[s].table.keep_owner(i, seq)) lower_head(streams_[s], i);
  }
}

bool PlainHalf::has_shared(std::int32_t seq, const Range& range) const {
  return std::ranges::any_of(cells_of(seq, range), [&](std::int64_t i) {
    return stream_of(seq).table.at(i).owners.count() > 1;
  });
}

bool PlainHalf::can_move(std::int32_t seq, const Range& range, std::int32_t delta) const {
  return std::ranges::all_of(cells_of(seq, range), [&](std::int64_t i) {
    const PlainCell& cell = stream_of(seq).table.at(i);
    return is_int32(std::int64_t{cell.pos} + delta) && is_int32(std::int64_t{cell.shift} + delta);
  });
}

bool PlainHalf::can_divide(std::int32_t seq, const Range& range, std::int32_t d) const {
  return std::ranges::all_of(cells_of(seq, range), [&](std::int64_t i) {
    if (d < 1) return false;
    const PlainCell& cell = stream_of(seq).table.at(i);
    const std::int64_t fall = cell.pos - cell.pos / d;
    return is_int32(cell.shift + fall) && is_int32(cell.shift - fall);
  });
}

void PlainHalf::move(std::int32_t seq, const Range& range, std::int32_t delta) {
  PlainStream& stream = stream_of(seq);
  std::int64_t lowest = 0;
  bool emptied = false;
  for (std::int64_t i = 0; i < size_; ++i) {
    const PlainCell& cell = stream.table.at(i);
    if (!cell.has(seq) || !range.has(cell.pos)) continue;
    if (!stream.table.move(i, delta, false) || emptied) continue;
    emptied = true;
    lowest = i;
  }
  stream.head = lowest;
}

void PlainHalf::divide(std::int32_t seq, const Range& range, std::int32_t d) {
  PlainCells& table = stream_of(seq).table;
  for (std::int64_t i = 0; i < size_; ++i)
    if (table.at(i).has(seq) && range.has(table.at(i).pos))
      table.divide(i, d, has(Quirk::kDivisionTurnsBack));
}

bool PlainHalf::update() {
  bool pending = !copies_.empty();
  for (const auto& [from, to] : copies_) streams_[to].rows = streams_[from].rows;
  copies_.clear();
  for (PlainStream& stream : streams_) {
    pending |= stream.table.has_shift;
    for (std::size_t i = 0; i < stream.rows.size(); ++i) {
      const PlainCell& cell = stream.table.cells[i];
      if (!cell.empty()) stream.rows[i].rot += cell.shift;
    }
    stream.table.reset_shift();
  }
  return pending;
}

void PlainHalf::clear(bool data) {
  for (PlainStream& stream : streams_) {
    stream.table.reset();
    stream.head = 0;
    if (data) std::ranges::fill(stream.rows, PlainRow());
  }
}

std::vector<SavedStream> PlainHalf::save(std::int32_t seq) const {
  std::vector<SavedStream> saved;
  for (const PlainStream& stream : streams_) {
    SavedStream& to = saved.emplace_back();
    const std::int64_t max = seq < 0 ? -1 : stream.table.extremes(seq).max;
    for (std::size_t i = 0; i < stream.rows.size(); ++i) {
      const PlainCell& cell = stream.table.cells[i];
      if (!cell.used || (seq >= 0 && (!cell.has(seq) || window_.masks(cell.pos, max)))) continue;
      const auto& [k, rot, v] = stream.rows[i];
      SavedCell& one = to.emplace_back(SavedCell{.pos = cell.pos, .k = k, .rot = rot, .v = v});
      for (const std::int32_t s : list_of(seq < 0 ? cell.owners : owner(seq)))
        if (s < options_.n_seq_max) one.seqs.push_back(s);
    }
  }
  return saved;
}

std::optional<std::vector<LoadedRow>> PlainHalf::load(const std::vector<SavedStream>& saved,
                                                      std::int32_t seq) {
  return seq < 0 ? load_whole(saved) : load_sequence(saved, seq);
}

std::optional<std::vector<LoadedRow>> PlainHalf::load_sequence(
    const std::vector<SavedStream>& saved, std::int32_t seq) {
  const bool no_cells = std::ranges::all_of(saved, &SavedStream::empty);
  if (no_cells && !has(Quirk::kEmptyStateChangesNothing)) remove(seq, kAll);
  std::vector<LoadedRow> rows;
  for (const SavedStream& cells : saved) {
    if (cells.empty()) continue;
    remove(seq, kAll);
    const auto slots = find(seq, static_cast<std::int64_t>(cells.size()));
    const auto of_one = [](const SavedCell& cell) { return cell.seqs.size() == 1; };
    if (!slots || !std::ranges::all_of(cells, of_one)) {
      remove(seq, kAll);
      return std::nullopt;
    }
    std::vector<Token> tokens;
    Ubatch ubatch;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      tokens.push_back({cells[i].pos, {seq}, seq});
      ubatch.push_back(static_cast<std::int32_t>(i));
      rows.push_back({stream_number(seq), (*slots)[i], {cells[i].k, cells[i].rot, cells[i].v}});
    }
    place(tokens, ubatch, *slots);
  }
  return rows;
}

std::optional<std::vector<LoadedRow>> PlainHalf::load_whole(const std::vector<SavedStream>& saved) {
  clear(true);
  std::vector<LoadedRow> rows;
  for (std::size_t s = 0; s < saved.size(); ++s) {
    if (static_cast<std::int64_t>(saved[s].size()) > size_) {
      clear(true);
      return std::nullopt;
    }
    for (std::size_t i = 0; i < saved[s].size(); ++i) {
      const SavedCell& cell = saved[s][i];
      PlainCell& to = streams_[s].table.cells[i];
      to = {.used = true, .pos = cell.pos};
      for (const std::int64_t seq : cell.seqs) to.owners |= owner(static_cast<std::int32_t>(seq));
      rows.push_back({s, static_cast<std::int64_t>(i), {cell.k, cell.rot, cell.v}});
    }
  }
  return rows;
}

void PlainHalf::write_loaded(const std::vector<LoadedRow>& rows) {
  for (const LoadedRow& loaded : rows)
    streams_[loaded.stream].rows[static_cast<std::size_t>(loaded.cell)] = loaded.row;
}

std::vector<ShownTable> PlainHalf::tables() const {
  std::vector<ShownTable> tables;
  for (const PlainStream& stream : streams_) tables.push_back(stream.table.shown());
  return tables;
}

std::vector<StreamRows> PlainHalf::rows() const {
  std::vector<StreamRows> all;
  for (const PlainStream& stream : streams_) {
    StreamRows& to = all.emplace_back();
    for (const auto& [k, rot, v] : stream.rows) {
      to.k.push_back(k);
      to.rot.push_back(rot);
      to.v.push_back(v);
    }
  }
  return all;
}

}  // namespace kvo::cells
