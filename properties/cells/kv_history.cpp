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
#include <utility>

#include "properties/cells/half_history.hpp"
#include "properties/cells/history.hpp"
#include "properties/runner/oracle.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::cells {
namespace {

using Tokens = std::vector<KnownToken>;

class KvHistory final : public Oracle {
 public:
  explicit KvHistory(const KvOptions& options) : options_(options) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.unsupported) return words;
    visit_op(Ops(), op, [&](const auto& operation) {
      if constexpr (std::is_same_v<decltype(operation), const New&>)
        words = observe(operation, seen);
      else if (halves_.empty() || lost_)
        words = skip();
      else
        words = observe(operation, seen);
    });
    return words;
  }
  [[nodiscard]] std::vector<std::string> explain(std::span<const Op> script,
                                                 const Observation& want,
                                                 const Observation& got) const override;

 private:
  struct Saved {
    std::vector<std::vector<KnownSaved>> halves = {};  ///< none of the base in a partial one
    bool altered = false;
  };

  // ---- Operations ----

  Words observe(const New& op, const Observation& seen);
  Words observe(const Decode& op, const Observation& seen);
  Words observe(const FindSlot& op, const Observation& seen);
  Words observe(const SeqRm& op, const Observation& seen);
  Words observe(const SeqCp& op, const Observation& seen);
  Words observe(const SeqKeep& op, const Observation& seen);
  Words observe(const SeqAdd& op, const Observation& seen);
  Words observe(const SeqDiv& op, const Observation& seen);
  Words observe(const SeqPos& op, const Observation& seen);
  Words observe(const CanShift& /*op*/, const Observation& /*seen*/) { return skip(); }
  Words observe(const Clear& op, const Observation& seen);
  Words observe(const UpdatePending& op, const Observation& seen);
  Words observe(const StateSave& op, const Observation& seen);
  Words observe(const StateLoad& op, const Observation& seen);
  Words observe(const StateEdit& op, const Observation& seen);
  Words observe(const ShowRows& op, const Observation& seen);
  Words observe(const ShowState& op, const Observation& seen);

  // ---- What follows ----

  [[nodiscard]] bool has(Quirk quirk) const { return options_.quirks.has(quirk); }
  [[nodiscard]] bool is_pair() const { return options_.size_window.has_value(); }
  /// A decode has done what cannot be followed.
  Words forget_all() {
    for (HalfHistory& half : halves_) {
      (void)half.update();
      half.forget(-1);
    }
    return skip();
  }
  /// The tokens of a batch; nothing: where they go on is not known.
  [[nodiscard]] std::optional<Tokens> tokens_of(const Decode& op) const;
  [[nodiscard]] std::int32_t primary_of(const std::vector<std::int64_t>& seqs) const;
  [[nodiscard]] Words refused(const Decode& op);
  [[nodiscard]] Words wrong_split(const Decode& op, const std::vector<ShownUbatch>& ubatches) const;
  /// Places an ubatch in both halves. `doubtful`: the mask of a window is not judged.
  [[nodiscard]] Words placed(const Tokens& tokens, const ShownUbatch& ubatch, bool causal,
                             bool doubtful);
  [[nodiscard]] static std::optional<std::int64_t> bytes_of(const Saved& saved,
                                                            std::int64_t layers);
  [[nodiscard]] static Words wrong_extremes(const ShowState::Returns& shown);

  KvOptions options_;
  std::vector<HalfHistory> halves_ = {};  ///< none: there is no cache
  std::vector<Saved> saved_ = {};
  std::int64_t tags_ = 0;
  bool lost_ = false;
};

Oracle::Words KvHistory::observe(const New& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  halves_.clear();
  saved_.clear();
  tags_ = 0;
  lost_ = false;
  halves_.emplace_back(options_, options_.size, is_pair() ? Window() : options_.window);
  if (is_pair()) halves_.emplace_back(options_, *options_.size_window, options_.window);
  return judged();
}

// ---- Batches ----

