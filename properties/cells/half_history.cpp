#include "properties/cells/half_history.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvo::cells {

using Words = HalfHistory::Words;

void KnownCell::empty() {
  used = false;
  pos = -1;
  shift = 0;
  owners.clear();
}

HalfHistory::HalfHistory(const KvOptions& options, std::int64_t size, const Window& window)
    : options_(options), size_(size), window_(window) {
  streams_.resize(static_cast<std::size_t>(options.streams()));
  for (Stream& stream : streams_) stream.cells.resize(static_cast<std::size_t>(size));
}

// ---- Streams ----

void HalfHistory::forget(Stream& stream) {
  stream.known = false;
  stream.loaded.reset();
  for (KnownCell& cell : stream.cells) cell.row.reset();
}

void HalfHistory::forget(std::int32_t seq) {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (seq < 0 || i == number_of(seq)) forget(streams_[i]);
}

HalfHistory::Stream* HalfHistory::settled(std::size_t number) {
  if (number >= streams_.size()) return nullptr;
  Stream& stream = streams_[number];
  if (!is_settled(stream)) forget(stream);
  return stream.known ? &stream : nullptr;
}

Extremes HalfHistory::extremes(const Stream& stream, std::int32_t seq) {
  Extremes extremes;
  for (const KnownCell& cell : stream.cells) {
    if (!cell.has(seq)) continue;
    extremes.min = extremes.min < 0 ? cell.pos : std::min(extremes.min, cell.pos);
    extremes.max = std::max(extremes.max, cell.pos);
  }
  return extremes;
}

std::optional<Extremes> HalfHistory::extremes(std::int32_t seq) const {
  const std::size_t number = number_of(seq);
  if (number >= streams_.size()) return Extremes();
  if (!is_settled(streams_[number])) return std::nullopt;
  return extremes(streams_[number], seq);
}

// LC-53
bool HalfHistory::masks(std::int64_t p0, std::int64_t p1) const {
  switch (window_.type) {
    case WindowType::kNone:
      return false;
    case WindowType::kStandard:
      return p1 - p0 >= window_.size;
    case WindowType::kChunked:
      return p0 < p1 / window_.size * window_.size;
    case WindowType::kSymmetric:
      return std::abs(p1 - p0) > window_.size / 2;
  }
  return false;
}

// ---- Sequences ----

void HalfHistory::each_cell(std::int32_t seq, const Range& range,
                            const std::function<void(Stream&, KnownCell&)>& change) {
  Stream* stream = settled(number_of(seq));
  if (stream == nullptr) return;
  for (KnownCell& cell : stream->cells)
    if (cell.has(seq) && range.has(cell.pos)) change(*stream, cell);
}

void HalfHistory::remove(Stream& stream, std::int32_t seq, std::int64_t begin, std::int64_t end) {
  for (KnownCell& cell : stream.cells) {
    if (!cell.has(seq) || cell.pos < begin || cell.pos >= end) continue;
    cell.owners.erase(seq);
    if (cell.owners.empty()) cell.empty();
  }
}

void HalfHistory::remove(std::int32_t seq, const Range& range) {
  if (seq >= 0) {
    if (Stream* stream = settled(number_of(seq))) remove(*stream, seq, range.begin, range.end);
    return;
  }
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (Stream* stream = settled(i))
      for (KnownCell& cell : stream->cells)
        if (cell.used && range.has(cell.pos)) cell.empty();
}

void HalfHistory::share(std::int32_t src, std::int32_t dst, const Range& range) {
  each_cell(src, range, [&](Stream&, KnownCell& cell) { cell.owners.insert(dst); });
}

void HalfHistory::copy(std::int32_t src, std::int32_t dst) {
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

void HalfHistory::keep(std::int32_t seq) {
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
void HalfHistory::move(std::int32_t seq, const Range& range, std::int64_t delta) {
  each_cell(seq, range, [&](Stream& stream, KnownCell& cell) {
    stream.has_shift = true;
    cell.pos += delta;
    cell.shift += delta;
    if (cell.pos < 0) cell.empty();
  });
}

void HalfHistory::divide(std::int32_t seq, const Range& range, std::int64_t d) {
  const bool back = options_.quirks.has(Quirk::kDivisionTurnsBack);
  each_cell(seq, range, [&](Stream& stream, KnownCell& cell) {
    stream.has_shift = true;
    const std::int64_t moved = cell.pos / d - cell.pos;
    cell.pos += moved;
    cell.shift += back ? -moved : moved;
  });
}

std::optional<bool> HalfHistory::update() {
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
      if (cell.used && cell.row) cell.row->rot += cell.shift;
      cell.shift = 0;
    }
    stream.has_shift = false;
  }
  return all_known ? std::optional(pending) : std::nullopt;
}

