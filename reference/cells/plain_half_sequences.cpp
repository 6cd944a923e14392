// What calls on sequences and saved states do to a half.
#include <algorithm>

#include "reference/cells/plain_half_cache.hpp"

namespace kvo::cells {
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
