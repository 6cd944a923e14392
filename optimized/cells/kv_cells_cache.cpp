#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "optimized/cells/caches.hpp"
#include "optimized/cells/cell_half.hpp"

namespace kvo::optimized {
namespace {

using cells::Quirk;
using cells::refused;

/// A batch of one ubatch is placed without a rehearsal, whose outcome the search alone tells. All
/// scratch memory is kept: a decode that is no larger than earlier ones allocates nothing.
class KvCellsCache final : public cells::KvCache {
 public:
  /// Throws std::bad_alloc.
  explicit KvCellsCache(const cells::KvOptions& options) : KvCache(options) {
    halves_.reserve(2);
    halves_.emplace_back(options, options.size, is_pair() ? cells::Window() : options.window);
    if (is_pair()) halves_.emplace_back(options, *options.size_window, options.window);
    slots_.resize(halves_.size());
  }

  void clear(bool data) override {
    for (CellHalf& half : halves_) half.clear(data);
  }
  bool update() override {
    bool updated = !late_copies_.empty();
    for (const StreamCopy& copy : late_copies_)
      for (CellHalf& half : halves_) half.copy_rows(copy.src, copy.dst);
    late_copies_.clear();
    for (CellHalf& half : halves_)
      if (half.turn()) updated = true;
    return updated;
  }
  [[nodiscard]] std::vector<cells::ShownTable> tables(cells::Half half) const override {
    return half_of(half).tables();
  }
  [[nodiscard]] std::vector<cells::StreamRows> rows(cells::Half half) const override {
    return half_of(half).rows();
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (const CellHalf& half : halves_)
      if (auto found = half.broken()) return found;
    return std::nullopt;
  }