void HalfHistory::clear(bool data) {
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

// ---- Saved states ----

// LC-71, LC-72
std::vector<KnownSaved> HalfHistory::save(std::int32_t seq) const {
  std::vector<KnownSaved> saved;
  for (const Stream& stream : streams_) {
    KnownSaved& to = saved.emplace_back();
    if (!is_settled(stream)) continue;
    to.emplace();
    const std::int64_t max = seq < 0 ? -1 : extremes(stream, seq).max;
    for (const KnownCell& cell : stream.cells) {
      if (!cell.used || (seq >= 0 && (!cell.has(seq) || masks(cell.pos, max)))) continue;
      KnownCell& one = to->emplace_back(cell);
      one.shift = 0;
      if (seq >= 0) one.owners = {seq};
      std::erase_if(one.owners, [&](std::int32_t owner) { return owner >= options_.n_seq_max; });
    }
  }
  return saved;
}

// LC-73, LC-75
void HalfHistory::load(const std::vector<KnownSaved>& saved, std::int32_t seq) {
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

// ---- batches, masks and figures ----

namespace {

using Words = HalfHistory::Words;

std::string cell_text(std::int64_t cell) {
  return "cell " + std::to_string(cell);
}

const KnownToken& token_of(const std::vector<KnownToken>& tokens, std::int32_t row) {
  return tokens[static_cast<std::size_t>(row)];
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

}  // namespace

// ---- Batches ----

// LC-35, LC-60
bool HalfHistory::is_usable(const Stream& stream, const KnownCell& cell,
                            std::map<std::int32_t, std::int64_t>& next) const {
  if (!cell.used) return true;
  if (!has_window() || cell.owners.size() != 1) return false;
  const std::int32_t seq = *cell.owners.begin();
  const auto [found, is_new] = next.try_emplace(seq, 0);
  if (is_new) found->second = extremes(stream, seq).max + 1;
  return masks(cell.pos, found->second);
}

std::optional<std::int64_t> HalfHistory::usable(std::int32_t seq) const {
  const std::size_t number = number_of(seq);
  if (number >= streams_.size() || !is_settled(streams_[number])) return std::nullopt;
  std::map<std::int32_t, std::int64_t> next;
  return std::ranges::count_if(streams_[number].cells, [&](const KnownCell& cell) {
    return is_usable(streams_[number], cell, next);
  });
}

Words HalfHistory::wrong_slots(const std::vector<KnownToken>& tokens,
                               const std::vector<std::int32_t>& rows,
                               const std::vector<std::int32_t>& slots) const {
  if (slots.size() != rows.size()) return "there is not one slot for each token";
  std::set<std::pair<std::size_t, std::int32_t>> taken;
  std::map<std::int32_t, std::int64_t> next;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t number = number_of(token_of(tokens, rows[i]).primary);
    if (slots[i] < 0 || slots[i] >= size_) return cell_text(slots[i]) + " is a slot, and is not";
    if (!taken.insert({number, slots[i]}).second) return cell_text(slots[i]) + " is a slot twice";
    const Stream& stream = streams_[number];
    if (!is_settled(stream)) continue;
    if (!is_usable(stream, stream.cells[static_cast<std::size_t>(slots[i])], next))
      return cell_text(slots[i]) + " is a slot, and its token is still seen";
  }
  return std::nullopt;
}

// LC-36, LC-61
void HalfHistory::place(const std::vector<KnownToken>& tokens,
                        const std::vector<std::int32_t>& rows,
                        const std::vector<std::int32_t>& slots) {
  std::map<std::int32_t, std::int64_t> lost;  // by sequence, its largest position
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const KnownToken& token = token_of(tokens, rows[i]);
    Stream* stream = settled(number_of(token.primary));
    if (stream == nullptr) continue;
    KnownCell& cell = stream->cells[static_cast<std::size_t>(slots[i])];
    for (const std::int32_t seq : cell.owners)
      lost[seq] = std::max(lost.try_emplace(seq, cell.pos).first->second, cell.pos);
    cell = {.used = true, .pos = token.pos, .owners = token.seqs, .row = cell.row};
  }
  for (const auto& [seq, pos] : lost) {
    Stream& stream = streams_[number_of(seq)];
    const std::int64_t min = extremes(stream, seq).min;
    if (min >= 0 && min <= pos) remove(stream, seq, min, pos + 1);
  }
}

void HalfHistory::write(const std::vector<KnownToken>& tokens,
                        const std::vector<std::int32_t>& rows,
                        const std::vector<std::int32_t>& slots, std::int64_t first_tag) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const KnownToken& token = token_of(tokens, rows[i]);
    const std::int64_t tag = first_tag + rows[i];
    if (Stream* stream = settled(number_of(token.primary)))
      stream->cells[static_cast<std::size_t>(slots[i])].row = {tag, token.pos, tag};
  }
}

