#include "properties/cells/kv_script.hpp"

#include <algorithm>
#include <set>

namespace kvo::cells {
namespace {

// Sequences whose order in a set of the followed system is that of the caller (LC-38).
bool may_be_together(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kBuckets = 13;
  return a % kBuckets != b % kBuckets;
}

std::int32_t int32_of(std::int64_t number) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(number, kMaxPosition));
}

}  // namespace

KvScript::KvScript(const CaseTerms& terms, KvCase drawn)
    : ScriptGenerator(terms),
      drawn_(std::move(drawn)),
      explicit_percent_(draw().one_of<std::uint64_t>({0, 40, 90})),
      perturb_percent_(draw().one_of<std::uint64_t>({0, 0, 4, 20})),
      several_percent_(draw().one_of<std::uint64_t>({0, 0, 25})),
      not_causal_percent_(draw().one_of<std::uint64_t>({0, 0, 20})) {}

// ---- Steps ----

Op KvScript::one_token() {
  if (is_long() && was_full_) {
    was_full_ = false;
    return Op::of(SeqRm{-1, -1, -1});
  }
  return tokens(sequence(), 1, 1);
}

Op KvScript::decode() {
  Decode batch;
  const bool several = draw().percent(several_percent_);
  batch.pos = std::vector<std::int32_t>();
  if (several) add_tokens_of_several(batch);
  if (!several || draw().percent(30)) add_tokens(batch);
  if (draw().percent(60)) mix(batch);
  if (!draw().percent(explicit_percent_)) batch.pos = std::nullopt;
  batch.n_ubatch = ubatch_of(batch);
  if (draw().percent(not_causal_percent_) && std::ssize(batch.seqs) <= batch.n_ubatch)
    batch.causal = false;
  if (draw().percent(5)) batch.causal = batch.causal.value_or(true);
  if (drawn_.real && draw().percent(20)) batch.abort_at = draw().between(0, 2);
  if (draw().percent(perturb_percent_) && batch.causal.value_or(true)) perturb(batch);
  return Op::of(std::move(batch));
}

Op KvScript::find_slot() {
  FindSlot search;
  const bool swa = drawn_.options.size_window.has_value() && draw().percent(50);
  const std::int64_t cells = swa ? drawn_.narrow() : options().size;
  const std::int64_t count = draw().percent(10) ? cells + 1 : draw().size(1, cells);
  const std::int64_t seq = sequence();
  for (std::int64_t i = 0; i < count; ++i) {
    search.pos.push_back(static_cast<std::int32_t>(i));
    search.seqs.push_back({seq});
  }
  if (draw().percent(40)) search.cont = draw().percent(85);
  if (swa) search.swa = true;
  return Op::of(std::move(search));
}

Op KvScript::seq_rm() {
  std::int64_t seq = sequence();
  if (draw().percent(8)) seq = -1;
  if (stray()) seq = beyond();
  const auto [p0, p1] = range(seq);
  return Op::of(SeqRm{seq, p0, p1});
}

Op KvScript::seq_cp() {
  std::int64_t src = sequence();
  std::int64_t dst = sequence();
  if (dst == src && draw().percent(80)) dst = (src + 1) % options().n_seq_max;
  if (stray()) (draw().percent(50) ? src : dst) = beyond();
  if (options().unified) {
    if (draw().percent(3)) dst = draw().between(options().n_seq_max, kSequences - 1);
    const auto [p0, p1] = range(src);
    return Op::of(SeqCp{src, dst, p0, p1});
  }
  SeqCp copy{src, dst, -1, -1};
  if (draw().percent(30)) {
    const std::int32_t last = int32_of(options().size - 1);
    const std::int32_t end = int32_of(extremes(src).max + 1);
    copy.p0 = draw().one_of<std::int32_t>({-1, 0, 0, last, 1});
    copy.p1 = draw().one_of<std::int32_t>({-1, 0, last, last + 1, end, 1});
  }
  return Op::of(copy);
}

Op KvScript::seq_add() {
  const std::int64_t seq = stray() ? beyond() : sequence();
  const auto [p0, p1] = range(seq);
  std::int64_t delta = draw().between(-4, 4);
  // As engines close a gap.
  if (draw().percent(40) && p0 > 0) delta = -draw().between(1, std::min<std::int64_t>(p0, 9));
  return Op::of(SeqAdd{seq, p0, p1, int32_of(delta)});
}

Op KvScript::seq_div() {
  const std::int64_t seq = stray() ? beyond() : sequence();
  const auto [p0, p1] = range(seq);
  return Op::of(SeqDiv{seq, p0, p1, stray() ? 0 : int32_of(draw().between(1, 4))});
}