 protected:
  /// Errors  as KvCache::do_decode.
  Status do_decode(const cells::Batch& batch, const cells::SeeUbatch& see) override {
    if (const Status valid = read(batch); !valid) return valid;
    for (const std::int32_t seq : plan_.named())
      plan_.set_stored(seq, told().table_of(seq).extremes(seq));
    if (const Status valid = plan_.check(); !valid) return valid;
    if (!batch.causal && std::ssize(plan_.tokens()) > batch.n_ubatch)
      return refused(fmt::format("{} tokens, n_ubatch {}", plan_.tokens().size(), batch.n_ubatch));
    if (plan_.lowest_pos() < (debug() ? 0 : -1))
      return refused(fmt::format("position {}", plan_.lowest_pos()));
    Status divided = divide(batch.n_ubatch);  // moved to the caller: no copy after update()
    // Whoever finds a cell for each token needs no second try.
    const bool second_split = is_pair() && options().unified && !has_room();
    if (second_split) plan_.prepare_sets(batch.n_ubatch);
    if (divided) {
      lay_out();
      reserve_places(second_split);
    }
    update();
    if (!divided) return divided;
    if (!find_places()) {
      if (second_split) plan_.use_sets();
      if (second_split) lay_out();
      // Without words, which could find no memory: a rehearsal may have left its traces.
      if (!second_split || !find_places()) return fail(Code::kFull);
    }
    for (std::size_t ubatch = 0; ubatch < ubatches_.size(); ++ubatch) {
      for (std::size_t h = 0; h < halves_.size(); ++h) halves_[h].place(placed(ubatch, h));
      if (batch.abort_at == static_cast<std::int64_t>(ubatch)) {
        abort(ubatch);
        return fail_other("aborted");
      }
      if (see) see(Placed(*this, ubatch, batch.causal));
      for (std::size_t h = 0; h < halves_.size(); ++h) halves_[h].write_rows(placed(ubatch, h));
    }
    next_tag_ += std::ssize(plan_.tokens());
    return {};
  }
  /// Errors  as KvCache::do_find_slot.
  [[nodiscard]] Result<std::vector<std::int32_t>> do_find_slot(const cells::Batch& batch,
                                                               cells::Half half_asked,
                                                               bool adjacent) const override {
    if (const Status valid = read(batch); !valid) return valid.error();
    if (const Status valid = plan_.check(); !valid) return valid.error();
    CellHalf& half = half_of(half_asked);
    const std::int32_t stream = half.stream_of(plan_.named().front());
    std::vector<std::int32_t> slots(plan_.tokens().size());
    const std::int64_t start = half.start(stream, std::ssize(slots));
    StreamTable& table = half.table(stream);
    if (!(adjacent ? table.search_adjacent(start, slots) : table.search(start, slots)))
      return fail(Code::kFull, "no cells are left");
    return slots;
  }
  void do_seq_rm(std::int32_t seq, const cells::Range& range) override {
    for (CellHalf& half : halves_) {
      if (seq < 0) {
        half.remove_any(range.begin, range.end);
      } else {
        half.remove(seq, range.begin, range.end);
      }
    }
  }
  /// Errors  as KvCache::do_seq_share.
  Status do_seq_share(std::int32_t src, std::int32_t dst, const cells::Range& range) override {
    for (CellHalf& half : halves_) {
      const auto shared = half.table_of(src).of(src).between(range.begin, range.end);
      const auto owned = std::ranges::find_if(
          shared, [&](const CellAt& each) { return half.table_of(src).owns(each.cell, dst); });
      if (debug() && owned != shared.end())
        return refused(fmt::format("cell {} has sequence {}", owned->cell, dst));
      half.table_of(dst).reserve(dst, shared.size());
    }
    for (CellHalf& half : halves_) half.table_of(src).share(src, dst, range);
    return {};
  }
  /// Errors  as KvCache::do_seq_copy.
  Status do_seq_copy(std::int32_t src, std::int32_t dst) override {
    for (CellHalf& half : halves_) {
      const StreamTable& table = half.table(src);
      for (const CellAt& each : table.of(src).all())
        if (debug() && std::int64_t{each.pos} - table.shift(each.cell) < 0)
          return refused(fmt::format("cell {}: position {}, shift {}", each.cell, each.pos,
                                     table.shift(each.cell)));
      half.table(dst).reserve(dst, table.of(src).size());
    }
    late_copies_.push_back({src, dst});
    for (CellHalf& half : halves_) {
      half.table(dst).copy(half.table(src), src, dst);
      half.set_head(dst, half.head(src));
    }
    if (has(Quirk::kCopyIsLate)) return {};
    for (CellHalf& half : halves_) half.copy_rows(src, dst);
    late_copies_.pop_back();
    return {};
  }
  [[nodiscard]] bool covers(std::int32_t seq, std::int32_t end) const override {
    return std::ranges::all_of(halves_, [&](const CellHalf& half) {
      const OwnedCells& its = half.table_of(seq).of(seq);
      return its.empty() || its.max() < end;
    });
  }
  void do_seq_keep(std::int32_t seq) override {
    for (CellHalf& half : halves_)
      for (std::int32_t stream = 0; stream < half.streams(); ++stream)
        if (stream == half.stream_of(seq) || !has(Quirk::kKeepsOtherStreams))
          half.lower_head(stream, half.table(stream).keep(seq));
  }
  /// Errors  as KvCache::do_seq_add.
  Status do_seq_add(std::int32_t seq, const cells::Range& range, std::int32_t delta) override {
    for (const CellHalf& half : halves_)
      if (!has(Quirk::kOthersMoveAlong) && half.table_of(seq).shares(seq, range))
        return fail(Code::kNotSupported, "a cell in range is shared");
    for (const CellHalf& half : halves_)
      if (!half.table_of(seq).can_add(seq, range, delta))
        return refused(fmt::format("delta {} overflows", delta));
    for (CellHalf& half : halves_) {
      const std::int32_t lowest = half.table_of(seq).add(seq, range, delta);
      half.set_head(half.stream_of(seq), lowest == StreamTable::kNone ? 0 : lowest);
    }
    return {};
  }
  /// Errors  as KvCache::do_seq_div.
  Status do_seq_div(std::int32_t seq, const cells::Range& range, std::int32_t d) override {
    const bool turn_back = has(Quirk::kDivisionTurnsBack);
    for (const CellHalf& half : halves_)
      if (!has(Quirk::kOthersMoveAlong) && half.table_of(seq).shares(seq, range))
        return fail(Code::kNotSupported, "a cell in range is shared");
    for (const CellHalf& half : halves_)
      if (!half.table_of(seq).can_divide(seq, range, d))
        return refused(fmt::format("d {} is below 1, or a shift overflows", d));
    for (CellHalf& half : halves_) half.table_of(seq).divide(seq, range, d, turn_back);
    return {};
  }
  [[nodiscard]] cells::Extremes do_seq_pos(std::int32_t seq) const override {
    return told().table_of(seq).extremes(seq);
  }
  [[nodiscard]] cells::SavedState do_state_save(std::int32_t seq, bool partial) override {
    cells::SavedState state{.partial = partial};
    const auto save = [&](const CellHalf& half, std::vector<cells::SavedStream>& streams) {
      for (std::int32_t i = 0; i < half.streams(); ++i)
        streams.push_back(half.saved(i, seq, options().n_seq_max));
    };
    if (!partial) save(halves_.front(), state.base);
    if (is_pair()) save(halves_.back(), state.window);
    // Nothing allocates from here on.
    if (!has(Quirk::kSavedBeforeUpdate)) update();
    const auto fill = [](const CellHalf& half, std::vector<cells::SavedStream>& streams) {
      for (std::size_t i = 0; i < streams.size(); ++i)
        half.fill_rows(streams[i], static_cast<std::int32_t>(i));
    };
    fill(halves_.front(), state.base);
    fill(halves_.back(), state.window);
    return state;
  }
  /// Errors  as KvCache::do_state_load.
  Status do_state_load(const cells::SavedState& state, std::int32_t seq) override {
    return seq < 0 ? load_whole(state) : load_sequence(state, seq);
  }