Words HalfHistory::wrong_mask(const std::vector<KnownToken>& tokens,
                              const std::vector<std::int32_t>& rows, bool causal, std::int64_t n_kv,
                              const std::optional<Tensor>& mask,
                              const std::optional<ShownUbatch::Visible>& visible) const {
  if (options_.non_causal == NonCausal::kSwaOnly && !has_window()) causal = true;
  const bool own_are_seen = !causal && options_.non_causal == NonCausal::kSwaFull;
  std::map<std::int32_t, std::int64_t> first;
  for (const std::int32_t row : rows) {
    const KnownToken& token = token_of(tokens, row);
    first[token.primary] =
        std::min(first.try_emplace(token.primary, token.pos).first->second, token.pos);
  }
  if (mask && mask->dtype != DType::kF32) return "the mask is not of floats";
  const auto entries = mask ? mask->floats() : std::span<const float>();
  if (mask && std::ssize(entries) != std::ssize(rows) * n_kv) return "the mask has another shape";
  if (visible && visible->size() != rows.size()) return "not every token has a list of cells";
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const KnownToken& token = token_of(tokens, rows[i]);
    const Stream& stream = streams_[number_of(token.primary)];
    if (!is_settled(stream)) continue;
    std::vector<std::int32_t> seen;
    for (std::int64_t j = 0; j < size_; ++j) {
      const KnownCell& cell = stream.cells[static_cast<std::size_t>(j)];
      const bool exempt = own_are_seen && cell.pos >= first[token.primary];
      const bool is_seen = cell.has(token.primary) && (!causal || cell.pos <= token.pos) &&
                           (exempt || !masks(cell.pos, token.pos));
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

Words HalfHistory::wrong_figures(const std::vector<ShownTable>& shown) {
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

void HalfHistory::adopt(Stream& stream, const std::map<std::int64_t, ShownCell>& shown) {
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

Words HalfHistory::compare_known(Stream& stream, const std::map<std::int64_t, ShownCell>& shown) {
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
Words HalfHistory::compare_loaded(Stream& stream, const std::map<std::int64_t, ShownCell>& shown) {
  auto& [seq, cells] = *stream.loaded;
  std::multimap<std::int64_t, std::int64_t> placed;  // [position], cells
  for (std::int64_t i = 0; i < size_; ++i) {
    const KnownCell& known = stream.cells[static_cast<std::size_t>(i)];
    const auto cell = shown.find(i);
    if (known.used && cell != shown.end() && is_same(cell->second, known)) continue;
    if (known.used && !has_window()) return "a load has changed " + cell_text(i);
    if (cell == shown.end()) continue;
    if (cell->second.seqs != std::vector{seq} || cell->second.shift != 0) {
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

Words HalfHistory::compare(const std::vector<ShownTable>& shown) {
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

Words HalfHistory::compare(const std::vector<StreamRows>& shown) {
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

bool HalfHistory::is_used(std::int32_t seq, std::int32_t cell) const {
  const Stream& stream = streams_[number_of(seq)];
  const auto at = static_cast<std::size_t>(cell);
  return stream.known && at < stream.cells.size() && stream.cells[at].used;
}

std::string HalfHistory::held_text(std::int32_t seq, std::int32_t cell) const {
  std::string text = "cell " + std::to_string(cell);
  if (!is_used(seq, cell)) return text;
  const KnownCell& held = streams_[number_of(seq)].cells[static_cast<std::size_t>(cell)];
  text += " (position " + std::to_string(held.pos) + " of sequence";
  if (held.owners.size() > 1) text += "s";
  for (const std::int32_t owner : held.owners)
    text += (owner == *held.owners.begin() ? " " : ", ") + std::to_string(owner);
  return text + (has_window() ? "; window " + std::to_string(window_.size) : "") + ")";
}

}  // namespace kvo::cells
