// What the script of cells.kv and cells.iswa follows.
#include <algorithm>
#include <set>

#include "properties/cells/kv_script.hpp"

namespace kvo::cells {
namespace {

bool repeats_a_position(const Decode& op) {
  std::set<std::pair<std::int64_t, std::int32_t>> seen;
  for (std::size_t i = 0; i < op.seqs.size() && op.pos.has_value(); ++i)
    for (const std::int64_t seq : std::set(op.seqs[i].begin(), op.seqs[i].end()))
      if (!seen.insert({seq, (*op.pos)[i]}).second) return true;
  return false;
}

bool has_overlapping_sets(const Decode& op) {
  std::set<std::set<std::int64_t>> sets;
  for (const auto& seqs : op.seqs) sets.insert({seqs.begin(), seqs.end()});
  for (const auto& a : sets)
    for (const auto& b : sets) {
      const bool overlap =
          std::ranges::any_of(a, [&](std::int64_t seq) { return b.contains(seq); });
      if (overlap && !std::ranges::includes(a, b) && !std::ranges::includes(b, a)) return true;
    }
  return false;
}

}  // namespace

void KvScript::changed(std::int64_t cost) {
  pay(cost);
  seen_.exact = false;
  compares_full_ = false;
  if (is_long() || !draw().percent(is_large() ? 15 : 55)) return;
  plan(ShowState{});
  if (draw().percent(25)) plan(ShowRows{});
}

void KvScript::saw(const New& /*op*/, const Observation& seen) {
  if (seen.error) return;
  begun_ = true;
  seen_ = {.exact = false, .extremes = {}, .used = {}};
  saved_.clear();
  moved_ = recovers_ = was_full_ = false;
  if (options().size > 64) reach(Label::kMoreThan64Cells);
  if (options().size > 1024) reach(Label::kMoreThan1024Cells);
}

void KvScript::saw_full() {
  reach(KvState::kFull);
  was_full_ = recovers_ = true;
  if (follows_plan() || is_long() || !draw().percent(60)) return;
  // An engine makes room.
  const std::int64_t seq = sequence();
  const auto [p0, p1] = range(seq);
  plan(SeqRm{seq, draw().percent(50) ? -1 : p0, p1});
}

void KvScript::saw(const Decode& op, const Observation& seen) {
  const bool was_exact = seen_.exact;
  const std::int64_t tokens = std::ssize(op.seqs);
  const std::size_t before = seen_.in_all;
  was_full_ = false;
  if (seen.failed_with(Code::kPrecondition)) return saw_refusal(seen);
  constexpr std::int64_t kPasses = 12;
  changed(kPasses * drawn_.all_cells() + tokens * (drawn_.narrow() + options().size));
  if (seen.error && seen.error->code_text() == "other:invalid_batch")
    return reach(KvState::kInvalidBatch);
  if (moved_) reach(KvState::kMovedBeforeADecode);
  moved_ = false;
  if (seen.failed_with(Code::kFull)) {
    saw_full();
    before_full_ = before;
    compares_full_ = was_exact;
    return plan_next(Op::of(ShowState{}));
  }
  if (seen.error) return reach(KvState::kInterrupted);
  if (std::exchange(recovers_, false)) reach(KvState::kFullAndRecovered);
  saw_batch(op);
  const auto& ubatches = seen.as<Decode::Returns>().ubatches;
  if (!ubatches) return;
  if (ubatches->size() > 1) reach(KvState::kSeveralUbatches);
  for (const ShownUbatch& ubatch : *ubatches) {
    saw_ubatch(ubatch, op);
    if (!was_exact || ubatches->size() != 1 || !options().unified) continue;
    for (const std::int32_t slot : ubatch.slots_swa.value_or(ubatch.slots))
      if (seen_.used[static_cast<std::size_t>(slot)]) reach(KvState::kUsedCellTaken);
  }
}

void KvScript::saw_batch(const Decode& op) {
  if (op.seqs.size() > 64) reach(Label::k65Tokens);
  std::set<std::int64_t> named;
  for (const auto& seqs : op.seqs) {
    named.insert(seqs.begin(), seqs.end());
    if (seqs.size() > 1) reach(KvState::kTokenOfSeveral);
  }
  if (named.size() > 8) reach(Label::kNineSequencesInABatch);
  if (*named.rbegin() > 64) reach(Label::k65Sequences);
  if (!op.causal.value_or(true))
    reach(options().non_causal == NonCausal::kAll ? KvState::kNotCausal
                                                  : KvState::kNotCausalInPart);
  if (options().alibi) reach(KvState::kDistanceBias);
  if (repeats_a_position(op)) reach(KvState::kRepeatedPosition);
  if (has_overlapping_sets(op)) reach(KvState::kOverlappingSets);
  constexpr std::int32_t kBillion = 1'000'000'000;
  if (op.pos.has_value() && (*op.pos)[0] >= kBillion) reach(Label::kPositionsBeyondABillion);
  if (drawn_.has_window() && extremes(op.seqs[0][0]).max >= window()) saw_window();
}

void KvScript::saw_window() {
  if (options().window.type == WindowType::kStandard) reach(KvState::kStandardWindow);
  if (options().window.type == WindowType::kChunked) reach(KvState::kChunkedWindow);
  if (options().window.type == WindowType::kSymmetric) reach(KvState::kSymmetricWindow);
}

void KvScript::saw_ubatch(const ShownUbatch& ubatch, const Decode& op) {
  if (std::ssize(ubatch.rows) > op.n_ubatch) reach(KvState::kUbatchTooLarge);
  if (options().unified && !std::ranges::is_sorted(ubatch.slots_swa.value_or(ubatch.slots)))
    reach(KvState::kSearchWrapped);
  constexpr std::int64_t kLeastMask = 256;
  if (ubatch.n_kv > kLeastMask) reach(Label::kMaskBeyond256Cells);
  if (ubatch.n_kv < options().size) reach(Label::kMaskOfAPart);
}

void KvScript::saw(const FindSlot& op, const Observation& seen) {
  pay(4 * drawn_.all_cells());
  if (op.swa.value_or(false)) reach(KvState::kSearchedTheWindow);
  const bool adjacent = op.cont.value_or(false);
  if (seen.failed_with(Code::kFull) && adjacent) reach(KvState::kNotFoundAdjacent);
  if (!seen.error) reach(adjacent ? KvState::kFoundAdjacent : KvState::kFound);
}

void KvScript::saw(const SeqRm& op, const Observation& seen) {
  if (seen.error) return saw_refusal(seen);
  if (op.seq < 0 && seen_.in_all > 0) reach(KvState::kRemovedFromAny);
  changed(2 * drawn_.all_cells());
}

void KvScript::saw(const SeqCp& op, const Observation& seen) {
  if (seen.failed_with(Code::kNotSupported)) return reach(KvState::kPartCopyRefused);
  const bool misuse = op.src < 0 || op.dst < 0 || op.src >= kSequences || op.dst >= kSequences;
  const bool beyond_most = op.src >= options().n_seq_max || op.dst >= options().n_seq_max;
  if (seen.error && options().unified && !misuse && !beyond_most) reach(KvState::kAssertion);
  if (seen.error) return saw_refusal(seen);
  if (op.dst >= options().n_seq_max && extremes(op.src).max >= 0) reach(KvState::kCopiedBeyondMost);
  if (!options().unified && op.src != op.dst && extremes(op.src).max >= 0)
    reach(KvState::kStreamCopied);
  changed(2 * drawn_.all_cells());
}

void KvScript::saw(const SeqKeep& /*op*/, const Observation& seen) {
  if (seen.error) return saw_refusal(seen);
  if (seen_.extremes.size() > 1) reach(KvState::kOneKept);
  changed(2 * drawn_.all_cells());
}

void KvScript::saw_move_refused(const Observation& seen) {
  if (seen.failed_with(Code::kNotSupported))
    reach(moves_at_all() ? KvState::kSharedMoveRefused : KvState::kHalvesOfDifferentSizesStay);
  saw_refusal(seen);
}

void KvScript::saw(const SeqAdd& op, const Observation& seen) {
  if (seen.error) return saw_move_refused(seen);
  const Extremes of = extremes(op.seq);
  const bool moves = op.delta != 0 && op.p0 <= of.max && (op.p1 < 0 || op.p1 > of.min);
  if (moves && of.max >= 0) {
    moved_ = true;
    if (!moves_at_all()) reach(KvState::kHalvesOfDifferentSizesMove);
    if (op.p0 <= of.min && of.min + op.delta < 0) reach(KvState::kMovedBelowZero);
  }
  changed(2 * drawn_.all_cells());
}

void KvScript::saw(const SeqDiv& op, const Observation& seen) {
  if (seen.error) return saw_move_refused(seen);
  if (op.d > 1 && extremes(op.seq).max > 0) moved_ = true;
  changed(2 * drawn_.all_cells());
}

void KvScript::saw(const SeqPos& op, const Observation& seen) {
  pay(drawn_.all_cells());
  if (seen.error) return saw_refusal(seen);
  const auto& of = seen.as<SeqPos::Returns>();
  seen_.extremes[op.seq] = {of.min, of.max};
}

void KvScript::saw(const Clear& op, const Observation& seen) {
  if (seen.error) return;
  if (!op.data && seen_.in_all > 0) reach(KvState::kRowsKeptByClear);
  seen_.extremes.clear();
  changed(drawn_.all_cells());
}

void KvScript::saw(const UpdatePending& /*op*/, const Observation& /*seen*/) {
  moved_ = false;
  changed(2 * drawn_.all_cells());
}

void KvScript::saw(const StateSave& op, const Observation& seen) {
  pay(3 * drawn_.all_cells());
  if (seen.error) return saw_refusal(seen);
  saved_.push_back({op.seq, op.partial.value_or(false)});
  seen_.exact = false;  // documented, an update came first
}

void KvScript::saw(const StateLoad& op, const Observation& seen) {
  load_failed_ = seen.error && seen.error->code == Code::kOther;
  if (load_failed_) reach(KvState::kRestoreFailed);
  if (!load_failed_ && seen.error) return saw_refusal(seen);
  changed(4 * drawn_.all_cells());
  if (seen.error) return;
  const Saved& saved = saved_[static_cast<std::size_t>(op.handle)];
  reach(op.seq < 0 ? KvState::kWholeRestored : KvState::kRestored);
  if (op.seq >= 0 && op.seq != saved.seq) reach(KvState::kRestoredElsewhere);
  if (saved.partial) reach(KvState::kWindowHalfRestored);
  if (saved.altered) reach(KvState::kAlteredStateLoaded);
}

void KvScript::saw(const StateEdit& op, const Observation& seen) {
  if (seen.error) return saw_refusal(seen);
  Saved& saved = saved_[static_cast<std::size_t>(op.handle)];
  saved.altered = true;
  const bool partial = saved.partial;
  StateLoad load{.handle = op.handle, .seq = saved.seq};
  if (partial) load.partial = true;
  if (draw().percent(70)) plan(load);
}

void KvScript::saw(const ShowRows& /*op*/, const Observation& /*seen*/) {
  pay(6 * drawn_.all_cells());
}

void KvScript::saw(const ShowState& /*op*/, const Observation& seen) {
  constexpr std::int64_t kSequencesLookedAt = 32;  // 256, at a glance
  pay(kSequencesLookedAt * drawn_.all_cells());
  if (seen.error) return;
  const auto& shown = seen.as<ShowState::Returns>();
  seen_ = {.exact = true, .extremes = {}, .used = {}};
  for (const ShownSequence& one : shown.seqs) seen_.extremes[one.seq] = {one.min, one.max};
  for (const auto* half : {&shown.streams, shown.streams_swa ? &*shown.streams_swa : nullptr}) {
    if (half == nullptr) continue;
    seen_.used.assign(static_cast<std::size_t>(drawn_.narrow()), false);
    for (const ShownTable& table : *half) {
      seen_.in_all += table.cells.size();
      for (const ShownCell& cell : table.cells) {
        seen_.shared = seen_.shared || cell.seqs.size() > 1;
        if (cell.cell < drawn_.narrow()) seen_.used[static_cast<std::size_t>(cell.cell)] = true;
      }
    }
  }
  if (seen_.shared) reach(KvState::kCellsShared);
  if (compares_full_ && seen_.in_all < before_full_) reach(KvState::kPurgedByARefusedBatch);
  compares_full_ = false;
}

}  // namespace kvo::cells
