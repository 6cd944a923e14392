// The reference of `cells.kv` and `cells.iswa`: one half or two, which are searched cell by cell.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "reference/cells/batch_tokens.hpp"
#include "reference/cells/plain_caches.hpp"
#include "reference/cells/plain_cells.hpp"
#include "reference/contract/values/mark.hpp"

namespace kvo::cells {
namespace {

/// The tags of a row, and the position that its key is turned to.
struct PlainRow {
  std::int64_t k = 0;
  std::int64_t rot = 0;
  std::int64_t v = 0;
};

struct PlainStream {
  PlainCells table = {};
  std::int64_t head = 0;
  std::vector<PlainRow> rows = {};  ///< [cell]
};

/// A cell for each token of an ubatch, in the stream of its sequence.
using Slots = std::vector<std::int32_t>;

/// A row that a loaded cell is to get.
struct LoadedRow {
  std::size_t stream = 0;
  std::int64_t cell = 0;
  PlainRow row = {};
};

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

constexpr Range kAll{0, kMaxPosition};

// Heads go down to a cell that became empty (LC-40).
void lower_head(PlainStream& stream, std::int64_t emptied) {
  stream.head = std::min(stream.head, emptied);
}

/// Sequences and cells that calls name must exist.
class PlainHalf {
 public:
  PlainHalf(const KvOptions& options, std::int64_t size, const Window& window)
      : options_(options),
        size_(size),
        window_(window),
        streams_(static_cast<std::size_t>(options.streams())) {
    for (PlainStream& stream : streams_) {
      stream.table.cells.resize(static_cast<std::size_t>(size));
      stream.rows.resize(static_cast<std::size_t>(size));
    }
  }

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] Extremes extremes(std::int32_t seq) const {
    if (!options_.unified && seq >= options_.n_seq_max) return {};
    return stream_of(seq).table.extremes(seq);
  }

