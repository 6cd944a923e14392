// The planned orders of operations of cells.kv and cells.iswa.
#include <algorithm>

#include "properties/cells/kv_script.hpp"

namespace kvo::cells {

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
