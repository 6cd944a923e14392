#include "optimized/cells/batch_plan.hpp"

#include <algorithm>
#include <limits>

#include "reference/cells/batch_tokens.hpp"

namespace kvo::optimized {

using cells::Quirk;

Status BatchPlan::read(const cells::Batch& batch, std::int64_t n_seq_max, QuirkSet<Quirk> quirks) {
  quirks_ = quirks;
  ++stamp_;
  tokens_.clear();
  seqs_.clear();
  named_.clear();
  if (batch.tokens() == 0) return fail_other("invalid_batch");
  counts_positions_ = !batch.positions;
  std::size_t read = 0;
  for (std::size_t i = 0; i < batch.tokens(); ++i) {
    const auto begin = static_cast<std::uint32_t>(seqs_.size());
    for (; read < batch.ends[i]; ++read) {
      const std::int64_t wide = batch.sequences[read];
      if (wide < 0 || wide >= n_seq_max) return fail_other("invalid_batch");
      const auto seq = static_cast<std::int32_t>(wide);
      State& state = of(seq);
      if (state.stamp != stamp_) {
        state = {.stamp = stamp_};
        named_.push_back(seq);
      }
      const auto its = std::span<const std::int32_t>(seqs_).subspan(begin);
      if (std::ranges::find(its, seq) != its.end()) continue;
      seqs_.push_back(seq);
      ++state.count;
    }
    const std::int32_t primary = quirks.has(Quirk::kLastIsPrimary) ? seqs_.back() : seqs_[begin];
    tokens_.push_back({.pos = counts_positions_ ? 0 : (*batch.positions)[i],
                       .primary = primary,
                       .begin = begin,
                       .end = static_cast<std::uint32_t>(seqs_.size())});
  }
  return {};
}

Status BatchPlan::fill_positions() {
  for (Token& token : tokens_) {
    State& first = of(seqs_[token.begin]);
    if (first.next < 0) first.next = first.stored.max + 1;
    if (first.next > cells::kMaxPosition) return cells::refused("no position is left");
    token.pos = static_cast<std::int32_t>(first.next++);
  }
  return {};
}

// Whether a sequence, whose earlier tokens were asked about, goes on with this position (LC-31).
bool BatchPlan::goes_on(std::int32_t seq, std::int32_t pos) {
  State& state = of(seq);
  if (state.begun) {
    const std::int64_t step = pos - state.last;
    state.last = pos;
    return step == 1 || (step == 0 && quirks_.has(Quirk::kRepeatedPositions));
  }
  state.begun = true;
  state.last = pos;
  if (state.stored.max >= 0) return pos == state.stored.max + 1;
  return pos >= 0 || quirks_.has(Quirk::kNegativePosition);
}

// Whether no two sets overlap without one containing the other.
bool BatchPlan::sets_are_nested() const {
  std::vector<OwnerSet> different;  // a family that is nested has fewer than 2 kSequences
  for (const Token& token : tokens_) {
    if (token.end - token.begin < 2) continue;
    OwnerSet set;
    for (const std::int32_t seq : seqs_of(token)) set.insert(seq);
    bool known = false;
    for (const OwnerSet& other : different) {
      known = known || other == set;
      if (set.overlaps(other) && !set.contains(other) && !other.contains(set)) return false;
    }
    if (!known) different.push_back(set);
  }
  return true;
}

Status BatchPlan::check() {
  if (counts_positions_)
    if (const Status filled = fill_positions(); !filled) return filled;
  lowest_pos_ = std::numeric_limits<std::int32_t>::max();
  for (const Token& token : tokens_) {
    lowest_pos_ = std::min(lowest_pos_, token.pos);
    for (const std::int32_t seq : seqs_of(token)) {
      if (!goes_on(seq, token.pos)) return fail_other("invalid_batch");
      if (of(seq).stored != of(token.primary).stored) return fail_other("invalid_batch");
    }
  }
  if (has_shared_token() && !quirks_.has(Quirk::kOverlappingSets) && !sets_are_nested())
    return fail_other("invalid_batch");
  return {};
}

void BatchPlan::split_in_order(std::int64_t n_ubatch) {
  const std::size_t count = tokens_.size();
  rows_.resize(count);
  for (std::size_t i = 0; i < count; ++i) rows_[i] = static_cast<std::int32_t>(i);
  ends_.clear();
  const std::size_t most =
      n_ubatch < std::ssize(tokens_) ? static_cast<std::size_t>(n_ubatch) : count;
  for (std::size_t end = most; end < count; end += most) ends_.push_back(end);
  ends_.push_back(count);
}

// Takes the sequence of `row`, and then of each later row whose sequence has the next number
// (LC-33 (a)).
void BatchPlan::take_shares(std::size_t row, std::int64_t most) {
  shares_.clear();
  std::int32_t seq = tokens_[row].primary;
  auto behind = static_cast<std::int32_t>(row);
  while (true) {
    shares_.push_back(seq);
    if (std::ssize(shares_) >= most || ++seq == cells::kSequences) return;
    const State& next = of(seq);
    if (next.stamp != stamp_) return;
    const auto left = std::span<const std::int32_t>(sequence_rows_)
                          .subspan(next.cursor, next.behind - next.cursor);
    const auto later = std::ranges::upper_bound(left, behind);
    if (later == left.end()) return;
    behind = *later;
  }
}

// The last `keep` tokens of a sequence are not parted (LC-97).
void BatchPlan::keep_tails(std::int64_t n_ubatch, std::size_t keep) {
  const auto parted = std::ranges::find_if(shares_, [&](std::int32_t seq) {
    const std::size_t rest = of(seq).behind - of(seq).cursor - of(seq).taken;
    return rest != 0 && rest < keep;
  });
  const auto whole = parted - shares_.begin();
  shares_.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(whole, 1)));
  if (whole > 0) return;
  State& first = of(shares_.front());
  const std::size_t left = first.behind - first.cursor;
  first.taken = static_cast<std::int64_t>(left) <= n_ubatch ? left : left - keep;
}