  /// The first n usable cells of a sequence's stream, in the order of the search (LC-35).
  [[nodiscard]] std::optional<Slots> find(std::int32_t seq, std::int64_t n) const {
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
  /// The first n usable cells that are adjacent (LC-39).
  [[nodiscard]] std::optional<Slots> find_adjacent(std::int32_t seq, std::int64_t n) const {
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
  /// The slots of all ubatches, each placed after the earlier ones; all is undone (LC-37).
  std::optional<std::vector<Slots>> rehearse(const std::vector<Token>& tokens,
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
      if (!has(Quirk::kRehearsalPurges))
        streams_[s].table = before[s].table;
      else if (found.size() < ubatches.size() && streams_[s].table.used() < before[s].table.used())
        KVO_MARK_IN(Profile::kOriginal, "cells.kv cells.iswa", "purged by a refused batch");
      if (!has(Quirk::kHeadsOfOtherStreams)) streams_[s].head = before[s].head;
    }
    if (found.size() < ubatches.size()) return std::nullopt;
    return found;
  }
  /// LC-36, LC-61.
  void place(const std::vector<Token>& tokens, const Ubatch& ubatch, const Slots& slots) {
    std::map<std::int32_t, std::int32_t> lost;  // by sequence, its largest position
    for (std::size_t i = 0; i < ubatch.size(); ++i) {
      const Token& token = token_of(tokens, ubatch[i]);
      PlainCell& cell = stream_of(token.primary).table.at(slots[i]);
      if (!cell.empty()) {
        KVO_MARK("cells.kv cells.iswa", "used cell taken");
        for (const std::int32_t seq : list_of(cell.owners))
          lost[seq] = std::max(lost.try_emplace(seq, cell.pos).first->second, cell.pos);
      }
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
  /// LC-46: the token of batch row r has tag first_tag + r.
  void write_rows(const std::vector<Token>& tokens, const Ubatch& ubatch, const Slots& slots,
                  std::int64_t first_tag) {
    for (std::size_t i = 0; i < ubatch.size(); ++i) {
      const Token& token = token_of(tokens, ubatch[i]);
      const std::int64_t tag = first_tag + ubatch[i];
      stream_of(token.primary).rows[static_cast<std::size_t>(slots[i])] = {tag, token.pos, tag};
    }
  }
  /// LC-56.
  [[nodiscard]] std::int64_t n_kv(const std::vector<Token>& tokens, const Ubatch& ubatch) const {
    const std::int64_t unit = std::max<std::int64_t>(options_.n_pad, 256);
    std::int64_t most = 0;
    for (const Run& run : runs_of(tokens, ubatch, options_.unified)) {
      const std::int64_t end = stream_of(run.seq).table.used_end();
      most = std::max(most, std::min(size_, std::max(unit, (end + unit - 1) / unit * unit)));
    }
    return most;
  }
  /// [token of the ubatch][n_kv] (LC-50 to LC-58).
  void mask(const std::vector<Token>& tokens, const Ubatch& ubatch, bool causal,
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

  /// LC-40; seq -1: any.
  void remove(std::int32_t seq, const Range& range) {
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
          KVO_MARK("cells.kv cells.iswa", "removed from any");
          stream.table.remove(i);
          lower_head(stream, i);
        }
  }
  /// Whether all cells of seq in range are so.
  template <class IsSo>
  [[nodiscard]] bool all(std::int32_t seq, const Range& range, IsSo&& is_so) const {
    return std::ranges::all_of(stream_of(seq).table.cells, [&](const PlainCell& cell) {
      return !cell.has(seq) || !range.has(cell.pos) || is_so(cell);
    });
  }
  /// LC-41.
  void share(std::int32_t src, std::int32_t dst, const Range& range) {
    for (PlainCell& cell : stream_of(src).table.cells) {
      if (!cell.has(src) || !range.has(cell.pos)) continue;
      KVO_MARK("cells.kv cells.iswa", "cells shared");
      if (dst >= options_.n_seq_max)
        KVO_MARK_IN(Profile::kOriginal, "cells.kv cells.iswa", "copied beyond most");
      cell.owners |= owner(dst);
    }
  }
  /// Whether a cell would have been below 0 before its pending shift (LC-66).
  [[nodiscard]] bool shifted_from_below(std::int32_t seq) const {
    return std::ranges::any_of(stream_of(seq).table.cells, [&](const PlainCell& cell) {
      return cell.has(seq) && std::int64_t{cell.pos} - cell.shift < 0;
    });
  }
  /// LC-66.
  void copy(std::int32_t src, std::int32_t dst) {
    const PlainStream& from = stream_of(src);
    PlainStream& to = stream_of(dst);
    copies_.emplace_back(stream_number(src), stream_number(dst));
    to.table.reset();
    to.head = from.head;
    for (std::int64_t i = 0; i < size_; ++i) {
      const PlainCell& cell = from.table.at(i);
      if (!cell.has(src)) continue;
      KVO_MARK("cells.kv cells.iswa", "stream copied");
      to.table.at(i) = {.used = true, .pos = cell.pos, .shift = cell.shift, .owners = owner(dst)};
      if (cell.shift != 0) to.table.has_shift = true;
    }
    if (has(Quirk::kCopyIsLate)) return;
    to.rows = from.rows;
    copies_.clear();
  }
  /// LC-42.
  void keep(std::int32_t seq) {
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      if (has(Quirk::kKeepsOtherStreams) && s != stream_number(seq)) continue;
      for (std::int64_t i = 0; i < size_; ++i)
        if (streams_[s].table.keep_owner(i, seq)) {
          KVO_MARK("cells.kv cells.iswa", "one kept");
          lower_head(streams_[s], i);
        }
    }
  }
  /// LC-43.
  void move(std::int32_t seq, const Range& range, std::int32_t delta) {
    PlainStream& stream = stream_of(seq);
    std::optional<std::int64_t> lowest;
    each(seq, range, [&](std::int64_t i) {
      if (!stream.table.move(i, delta, false)) return;
      KVO_MARK("cells.kv cells.iswa", "moved below zero");
      if (!lowest) lowest = i;
    });
    stream.head = lowest.value_or(0);
  }
  /// LC-44.
  void divide(std::int32_t seq, const Range& range, std::int32_t d) {
    const bool turn_back = has(Quirk::kDivisionTurnsBack);
    each(seq, range, [&](std::int64_t i) { stream_of(seq).table.divide(i, d, turn_back); });
  }
  /// LC-45; whether anything was pending.
  bool update() {
    bool pending = !copies_.empty();
    for (const auto& [from, to] : copies_) streams_[to].rows = streams_[from].rows;
    copies_.clear();
    for (PlainStream& stream : streams_) {
      pending |= stream.table.has_shift;
      for (std::size_t i = 0; i < stream.rows.size(); ++i) {
        const PlainCell& cell = stream.table.cells[i];
        if (!cell.empty() && stream.rows[i].k != 0) stream.rows[i].rot += cell.shift;
      }
      stream.table.reset_shift();
    }
    return pending;
  }
  /// LC-47.
  void clear(bool data) {
    for (PlainStream& stream : streams_) {
      if (!data && stream.table.used() > 0) KVO_MARK("cells.kv cells.iswa", "rows kept by clear");
      stream.table.reset();
      stream.head = 0;
      if (data) std::ranges::fill(stream.rows, PlainRow());
    }
  }

  /// LC-70 to LC-72; seq -1: all.
  [[nodiscard]] std::vector<SavedStream> save(std::int32_t seq) const {
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
  /// Places saved cells for a sequence, or for all (LC-73 to LC-75). The rows are still to be
  /// written. Nothing: it failed. @{
  std::optional<std::vector<LoadedRow>> load_sequence(const std::vector<SavedStream>& saved,
                                                      std::int32_t seq) {
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
  std::optional<std::vector<LoadedRow>> load_whole(const std::vector<SavedStream>& saved) {
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
  /// @}
  void write_loaded(const std::vector<LoadedRow>& rows) {
    for (const LoadedRow& loaded : rows)
      streams_[loaded.stream].rows[static_cast<std::size_t>(loaded.cell)] = loaded.row;
  }

  [[nodiscard]] std::vector<ShownTable> tables() const {
    std::vector<ShownTable> tables;
    for (const PlainStream& stream : streams_) tables.push_back(stream.table.shown());
    return tables;
  }
  [[nodiscard]] std::vector<StreamRows> rows() const {
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

 private:
  [[nodiscard]] bool has(Quirk quirk) const { return options_.quirks.has(quirk); }
  [[nodiscard]] std::size_t stream_number(std::int32_t seq) const {
    return options_.unified ? 0 : static_cast<std::size_t>(seq);
  }
  [[nodiscard]] PlainStream& stream_of(std::int32_t seq) { return streams_[stream_number(seq)]; }
  [[nodiscard]] const PlainStream& stream_of(std::int32_t seq) const {
    return streams_[stream_number(seq)];
  }
  /// Calls change(i) for each cell i of seq in range, ascending. It allocates nothing, so that no
  /// half changes alone.
  template <class Change>
  void each(std::int32_t seq, const Range& range, Change&& change) {
    const PlainCells& table = stream_of(seq).table;
    for (std::int64_t i = 0; i < size_; ++i)
      if (table.at(i).has(seq) && range.has(table.at(i).pos)) change(i);
  }
  /// Where a search for n cells begins (LC-35).
  [[nodiscard]] std::int64_t search_begin(const PlainStream& stream, std::int64_t n) const {
    return stream.head > stream.table.used() + 2 * n ? 0 : stream.head;
  }
  /// By cell: whether a search may take it. After its window a cell of an idle sequence counts as
  /// free, too (LC-60).
  [[nodiscard]] std::vector<bool> usable(const PlainStream& stream) const {
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
  [[nodiscard]] std::optional<Slots> search(const std::vector<Token>& tokens,
                                            const Ubatch& ubatch) const {
    Slots all;
    for (const Run& run : runs_of(tokens, ubatch, options_.unified)) {
      const auto slots = find(run.seq, static_cast<std::int64_t>(run.end - run.begin));
      if (!slots) return std::nullopt;
      all.insert(all.end(), slots->begin(), slots->end());
    }
    return all;
  }

  KvOptions options_;
  std::int64_t size_;
  Window window_;
  std::vector<PlainStream> streams_;
  std::vector<std::pair<std::size_t, std::size_t>> copies_;  ///< pending: streams, from and to
};

const PlainHalf& half_of(const std::vector<PlainHalf>& halves, Half half) {
  return half == Half::kBase ? halves.front() : halves.back();
}

class PlainUbatch final : public PlacedUbatch {
 public:
  PlainUbatch(const std::vector<PlainHalf>& halves, const std::vector<Token>& tokens,
              const Ubatch& ubatch, std::vector<const Slots*> slots, bool causal)
      : halves_(halves),
        tokens_(tokens),
        ubatch_(ubatch),
        slots_(std::move(slots)),
        causal_(causal) {}

  [[nodiscard]] std::span<const std::int32_t> rows() const override { return ubatch_; }
  [[nodiscard]] std::span<const std::int32_t> slots(Half half) const override {
    return half == Half::kBase ? *slots_.front() : *slots_.back();
  }
  [[nodiscard]] std::int64_t n_kv(Half half) const override {
    return half_of(halves_, half).n_kv(tokens_, ubatch_);
  }
  void mask(Half half, std::span<float> out) const override {
    half_of(halves_, half).mask(tokens_, ubatch_, causal_, out);
  }

 private:
  const std::vector<PlainHalf>& halves_;
  const std::vector<Token>& tokens_;
  const Ubatch& ubatch_;
  std::vector<const Slots*> slots_;
  bool causal_;
};

/// One half or two, that are changed one after the other.
class PlainKv final : public KvCache {
 public:
  explicit PlainKv(const KvOptions& options) : KvCache(options) {
    halves_.emplace_back(options, options.size, is_pair() ? Window() : options.window);
    if (is_pair()) halves_.emplace_back(options, *options.size_window, options.window);
  }

  void clear(bool data) override {
    for (PlainHalf& half : halves_) half.clear(data);
  }
  bool update() override {
    bool updated = false;
    for (PlainHalf& half : halves_) updated |= half.update();
    return updated;
  }
  [[nodiscard]] std::vector<ShownTable> tables(Half half) const override {
    return half_of(halves_, half).tables();
  }
  [[nodiscard]] std::vector<StreamRows> rows(Half half) const override {
    return half_of(halves_, half).rows();
  }

 protected:
  Status do_decode(const Batch& batch, const SeeUbatch& see) override {
    const auto tokens = tokens_of(batch, options().n_seq_max, options().quirks,
                                  [&](std::int32_t seq) { return do_seq_pos(seq); });
    if (!tokens) return tokens.error();
    for (const Token& token : *tokens)
      if (token.pos < -1 || (token.pos < 0 && debug())) return refused("a position below 0");
    if (!batch.causal && static_cast<std::int64_t>(tokens->size()) > batch.n_ubatch)
      return refused("more tokens than n_ubatch, and not causal");
    Halves next = halves_;
    Status done = decode_tokens(next, *tokens, batch, see);
    halves_ = std::move(next);
    if (done) tags_ += static_cast<std::int64_t>(tokens->size());
    return done;
  }
  [[nodiscard]] Result<std::vector<std::int32_t>> do_find_slot(const Batch& batch, Half half,
                                                               bool adjacent) const override {
    const auto tokens = tokens_of(batch, options().n_seq_max, options().quirks,
                                  [](std::int32_t /*seq*/) { return Extremes(); });
    if (!tokens) return tokens.error();
    const auto n = static_cast<std::int64_t>(tokens->size());
    const std::int32_t seq = tokens->front().primary;
    auto slots = adjacent ? half_of(halves_, half).find_adjacent(seq, n)
                          : half_of(halves_, half).find(seq, n);
    if (!slots) return fail(Code::kFull);
    return std::move(*slots);
  }
  void do_seq_rm(std::int32_t seq, const Range& range) override {
    for (PlainHalf& half : halves_) half.remove(seq, range);
  }
  Status do_seq_share(std::int32_t src, std::int32_t dst, const Range& range) override {
    if (debug() && !all(src, range, [&](const PlainCell& cell) { return !cell.has(dst); })) {
      KVO_MARK_IN(Profile::kOriginal, "cells.kv cells.iswa", "assertion");
      return refused("a cell has dst already");
    }
    for (PlainHalf& half : halves_) half.share(src, dst, range);
    return {};
  }
  Status do_seq_copy(std::int32_t src, std::int32_t dst) override {
    for (const PlainHalf& half : halves_)
      if (debug() && half.shifted_from_below(src)) return refused("a position below 0 was shifted");
    Halves next = halves_;
    for (PlainHalf& half : next) half.copy(src, dst);
    halves_ = std::move(next);
    return {};
  }
  [[nodiscard]] bool covers(std::int32_t seq, std::int32_t end) const override {
    return std::ranges::all_of(halves_,
                               [&](const PlainHalf& half) { return half.extremes(seq).max < end; });
  }
  void do_seq_keep(std::int32_t seq) override {
    for (PlainHalf& half : halves_) half.keep(seq);
  }
  Status do_seq_add(std::int32_t seq, const Range& range, std::int32_t delta) override {
    if (const Status checked = check_alone(seq, range); !checked) return checked;
    const auto stays_in_type = [&](const PlainCell& cell) {
      return is_int32(std::int64_t{cell.pos} + delta) && is_int32(std::int64_t{cell.shift} + delta);
    };
    if (!all(seq, range, stays_in_type)) return refused("a position or shift overflows");
    if (!can_shift() && !all(seq, range, [](const PlainCell&) { return false; }))
      KVO_MARK_IN(Profile::kOriginal, "cells.iswa", "halves of different sizes move");
    for (PlainHalf& half : halves_) half.move(seq, range, delta);
    return {};
  }
  Status do_seq_div(std::int32_t seq, const Range& range, std::int32_t d) override {
    if (const Status checked = check_alone(seq, range); !checked) return checked;
    const auto stays_in_type = [&](const PlainCell& cell) {
      const std::int64_t fall = d < 1 ? 0 : cell.pos - cell.pos / d;
      return d >= 1 && is_int32(cell.shift + fall) && is_int32(cell.shift - fall);
    };
    if (!all(seq, range, stays_in_type)) return refused("d is below 1, or a shift overflows");
    for (PlainHalf& half : halves_) half.divide(seq, range, d);
    return {};
  }
  [[nodiscard]] Extremes do_seq_pos(std::int32_t seq) const override {
    return halves_.back().extremes(seq);
  }
  [[nodiscard]] SavedState do_state_save(std::int32_t seq, bool partial) override {
    Halves next = halves_;
    if (!has(Quirk::kSavedBeforeUpdate))
      for (PlainHalf& half : next) half.update();
    SavedState state{.partial = partial};
    if (!partial) state.base = next.front().save(seq);
    if (is_pair()) state.window = next.back().save(seq);
    halves_ = std::move(next);
    return state;
  }
  Status do_state_load(const SavedState& state, std::int32_t seq) override {
    Halves next = halves_;
    std::vector<std::vector<LoadedRow>> rows(next.size());
    for (std::size_t h = state.partial ? 1 : 0; h < next.size(); ++h) {
      const auto& saved = h == 0 ? state.base : state.window;
      auto loaded = seq < 0 ? next[h].load_whole(saved) : next[h].load_sequence(saved, seq);
      if (loaded) {
        rows[h] = std::move(*loaded);
        continue;
      }
      if (!has(Quirk::kFailedLoadRemoves)) next[h] = halves_[h];
      if (!has(Quirk::kHalfLoaded)) std::copy_n(halves_.begin(), h, next.begin());
      halves_ = std::move(next);
      return fail_other("restore_failed");
    }
    if (state.partial) KVO_MARK("cells.iswa", "window half restored");
    for (std::size_t h = 0; h < next.size(); ++h) next[h].write_loaded(rows[h]);
    halves_ = std::move(next);
    return {};
  }

 private:
  using Halves = std::vector<PlainHalf>;  ///< the window half is last

  /// How a batch is divided, and where its ubatches go: slots are [half][ubatch].
  struct Plan {
    std::vector<Ubatch> ubatches = {};
    std::vector<std::vector<Slots>> slots = {};
  };

  /// Whether all cells of seq in range are so, in each half.
  template <class IsSo>
  [[nodiscard]] bool all(std::int32_t seq, const Range& range, IsSo&& is_so) const {
    return std::ranges::all_of(halves_,
                               [&](const PlainHalf& half) { return half.all(seq, range, is_so); });
  }
  /// Errors  kNotSupported: a cell in range has other owners (LC-43, LC-44).
  [[nodiscard]] Status check_alone(std::int32_t seq, const Range& range) const {
    const auto is_alone = [](const PlainCell& cell) { return cell.owners.count() == 1; };
    if (has(Quirk::kOthersMoveAlong) || all(seq, range, is_alone)) return {};
    KVO_MARK_IN(Profile::kDocumented, "cells.kv cells.iswa", "shared move refused");
    return fail(Code::kNotSupported, "a cell in range has other owners");
  }
  /// Errors  kFull (LC-37, LC-69).
  Result<Plan> plan(Halves& halves, const std::vector<Token>& tokens, std::int64_t n_ubatch) const {
    const auto rehearse = [&](const std::vector<Ubatch>& ubatches) -> Result<Plan> {
      Plan plan{.ubatches = ubatches};
      for (PlainHalf& half : halves) {
        auto slots = half.rehearse(tokens, ubatches);
        if (!slots) return fail(Code::kFull);
        plan.slots.push_back(std::move(*slots));
      }
      return plan;
    };
    if (options().unified) {
      auto planned = rehearse(split_in_order(tokens.size(), n_ubatch));
      if (planned || !is_pair()) return planned;
    }
    const auto ubatches = split_equal(tokens, {.n_ubatch = n_ubatch,
                                               .sequential = !options().unified,
                                               .one_too_many = has(Quirk::kUbatchTooLarge)});
    if (!ubatches) return ubatches.error();
    return rehearse(*ubatches);
  }
  Status decode_tokens(Halves& halves, const std::vector<Token>& tokens, const Batch& batch,
                       const SeeUbatch& see) const {
    for (PlainHalf& half : halves)
      if (half.update()) KVO_MARK("cells.kv cells.iswa", "moved before a decode");
    const auto planned = plan(halves, tokens, batch.n_ubatch);
    if (!planned) return planned.error();
    for (std::size_t u = 0; u < planned->ubatches.size(); ++u) {
      const Ubatch& ubatch = planned->ubatches[u];
      std::vector<const Slots*> slots;
      for (std::size_t h = 0; h < halves.size(); ++h) {
        slots.push_back(&planned->slots[h][u]);
        halves[h].place(tokens, ubatch, *slots.back());
      }
      if (batch.abort_at && std::cmp_equal(*batch.abort_at, u)) {
        KVO_MARK("cells.kv", "interrupted");
        for (PlainHalf& half : halves) take_out(half, tokens, ubatch);
        return fail_other("aborted");
      }
      see(PlainUbatch(halves, tokens, ubatch, slots, batch.causal));
      for (std::size_t h = 0; h < halves.size(); ++h)
        halves[h].write_rows(tokens, ubatch, *slots[h], tags_ + 1);
    }
    return {};
  }
  /// LC-57.
  void take_out(PlainHalf& half, const std::vector<Token>& tokens, const Ubatch& ubatch) const {
    std::map<std::int32_t, std::int32_t> first;  // by sequence, its smallest position
    for (const std::int32_t row : ubatch) {
      const auto& [pos, seqs, primary] = tokens[static_cast<std::size_t>(row)];
      for (const std::int32_t seq : seqs)
        if (seq == primary || !has(Quirk::kAbortedStays))
          first[seq] = std::min(first.try_emplace(seq, pos).first->second, pos);
    }
    for (const auto& [seq, pos] : first) half.remove(seq, range_of(pos, -1));
  }

  Halves halves_;
  std::int64_t tags_ = 0;  ///< tokens of the decodes that succeeded
};

}  // namespace

Result<std::unique_ptr<KvCache>> make_plain_kv(const KvOptions& options) {
  return std::make_unique<PlainKv>(options);
}

}  // namespace kvo::cells
