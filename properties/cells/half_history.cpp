#include "properties/cells/half_history.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace kvo::cells