Status BatchPlan::split_sequential(std::int64_t n_ubatch, std::int64_t keep_tail) {
  if (has_shared_token()) return fail(Code::kFull, "a token of several sequences");
  if (keep_tail > 0 && n_ubatch <= keep_tail)
    return cells::refused("n_ubatch is not above n_rs_seq + 1");
  const std::size_t count = tokens_.size();
  sequence_rows_.resize(count);
  rows_.clear();
  rows_.reserve(count);
  ends_.clear();
  shares_.reserve(named_.size());
  std::size_t placed = 0;
  for (const std::int32_t seq : named_) {
    State& state = of(seq);
    state.first = state.cursor = state.behind = placed;
    placed += state.count;
  }
  for (std::size_t i = 0; i < count; ++i)
    sequence_rows_[of(tokens_[i].primary).behind++] = static_cast<std::int32_t>(i);
  const std::int64_t most = n_ubatch < cells::kMostTokens && quirks_.has(Quirk::kUbatchTooLarge)
                                ? n_ubatch + 1
                                : n_ubatch;
  std::size_t row = 0;
  while (rows_.size() < count) {
    // Rows of a sequence are taken in order: those before its next one are taken.
    while (true) {
      const State& state = of(tokens_[row].primary);
      if (state.cursor < state.behind &&
          sequence_rows_[state.cursor] <= static_cast<std::int32_t>(row))
        break;
      ++row;
    }
    take_shares(row, most);
    std::size_t fewest = count;
    for (const std::int32_t seq : shares_)
      fewest = std::min(fewest, of(seq).behind - of(seq).cursor);
    const auto room = static_cast<std::size_t>(n_ubatch) / shares_.size();
    for (const std::int32_t seq : shares_)
      of(seq).taken = std::min(fewest, std::max<std::size_t>(room, 1));
    if (keep_tail > 0) keep_tails(n_ubatch, static_cast<std::size_t>(keep_tail));
    for (const std::int32_t seq : shares_) {
      State& state = of(seq);
      const auto its = sequence_rows_.begin() + static_cast<std::ptrdiff_t>(state.cursor);
      rows_.insert(rows_.end(), its, its + static_cast<std::ptrdiff_t>(state.taken));
      state.cursor += state.taken;
    }
    ends_.push_back(rows_.size());
  }
  return {};
}

void BatchPlan::prepare_sets(std::int64_t n_ubatch) {
  // A second try that few batches need: the contract's own division, which allocates.
  std::vector<cells::Token> tokens(tokens_.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto its = seqs_of(tokens_[i]);
    tokens[i].seqs.assign(its.begin(), its.end());
  }
  const auto ubatches = cells::split_equal(
      tokens, {.n_ubatch = n_ubatch, .one_too_many = quirks_.has(Quirk::kUbatchTooLarge)});
  set_rows_.clear();
  set_ends_.clear();
  for (const cells::Ubatch& ubatch : *ubatches) {
    set_rows_.insert(set_rows_.end(), ubatch.begin(), ubatch.end());
    set_ends_.push_back(set_rows_.size());
  }
}

}  // namespace kvo::optimized