 private:
  // An ubatch that was placed, to be looked at.
  class Placed final : public cells::PlacedUbatch {
   public:
    Placed(KvCellsCache& cache, std::size_t ubatch, bool causal)
        : cache_(cache), ubatch_(ubatch), causal_(causal) {}

    [[nodiscard]] std::span<const std::int32_t> rows() const override {
      return part(cache_.plan_.rows());
    }
    [[nodiscard]] std::span<const std::int32_t> slots(cells::Half half) const override {
      return part(cache_.slots_[number(half)]);
    }
    [[nodiscard]] std::int64_t n_kv(cells::Half half) const override {
      const PlacedBatch batch = cache_.placed(ubatch_, number(half));
      return cache_.halves_[number(half)].n_kv(batch.runs, cache_.options().n_pad);
    }
    void mask(cells::Half half, std::span<float> out) const override {
      cache_.halves_[number(half)].mask(cache_.placed(ubatch_, number(half)),
                                        cache_.rule_of(number(half), causal_), n_kv(half), out);
    }

   private:
    static std::size_t number(cells::Half half) { return half == cells::Half::kWindow ? 1 : 0; }
    [[nodiscard]] std::span<const std::int32_t> part(std::span<const std::int32_t> all) const {
      const UbatchPlace& place = cache_.ubatches_[ubatch_];
      return all.subspan(place.begin, place.end - place.begin);
    }