Op KvScript::save() {
  StateSave save{.seq = draw().percent(25) ? -1 : sequence()};
  if (stray()) save.seq = kSequences;
  const bool partial = options().size_window && draw().percent(30);
  if (partial || draw().percent(5)) save.partial = partial;
  return Op::of(save);
}

Op KvScript::load() {
  if (saved_.empty()) return save();
  const std::size_t handle = draw().below(saved_.size());
  const Saved& saved = saved_[handle];
  StateLoad load{.handle = static_cast<std::int64_t>(handle), .seq = saved.seq};
  if (saved.seq >= 0 && draw().percent(40)) load.seq = sequence();
  if (draw().percent(8)) load.seq = draw().percent(50) ? -1 : sequence();
  if (saved.partial) load.partial = true;
  return Op::of(load);
}

// One thing of a saved state is made a lie.
Op KvScript::edit() {
  if (saved_.empty()) return save();
  StateEdit edit{.handle = static_cast<std::int64_t>(draw().below(saved_.size()))};
  if (options().size_window && draw().percent(50)) edit.swa = true;
  edit.stream = draw().between(0, options().streams() - 1);
  const std::uint64_t what = draw().below(4);
  if (what == 0)
    edit.cells = draw().between(0, 4);
  else
    edit.cell = draw().between(0, 2);
  if (what == 1) edit.pos = int32_of(draw().between(-1, 9));
  if (what == 2) edit.seqs = std::vector<std::int64_t>();
  if (what == 3) edit.seqs = std::vector<std::int64_t>{sequence()};
  if (what == 3 && options().n_seq_max > 1 && draw().percent(50)) edit.seqs = {{0, 1}};
  return Op::of(std::move(edit));
}

// ---- Drawing ----

std::int64_t KvScript::sequence() {
  return drawn_.sequences[draw().below(drawn_.sequences.size())];
}

Extremes KvScript::extremes(std::int64_t seq) const {
  const auto found = seen_.extremes.find(seq);
  return found == seen_.extremes.end() ? Extremes() : found->second;
}

std::int32_t KvScript::next_position(std::int64_t seq) {
  const std::int64_t max = extremes(seq).max;
  if (max >= 0) return int32_of(max + 1);
  return draw().percent(70) ? drawn_.first_position : 0;
}

std::pair<std::int32_t, std::int32_t> KvScript::range(std::int64_t seq) {
  const Extremes of = extremes(seq);
  const auto at = [&] {
    return int32_of(draw().between(std::max<std::int64_t>(of.min, 0), of.max));
  };
  std::int32_t p0 = at();
  std::int32_t p1 = at();
  if (p1 < p0) std::swap(p0, p1);
  switch (draw().below(8)) {
    case 0:
    case 1:
      return {-1, -1};
    case 2:
    case 3:
      return {p0, -1};
    case 4:
      return {draw().percent(50) ? -1 : 0, p1};
    case 5:
      return draw().one_of<std::pair<std::int32_t, std::int32_t>>(
          {{p0, p0}, {p1, p0}, {p1 + 1, p1 + 3}, {0, p1 + 2}});
    default:
      return {p0, p1 + 1};
  }
}

