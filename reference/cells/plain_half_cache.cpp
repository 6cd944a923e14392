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

}  // namespace kvo::cells