// LC-38
std::int32_t KvHistory::primary_of(const std::vector<std::int64_t>& seqs) const {
  std::vector<std::int64_t> once;
  for (const std::int64_t seq : seqs)
    if (std::ranges::find(once, seq) == once.end()) once.push_back(seq);
  return static_cast<std::int32_t>(has(Quirk::kLastIsPrimary) ? once.back() : once.front());
}

std::optional<Tokens> KvHistory::tokens_of(const Decode& op) const {
  Tokens tokens;
  std::map<std::int64_t, std::int64_t> next;
  for (std::size_t i = 0; i < op.seqs.size(); ++i) {
    const std::vector<std::int64_t>& seqs = op.seqs[i];
    KnownToken& token = tokens.emplace_back();
    for (const std::int64_t seq : seqs) token.seqs.insert(static_cast<std::int32_t>(seq));
    token.primary = primary_of(seqs);
    if (op.pos.has_value()) {
      token.pos = (*op.pos)[i];
      continue;
    }
    if (!next.contains(seqs.front())) {
      const auto extremes = halves_.back().extremes(static_cast<std::int32_t>(seqs.front()));
      if (!extremes) return std::nullopt;
      next[seqs.front()] = extremes->max + 1;
    }
    token.pos = next[seqs.front()]++;
  }
  return tokens;
}

// A batch of one ubatch is refused only where too few cells are free.
Oracle::Words KvHistory::refused(const Decode& op) {
  const std::int64_t wanted = std::ssize(op.seqs);
  bool room = options_.unified && wanted <= op.n_ubatch;
  for (HalfHistory& half : halves_) {
    (void)half.update();
    room = room && half.usable(0).value_or(0) >= wanted;
    if (half.has_window() && has(Quirk::kRehearsalPurges)) half.forget(-1);
  }
  return room ? Words("a batch is refused, and there is room for it") : Words();
}

Oracle::Words KvHistory::wrong_split(const Decode& op,
                                     const std::vector<ShownUbatch>& ubatches) const {
  std::set<std::int32_t> rows;
  for (const ShownUbatch& ubatch : ubatches) {
    rows.insert(ubatch.rows.begin(), ubatch.rows.end());
    const std::int64_t most = op.n_ubatch + (has(Quirk::kUbatchTooLarge) ? 1 : 0);
    if (std::ssize(ubatch.rows) > most) return "an ubatch has more tokens than n_ubatch";
  }
  std::int64_t shown = 0;
  for (const ShownUbatch& ubatch : ubatches) shown += std::ssize(ubatch.rows);
  if (shown != std::ssize(op.seqs) || std::ssize(rows) != shown ||
      (shown > 0 && (*rows.begin() != 0 || *rows.rbegin() != shown - 1)))
    return "not every token of the batch is in one ubatch";
  return std::nullopt;
}

Oracle::Words KvHistory::placed(const Tokens& tokens, const ShownUbatch& ubatch, bool causal,
                                bool doubtful) {
  for (std::size_t h = 0; h < halves_.size(); ++h) {
    const auto& slots = h == 0 ? ubatch.slots : ubatch.slots_swa.value_or(ubatch.slots);
    const bool window_is_doubtful = doubtful && halves_[h].has_window();
    if (window_is_doubtful) halves_[h].forget(-1);
    if (auto words = halves_[h].wrong_slots(tokens, ubatch.rows, slots)) return words;
    halves_[h].place(tokens, ubatch.rows, slots);
  }
  for (std::size_t h = 0; h < halves_.size(); ++h) {
    const bool base = h == 0;
    if (auto words = halves_[h].wrong_mask(
            tokens, ubatch.rows, causal, base ? ubatch.n_kv : ubatch.n_kv_swa.value_or(0),
            base ? ubatch.mask : ubatch.mask_swa, base ? ubatch.visible : ubatch.visible_swa))
      return words;
    halves_[h].write(tokens, ubatch.rows,
                     base ? ubatch.slots : ubatch.slots_swa.value_or(ubatch.slots), tags_ + 1);
  }
  return std::nullopt;
}