std::int64_t KvScript::token_count() {
  const std::int64_t cells = drawn_.narrow();
  if (is_long()) return 1;
  if (is_large() && draw().percent(40)) return draw().edge(4, std::min<std::int64_t>(cells, 1'025));
  if (draw().percent(4)) return draw().between(cells - 1, cells + 2);
  return draw().percent(40) ? 1 : draw().between(1, 4);
}

// Tokens of some sequences, one sequence after another.
void KvScript::add_tokens(Decode& batch) {
  const std::int64_t most = is_large() && draw().percent(25) ? options().n_seq_max : 3;
  const std::int64_t count = draw().between(1, std::min(most, options().n_seq_max));
  const std::int64_t first = draw().between(0, options().n_seq_max - count);
  const bool neighbours = draw().percent(50) || count > 4;
  std::set<std::int64_t> done;
  for (const auto& seqs : batch.seqs) done.insert(seqs.begin(), seqs.end());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t seq = neighbours ? first + i : sequence();
    if (!done.insert(seq).second) continue;
    const std::int32_t from = next_position(seq);
    const std::int64_t tokens = count > 4 ? draw().between(1, 3) : token_count();
    for (std::int64_t t = 0; t < tokens; ++t) {
      batch.pos.value->push_back(int32_of(from + t));
      batch.seqs.push_back({seq});
    }
  }
}

// Tokens that are of several sequences, and some that are of one of these.
void KvScript::add_tokens_of_several(Decode& batch) {
  const std::int64_t a = sequence();
  std::vector<std::int64_t> together{a};
  for (const std::int64_t seq : drawn_.sequences) {
    const bool fits = std::ranges::all_of(
        together, [&](std::int64_t other) { return may_be_together(seq, other); });
    if (fits && extremes(seq) == extremes(a) && draw().percent(70)) together.push_back(seq);
  }
  if (draw().percent(50)) std::ranges::reverse(together);
  const std::int32_t from = next_position(a);
  const std::int64_t count = draw().between(1, 3);
  for (std::int64_t t = 0; t < count; ++t) {
    batch.pos.value->push_back(int32_of(from + t));
    batch.seqs.push_back(together);
    if (draw().percent(4)) batch.seqs.back().push_back(together.front());
  }
  for (const std::int64_t seq : together)
    if (draw().percent(25)) {
      batch.pos.value->push_back(int32_of(from + count));
      batch.seqs.push_back({seq});
    }
}

// The tokens of sequences in turns: those of each stay in order.
void KvScript::mix(Decode& batch) {
  std::vector<std::size_t> order(batch.seqs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return (*batch.pos)[i]; });
  Decode mixed;
  mixed.pos = std::vector<std::int32_t>();
  for (const std::size_t i : order) {
    mixed.pos.value->push_back((*batch.pos)[i]);
    mixed.seqs.push_back(std::move(batch.seqs[i]));
  }
  batch.pos = std::move(mixed.pos);
  batch.seqs = std::move(mixed.seqs);
}

// Makes a batch one that LC-31 refuses, or a surprising one that passes.
void KvScript::perturb(Decode& batch) {
  if (batch.seqs.empty()) return;
  const std::size_t i = draw().below(batch.seqs.size());
  const std::uint64_t what = draw().below(6);
  if (what == 0) {
    batch.pos = std::nullopt;
    batch.seqs.clear();
  } else if (what == 1) {
    batch.seqs[i] = {draw().percent(50) ? options().n_seq_max : -1};
  } else if (what == 2 && options().n_seq_max > 2 && drawn_.sequences.size() > 2) {
    // Overlapping sets of sequences that have nothing yet pass.
    batch.pos = std::vector<std::int32_t>{0, 1, 2};
    batch.seqs = {{0, 1}, {1}, {1, 2}};
    if (draw().percent(50)) batch.pos = std::vector<std::int32_t>{0, 0, 1};
    if (draw().percent(50)) {
      batch.pos = std::vector<std::int32_t>{0, 1};
      batch.seqs = {{0, 1}, {1, 2}};
    }
  } else if (batch.pos.has_value() && what == 3) {
    (*batch.pos.value)[i] += 1;
  } else if (batch.pos.has_value() && what == 4 && (*batch.pos)[i] > 0) {
    (*batch.pos.value)[i] -= 1;
  } else if (batch.pos.has_value()) {
    batch.pos.value->push_back((*batch.pos)[i]);
    batch.seqs.push_back(batch.seqs[i]);
  }
}

std::int64_t KvScript::ubatch_of(const Decode& batch) {
  const auto all = std::max<std::int64_t>(std::ssize(batch.seqs), 1);
  if (draw().percent(50)) return all + draw().between(0, 3);
  if (is_large()) return draw().edge(std::max<std::int64_t>(all / 8, 2), all);
  return draw().between(1, 4);
}

// ---- what the script follows ----

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

// ---- planned orders of operations ----

bool KvScript::choose_two() {
  a_ = sequence();
  b_ = a_;
  for (const std::int64_t seq : drawn_.sequences)
    if (seq != a_ && (b_ == a_ || draw().percent(50))) b_ = seq;
  return a_ != b_;
}

Op KvScript::tokens(std::int64_t seq, std::int64_t count, std::int64_t n_ubatch) {
  Decode batch;
  batch.seqs.assign(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)), {seq});
  batch.n_ubatch = std::max<std::int64_t>(n_ubatch, 1);
  return Op::of(std::move(batch));
}

// The first ubatches find room, a later one does not.
Op KvScript::tokens_that_do_not_fit(std::int64_t seq) {
  const std::int64_t cells = drawn_.narrow();
  if (window() > 1) return tokens(seq, 2 * cells, cells);
  return tokens(seq, cells + 1, draw().between(1, 3));
}

