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

}  // namespace kvo::cells