Oracle::Words KvHistory::observe(const Decode& op, const Observation& seen) {
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

// The first cell that only one of the results takes: what it holds.
std::vector<std::string> KvHistory::explain(std::span<const Op> script, const Observation& want,
                                            const Observation& got) const {
  const Decode* op = script.back().as<Decode>();
  if (op == nullptr || halves_.empty() || lost_ || (want.error && got.error)) return {};
  const auto tokens = tokens_of(*op);
  const auto placed = [](const Observation& seen) {
    return seen.error ? std::nullopt : seen.as<Decode::Returns>().ubatches;
  };
  const auto wanted = placed(want);
  const auto shown = placed(got);
  if (!tokens || (!wanted && !shown)) return {};
  const auto slots_of = [](const ShownUbatch& ubatch, std::size_t half) {
    return half == 0 ? ubatch.slots : ubatch.slots_swa.value_or(ubatch.slots);
  };
  std::vector<HalfHistory> halves = halves_;
  const std::vector<ShownUbatch>& all = shown ? *shown : *wanted;
  for (std::size_t u = 0; u < all.size(); ++u)
    for (std::size_t h = 0; h < halves.size(); ++h) {
      const auto slots = slots_of(all[u], h);
      const auto due = shown && wanted && u < wanted->size() ? slots_of((*wanted)[u], h)
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
      halves[h].place(*tokens, all[u].rows, slots);
    }
  return {};
}

Oracle::Words KvHistory::observe(const FindSlot& op, const Observation& seen) {
  if (op.seqs.empty() || op.seqs.front().empty()) return skip();
  const HalfHistory& half = op.swa.value_or(false) ? halves_.back() : halves_.front();
  const std::int32_t seq = primary_of(op.seqs.front());
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
  if (auto words = half.wrong_slots(tokens, rows, slots)) return judged(words);
  const auto apart = [](std::int32_t a, std::int32_t b) { return b != a + 1; };
  const bool adjacent = std::ranges::adjacent_find(slots, apart) == slots.end();
  return judged(op.cont.value_or(false) && !adjacent ? Words("the slots are not adjacent")
                                                     : Words());
}

// ---- Sequences ----

Oracle::Words KvHistory::observe(const SeqRm& op, const Observation& seen) {
  if (seen.error) return skip();
  for (HalfHistory& half : halves_)
    half.remove(op.seq < 0 ? -1 : static_cast<std::int32_t>(op.seq), range_of(op.p0, op.p1));
  return judged();
}

Oracle::Words KvHistory::observe(const SeqCp& op, const Observation& seen) {
  if (seen.error || op.src == op.dst) return skip();
  const auto src = static_cast<std::int32_t>(op.src);
  const auto dst = static_cast<std::int32_t>(op.dst);
  for (HalfHistory& half : halves_)
    options_.unified ? half.share(src, dst, range_of(op.p0, op.p1)) : half.copy(src, dst);
  return judged();
}

Oracle::Words KvHistory::observe(const SeqKeep& op, const Observation& seen) {
  if (seen.error) return skip();
  for (HalfHistory& half : halves_) half.keep(static_cast<std::int32_t>(op.seq));
  return judged();
}

Oracle::Words KvHistory::observe(const SeqAdd& op, const Observation& seen) {
  if (seen.error) return skip();
  const Range range = range_of(op.p0, op.p1);
  if (op.delta == 0 || range.begin == range.end) return judged();
  for (HalfHistory& half : halves_) half.move(static_cast<std::int32_t>(op.seq), range, op.delta);
  return judged();
}

Oracle::Words KvHistory::observe(const SeqDiv& op, const Observation& seen) {
  if (seen.error) return skip();
  const Range range = range_of(op.p0, op.p1);
  if (op.d <= 1 || range.begin == range.end) return judged();
  for (HalfHistory& half : halves_) half.divide(static_cast<std::int32_t>(op.seq), range, op.d);
  return judged();
}

Oracle::Words KvHistory::observe(const SeqPos& op, const Observation& seen) {
  if (seen.error) return skip();
  const auto extremes = halves_.back().extremes(static_cast<std::int32_t>(op.seq));
  if (!extremes) return skip();
  return judged(seen.as<SeqPos::Returns>() == *extremes
                    ? Words()
                    : Words("the extremes are not those of the sequence's cells"));
}

Oracle::Words KvHistory::observe(const Clear& op, const Observation& seen) {
  if (seen.error) return skip();
  for (HalfHistory& half : halves_) half.clear(op.data);
  return judged();
}

Oracle::Words KvHistory::observe(const UpdatePending& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
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

// ---- Saved states ----

// LC-72
std::optional<std::int64_t> KvHistory::bytes_of(const Saved& saved, std::int64_t layers) {
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

Oracle::Words KvHistory::observe(const StateSave& op, const Observation& seen) {
  if (seen.error) return skip();
  Saved saved;
  for (std::size_t h = 0; h < halves_.size(); ++h) {
    if (!has(Quirk::kSavedBeforeUpdate)) (void)halves_[h].update();
    if (h == 0 && op.partial.value_or(false))
      saved.halves.emplace_back();
    else
      saved.halves.push_back(halves_[h].save(static_cast<std::int32_t>(op.seq)));
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

Oracle::Words KvHistory::observe(const StateLoad& op, const Observation& seen) {
  const auto seq = static_cast<std::int32_t>(op.seq);
  const bool failed = seen.error && seen.error->code_text() == "other:restore_failed";
  if (seen.error && !failed) return skip();
  if (failed && !has(Quirk::kFailedLoadRemoves)) return judged();
  if (op.handle < 0 || op.handle >= std::ssize(saved_)) return skip();
  const Saved& saved = saved_[static_cast<std::size_t>(op.handle)];
  for (std::size_t h = 0; h < halves_.size(); ++h) {
    if (h == 0 && op.partial.value_or(false)) continue;
    if (failed || saved.altered || saved.halves.size() <= h)
      halves_[h].forget(seq);
    else
      halves_[h].load(saved.halves[h], seq);
  }
  return failed || saved.altered ? skip() : judged();
}

Oracle::Words KvHistory::observe(const StateEdit& op, const Observation& seen) {
  if (!seen.error && op.handle >= 0 && op.handle < std::ssize(saved_))
    saved_[static_cast<std::size_t>(op.handle)].altered = true;
  return skip();
}

// ---- Looks ----

Oracle::Words KvHistory::observe(const ShowRows& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  const auto& shown = seen.as<ShowRows::Returns>();
  if (auto words = halves_.front().compare(shown.streams)) return judged(words);
  if (is_pair() && shown.streams_swa) return judged(halves_.back().compare(*shown.streams_swa));
  return judged();
}

// LC-4, LC-68
Oracle::Words KvHistory::wrong_extremes(const ShowState::Returns& shown) {
  std::map<std::int64_t, Extremes> extremes;
  for (const ShownTable& table : shown.streams_swa.value_or(shown.streams))
    for (const ShownCell& cell : table.cells)
      for (const std::int32_t seq : cell.seqs) {
        Extremes& its = extremes.try_emplace(seq, Extremes{cell.pos, cell.pos}).first->second;
        its = {std::min(its.min, cell.pos), std::max(its.max, cell.pos)};
      }
  if (extremes.size() != shown.seqs.size()) return "not the sequences that have cells are shown";
  for (const ShownSequence& seq : shown.seqs) {
    const auto its = extremes.find(seq.seq);
    if (its == extremes.end() || its->second != seq.extremes)
      return "extremes of sequence " + std::to_string(seq.seq) + " are not those of its cells";
  }
  return std::nullopt;
}

Oracle::Words KvHistory::observe(const ShowState& /*op*/, const Observation& seen) {
  if (seen.error) return skip();
  const auto& shown = seen.as<ShowState::Returns>();
  if (auto words = HalfHistory::wrong_figures(shown.streams)) return judged(words);
  if (auto words = halves_.front().compare(shown.streams)) return judged(words);
  if (is_pair() && shown.streams_swa) {
    if (auto words = HalfHistory::wrong_figures(*shown.streams_swa)) return judged(words);
    if (auto words = halves_.back().compare(*shown.streams_swa)) return judged(words);
  }
  return judged(wrong_extremes(shown));
}

}  // namespace

std::unique_ptr<Oracle> kv_history(const KvOptions& options) {
  return std::make_unique<KvHistory>(options);
}

}  // namespace kvo::cells