// What is loaded into a stream must not fall to a copy that was asked for before (LC-66).
std::optional<Op> KvScript::loaded_under_a_pending_copy(std::size_t number) {
  if (number == 0 && (!choose_two() || options().unified)) return std::nullopt;
  switch (number) {
    case 0:
      return tokens(a_, 2, 4);
    case 1:
      return Op::of(StateSave{a_});
    case 2:
      return tokens(a_, 1, 1);
    case 3:
      return Op::of(SeqCp{a_, b_, -1, -1});
    case 4:
      return load_last(b_);
    case 5:
      return state();
    default:
      return number == 6 ? update() : rows();
  }
}

std::optional<Op> KvScript::refused_half_way(std::size_t number) {
  if (number == 0) {
    choose_two();
    return draw().percent(50) ? Op::of(Clear{}) : remove_all(a_);
  }
  if (number == 1) return tokens_that_do_not_fit(a_);
  if (number == 2) return was_full_ ? std::optional(state()) : std::nullopt;
  if (number == 3) return rows();
  return number == 4 ? tokens(a_, 1, 1) : state();
}

// Cells whose order of positions is not their order of search, and a batch that does not fit
// (LC-63).
std::optional<Op> KvScript::purged_then_refused(std::size_t number) {
  const std::int64_t cells = drawn_.narrow();
  constexpr std::int64_t kMostCellsTried = 16;
  if (number == 0 && (!choose_two() || !options().unified || window() < 3 || cells < window() + 2))
    return std::nullopt;
  if (cells > kMostCellsTried) return std::nullopt;
  // One less than there is room for: what is left lies below what is overwritten, and goes with it.
  const std::int64_t u = cells - window();
  switch (number) {
    case 0:
      return Op::of(Clear{});
    case 1:
      return tokens(b_, 1, 1);
    case 2:
      return tokens(a_, cells - 1, 1);
    case 3:
      return tokens(a_, draw().between(1, cells - 2), 1);
    case 4:
      return remove_all(b_);
    case 5:
      return tokens(a_, 1, 1);
    case 6:
      return tokens(b_, 2 * u, u);
    default:
      return was_full_ ? std::optional(state()) : std::nullopt;
  }
}

// Where the next search begins, after a batch that began with another stream than 0 (LC-37).
std::optional<Op> KvScript::head_after_full(std::size_t number) {
  if (number == 0) {
    if (!choose_two() || options().unified) return std::nullopt;
    if (a_ == 0) std::swap(a_, b_);
    return tokens(a_, 2, 2);
  }
  if (number == 1) return tokens(0, draw().between(1, 3), 4);
  if (number == 2) return tokens_that_do_not_fit(a_);
  if (number == 3) return was_full_ ? std::optional(tokens(a_, 1, 1)) : std::nullopt;
  return state();
}

std::optional<Op> KvScript::shifted_then_saved(std::size_t number) {
  if (number == 0) choose_two();
  switch (number) {
    case 0:
      return remove_all(a_);
    case 1:
      return tokens(a_, 3, 4);
    case 2:
      return Op::of(SeqAdd{a_, 1, -1, 2});
    case 3:
      return Op::of(StateSave{a_});
    case 4:
      return load_last(b_);
    default:
      return number == 5 ? update() : rows();
  }
}

std::optional<Op> KvScript::divided_then_turned(std::size_t number) {
  if (number == 0) choose_two();
  switch (number) {
    case 0:
      return remove_all(a_);
    case 1:
      return tokens(a_, 4, 4);
    case 2:
      return Op::of(SeqDiv{a_, -1, -1, 2});
    case 3:
      return update();
    case 4:
      return rows();
    default:
      return number == 5 ? tokens(a_, 1, 1) : rows();
  }
}

// What an engine does whose context is full: the first tokens stay, those after them go.
std::optional<Op> KvScript::context_shifted(std::size_t number) {
  if (number == 0) choose_two();
  switch (number) {
    case 0:
      return remove_all(a_);
    case 1:
      return tokens(a_, std::min<std::int64_t>(drawn_.narrow(), 5), 5);
    case 2:
      return Op::of(SeqRm{a_, 1, 3});
    case 3:
      return Op::of(SeqAdd{a_, 3, -1, -2});
    case 4:
      return tokens(a_, 2, 2);
    default:
      return number == 5 ? rows() : state();
  }
}

std::optional<Op> KvScript::shared_context_shifted(std::size_t number) {
  if (number == 0 && (!choose_two() || !options().unified)) return std::nullopt;
  switch (number) {
    case 0:
      return remove_all(a_);
    case 1:
      return tokens(a_, 4, 4);
    case 2:
      return Op::of(SeqCp{a_, b_, -1, -1});
    case 3:
      return Op::of(SeqRm{a_, 1, 2});
    case 4:
      return Op::of(SeqAdd{a_, 2, -1, -1});
    case 5:
      return Op::of(SeqPos{b_});
    default:
      return number == 6 ? tokens(b_, 1, 1) : rows();
  }
}