    KvCellsCache& cache_;
    std::size_t ubatch_;
    bool causal_;
  };
  struct StreamCopy {
    std::int32_t src = 0;
    std::int32_t dst = 0;
  };
  /// How an ubatch lies in the runs and rows of the plan.
  struct UbatchPlace {
    std::size_t first_run = 0;
    std::size_t end_run = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  [[nodiscard]] CellHalf& half_of(cells::Half half) const {
    return halves_[half == cells::Half::kWindow ? 1 : 0];
  }
  /// The half that says what a sequence has (LC-68).
  [[nodiscard]] CellHalf& told() const { return halves_.back(); }
  /// Errors  as decode.
  [[nodiscard]] Status read(const cells::Batch& batch) const {
    return plan_.read(batch, options().n_seq_max, options().quirks);
  }
  [[nodiscard]] Status divide(std::int64_t n_ubatch) {
    if (options().unified) {
      plan_.split_in_order(n_ubatch);
      return {};
    }
    return plan_.split_sequential(n_ubatch, 0);
  }
  // Finds the runs of the ubatches, one a stream.
  void lay_out() {
    runs_.clear();
    ubatches_.clear();
    std::size_t begin = 0;
    for (const std::size_t end : plan_.ends()) {
      const std::size_t first_run = runs_.size();
      for (std::size_t i = begin; i < end; ++i) {
        const auto row = static_cast<std::size_t>(plan_.rows()[i]);
        const std::int32_t stream = halves_.front().stream_of(plan_.tokens()[row].primary);
        if (runs_.size() == first_run || runs_.back().stream != stream)
          runs_.push_back({stream, i, i});
        runs_.back().end = options().unified ? end : i + 1;
        if (options().unified) break;
      }
      ubatches_.push_back({first_run, runs_.size(), begin, end});
      begin = end;
    }
  }
  // Room for all that placing the batch needs; nothing has changed if there is none.
  void reserve_places(bool second_split) {
    for (std::size_t h = 0; h < halves_.size(); ++h) {
      slots_[h].resize(plan_.rows().size());
      for (const std::int32_t seq : plan_.named())
        halves_[h].table_of(seq).reserve(seq, plan_.count_of(seq));
      if (ubatches_.size() > 1 || second_split)
        halves_[h].reserve_journal(plan_.owner_count(), !has(Quirk::kRehearsalPurges));
    }
    const std::size_t most = second_split ? plan_.rows().size() : runs_.size();
    runs_.reserve(most);
    ubatches_.reserve(most);
    heads_.resize(most);
    marks_.resize(most);
  }
  // Whether each half has a cell for each token, without those that the batch makes usable itself.
  [[nodiscard]] bool has_room() const {
    return std::ranges::all_of(halves_, [&](CellHalf& half) {
      return half.table(0).usable() >= std::ssize(plan_.tokens());
    });
  }
  [[nodiscard]] PlacedBatch placed(std::size_t ubatch, std::size_t half) {
    const UbatchPlace& place = ubatches_[ubatch];
    return {.plan = plan_,
            .runs = std::span<const PlacedRun>(runs_).subspan(place.first_run,
                                                              place.end_run - place.first_run),
            .slots = slots_[half],
            .first_tag = next_tag_};
  }
  [[nodiscard]] bool find_places() {
    for (std::size_t h = 0; h < halves_.size(); ++h)
      if (!rehearse(h)) return false;
    return true;
  }
  // Finds the slots of all ubatches in a half, and leaves it as it was, quirks aside (LC-37).
  [[nodiscard]] bool rehearse(std::size_t half_number) noexcept {
    CellHalf& half = halves_[half_number];
    // Of one ubatch the search alone tells everything: what it would purge goes with its placing.
    const bool alone = ubatches_.size() == 1;
    if (!alone) half.keep_journal(!has(Quirk::kRehearsalPurges));
    std::size_t done = 0;
    for (; done < ubatches_.size(); ++done) {
      const PlacedBatch batch = placed(done, half_number);
      if (!half.search(batch)) break;
      marks_[done] = half.journal();
      const UbatchPlace& place = ubatches_[done];
      for (std::size_t run = place.first_run; run < place.end_run; ++run) {
        const auto x = static_cast<std::int32_t>(run - place.first_run);
        heads_[run] = half.head(has(Quirk::kHeadsOfOtherStreams) ? x : runs_[run].stream);
      }
      if (!alone) half.place(batch);
    }
    half.stop_journal();
    for (std::size_t ubatch = done; ubatch-- > 0;) {
      if (!alone) half.undo(marks_[ubatch]);
      put_heads_back(half_number, ubatch);
    }
    return done == ubatches_.size();
  }
  void put_heads_back(std::size_t half, std::size_t ubatch) noexcept {
    const UbatchPlace& place = ubatches_[ubatch];
    for (std::size_t run = place.first_run; run < place.end_run; ++run)
      halves_[half].set_head(runs_[run].stream, heads_[run]);
  }
  // The ubatch that was placed last is taken back for its primaries, or all owners (LC-57).
  void abort(std::size_t ubatch) {
    const UbatchPlace& place = ubatches_[ubatch];
    OwnerSet seen;
    for (std::size_t i = place.begin; i < place.end; ++i) {
      const auto& token = plan_.tokens()[static_cast<std::size_t>(plan_.rows()[i])];
      const auto take_back = [&](std::int32_t seq) {
        // Positions of a sequence never decrease in a batch: its first token has the smallest.
        if (seen.has(seq)) return;
        seen.insert(seq);
        for (CellHalf& half : halves_)
          half.remove(seq, std::max(token.pos, 0), cells::kMaxPosition);
      };
      if (has(Quirk::kAbortedStays)) {
        take_back(token.primary);
      } else {
        std::ranges::for_each(plan_.seqs_of(token), take_back);
      }
    }
  }
  [[nodiscard]] MaskRule rule_of(std::size_t half, bool causal) const {
    const bool windowed = halves_[half].window().type != cells::WindowType::kNone;
    const cells::NonCausal how = options().non_causal;
    return {.causal = causal || (how == cells::NonCausal::kSwaOnly && !windowed),
            .alibi = options().alibi,
            .whole_ubatch = how == cells::NonCausal::kSwaFull};
  }
  // Puts the cells of all saved streams into a sequence; false: no room, or a lie.
  [[nodiscard]] bool load_half(CellHalf& half, const std::vector<cells::SavedStream>& saved,
                               std::int32_t seq, std::vector<std::int32_t>& slots) noexcept {
    std::size_t begin = 0;
    for (const cells::SavedStream& stream : saved) {
      if (stream.empty()) continue;
      half.remove(seq, 0, cells::kMaxPosition);
      const auto its = std::span<std::int32_t>(slots).subspan(begin, stream.size());
      begin += stream.size();
      if (std::ranges::any_of(stream, [](const auto& cell) { return cell.seqs.size() != 1; }))
        return false;
      if (!half.restore(stream, seq, its)) return false;
    }
    if (begin == 0 && !has(Quirk::kEmptyStateChangesNothing))
      half.remove(seq, 0, cells::kMaxPosition);
    return true;
  }
  [[nodiscard]] Status load_sequence(const cells::SavedState& state, std::int32_t seq) {
    const std::array<const std::vector<cells::SavedStream>*, 2> saved{&state.base, &state.window};
    const std::size_t first = state.partial ? 1 : 0;
    std::array<std::int64_t, 2> heads{};
    for (std::size_t h = first; h < halves_.size(); ++h) {
      std::size_t total = 0;
      for (const cells::SavedStream& stream : *saved[h]) total += stream.size();
      slots_[h].resize(std::max(slots_[h].size(), total));
      halves_[h].table_of(seq).reserve(seq, total);
      halves_[h].reserve_journal(total, true);
      heads[h] = halves_[h].head(halves_[h].stream_of(seq));
    }
    std::size_t failed = halves_.size();
    for (std::size_t h = first; h < failed; ++h) {
      halves_[h].keep_journal(true);
      if (!load_half(halves_[h], *saved[h], seq, slots_[h])) failed = h;
      halves_[h].stop_journal();
    }
    if (failed < halves_.size()) {
      for (std::size_t h = first; h <= failed; ++h) {
        if (has(h == failed ? Quirk::kFailedLoadRemoves : Quirk::kHalfLoaded)) continue;
        halves_[h].undo(0);
        halves_[h].set_head(halves_[h].stream_of(seq), heads[h]);
      }
      if (has(Quirk::kFailedLoadRemoves)) halves_[failed].remove(seq, 0, cells::kMaxPosition);
      return fail_other("restore_failed");
    }
    for (std::size_t h = first; h < halves_.size(); ++h) {
      std::size_t begin = 0;
      for (const cells::SavedStream& stream : *saved[h]) {
        halves_[h].restore_rows(
            stream, halves_[h].stream_of(seq),
            std::span<const std::int32_t>(slots_[h]).subspan(begin, stream.size()));
        begin += stream.size();
      }
    }
    return {};
  }
  [[nodiscard]] Status load_whole(const cells::SavedState& state) {
    const std::array<const std::vector<cells::SavedStream>*, 2> saved{&state.base, &state.window};
    const std::size_t first = state.partial ? 1 : 0;
    std::size_t failed = halves_.size();
    for (std::size_t h = halves_.size(); h-- > first;)
      for (std::size_t s = 0; s < saved[h]->size(); ++s) {
        if (std::ssize((*saved[h])[s]) > halves_[h].size()) failed = h;
        halves_[h].reserve_whole((*saved[h])[s], static_cast<std::int32_t>(s));
      }
    const bool fits = failed == halves_.size();
    for (std::size_t h = first; h < failed && (fits || has(Quirk::kHalfLoaded)); ++h) {
      halves_[h].clear(true);
      for (std::int32_t s = 0; s < halves_[h].streams(); ++s)
        halves_[h].put_whole((*saved[h])[static_cast<std::size_t>(s)], s, fits);
    }
    if (fits) return {};
    if (has(Quirk::kFailedLoadRemoves)) halves_[failed].clear(true);
    return fail_other("restore_failed");
  }

  // Searching brings what is usable up to date, and reading a batch uses scratch memory.
  mutable std::vector<CellHalf> halves_;  ///< one, or base and window
  mutable BatchPlan plan_;
  std::vector<PlacedRun> runs_;
  std::vector<UbatchPlace> ubatches_;
  std::vector<std::vector<std::int32_t>> slots_;  ///< [half][number in the rows of the plan]
  std::vector<std::int64_t> heads_;               ///< before each ubatch of a rehearsal, by run
  std::vector<std::size_t> marks_;                ///< [ubatch]: what the journal had before it
  std::vector<StreamCopy> late_copies_;
  std::int64_t next_tag_ = 1;
};

}  // namespace

Result<std::unique_ptr<cells::KvCache>> make_kv_cells(const cells::KvOptions& options) {
  return std::make_unique<KvCellsCache>(options);
}

}  // namespace kvo::optimized