std::optional<Op> KvScript::saved_cleared_loaded(std::size_t number) {
  switch (number) {
    case 0:
      return Op::of(StateSave{-1});
    case 1:
      return Op::of(Clear{true});
    case 2:
      return load_last(-1);
    case 3:
      return state();
    default:
      return number == 4 ? rows() : Op::of(StateSave{-1});
  }
}

// The window half, or the only one, has no room for what is loaded (LC-74, LC-76).
std::optional<Op> KvScript::load_without_room(std::size_t number) {
  constexpr std::int64_t kMostCellsTried = 40;
  const std::int64_t cells = drawn_.narrow();
  const auto count = std::ssize(drawn_.sequences);
  if (cells > kMostCellsTried || count < 2) return std::nullopt;
  // As many as a window keeps; without one, as many as fill the cells.
  const std::int64_t kept = window() > 0 ? window() : cells / (count - 1);
  if (number == 0) return Op::of(Clear{});
  if (number == 1) return tokens(drawn_.sequences[0], std::min(kept, cells), 1);
  if (number == 2) return Op::of(StateSave{drawn_.sequences[0]});
  if (number == 3) return remove_all(drawn_.sequences[0]);
  if (number <= 6) {
    const auto which = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(number) - 3, count - 1);
    return tokens(drawn_.sequences[static_cast<std::size_t>(which)], std::min(kept, cells), 1);
  }
  if (number == 7) return load_last(drawn_.sequences[0]);
  return load_failed_ ? std::optional(rows()) : std::nullopt;
}

std::optional<Op> KvScript::tokens_of_several_parted(std::size_t number) {
  constexpr std::int64_t kBuckets = 13;
  if (number == 0 && (!choose_two() || !options().unified || a_ % kBuckets == b_ % kBuckets))
    return std::nullopt;
  Decode both;
  both.seqs = {{a_, b_}, {a_, b_}};
  both.n_ubatch = 2;
  switch (number) {
    case 0:
      return Op::of(Clear{});
    case 1:
      return Op::of(both);
    case 2:
      return tokens(a_, 1, 1);
    case 3:
      return Op::of(both);
    case 4:
      return Op::of(SeqRm{a_, 1, -1});
    default:
      return number == 5 ? tokens(b_, 1, 1) : state();
  }
}

// Two cells of a sequence at its largest position, one of them shared.
std::optional<Op> KvScript::equal_extremes(std::size_t number) {
  if (number == 0 && (!choose_two() || !options().unified)) return std::nullopt;
  switch (number) {
    case 0:
      return remove_all(a_);
    case 1:
      return tokens(a_, 4, 4);
    case 2:
      return Op::of(SeqAdd{a_, 3, -1, -1});
    case 3:
      return Op::of(SeqCp{a_, b_, 2, 3});
    case 4:
      return Op::of(SeqPos{a_});
    case 5:
      return tokens(a_, 1, 1);
    default:
      return number == 6 ? Op::of(SeqRm{a_, 2, 3}) : state();
  }
}

std::optional<Op> KvScript::copy_of_a_copy(std::size_t number) {
  if (number == 0 && (!choose_two() || options().unified || drawn_.sequences.size() < 3))
    return std::nullopt;
  std::int64_t c = 0;
  for (const std::int64_t seq : drawn_.sequences)
    if (seq != a_ && seq != b_) c = seq;
  switch (number) {
    case 0:
      return tokens(a_, 2, 2);
    case 1:
      return tokens(b_, 1, 1);
    case 2:
      return Op::of(SeqCp{a_, b_, -1, -1});
    case 3:
      return Op::of(SeqCp{b_, c, 0, -1});
    case 4:
      return Op::of(SeqRm{b_, 1, -1});
    default:
      return number == 5 ? update() : rows();
  }
}

std::optional<Op> KvScript::cleared_under_a_pending_copy(std::size_t number) {
  if (number == 0 && (!choose_two() || options().unified)) return std::nullopt;
  switch (number) {
    case 0:
      return tokens(a_, 2, 2);
    case 1:
      return Op::of(SeqCp{a_, b_, -1, -1});
    case 2:
      return Op::of(Clear{draw().percent(50)});
    case 3:
      return tokens(b_, 1, 1);
    default:
      return number == 4 ? update() : rows();
  }
}

}  // namespace kvo::cells
