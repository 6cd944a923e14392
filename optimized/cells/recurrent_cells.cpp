#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "optimized/cells/batch_plan.hpp"
#include "optimized/cells/caches.hpp"

namespace kvo::optimized {
namespace {

using cells::Quirk;
using cells::refused;

/// States in sets of bits: which cells are free, and who owns each. A slot is always found, so that
/// nothing is rehearsed; all memory is taken at the beginning or kept.
class RecurrentCells final : public cells::RecurrentMemory {
 public:
  /// Throws std::bad_alloc.
  explicit RecurrentCells(const cells::RecurrentOptions& options)
      : RecurrentMemory(options),
        states_(static_cast<std::size_t>(options.n_seq_max)),
        tails_(states_.size(), -1),
        rollback_(states_.size()) {
    seqs_.reserve(states_.size());
    copy_.reserve(states_.size());
  }

  [[nodiscard]] cells::Extremes seq_pos(std::int64_t seq) const override {
    if (seq < 0 || seq >= size()) return {};
    // A sequence owns its tail alone.
    const std::int32_t cell = tail(static_cast<std::int32_t>(seq));
    if (cell < 0) return {};
    return {at(cell).pos, std::max(at(cell).pos, -1)};
  }
  void clear(bool /*data*/) override {
    std::ranges::fill(states_, State());
    std::ranges::fill(tails_, -1);
    std::ranges::fill(rollback_, 0);
    taken_ = {};
    head_ = used_ = 0;
  }
  [[nodiscard]] cells::ShownStates shown() const override {
    cells::ShownStates shown{.head = head_, .used = used_, .rollback = rollback_};
    shown.cells.resize(states_.size());
    for (std::int32_t i = 0; i < size(); ++i) {
      cells::ShownState& state = shown.cells[static_cast<std::size_t>(i)];
      state.cell = i;
      state.pos = at(i).pos;
      at(i).owners.each([&](std::int32_t seq) { state.seqs.push_back(seq); });
      state.src = at(i).src;
      state.tail = tail(i);
    }
    return shown;
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    OwnerSet owned;
    for (std::int32_t i = 0; i < size(); ++i) {
      if (taken_.has(i) != (at(i).owners != OwnerSet()))
        return fmt::format("cell {} is taken without owners, or owned and free", i);
      if (owned.overlaps(at(i).owners)) return "a sequence owns two cells";
      owned.insert(at(i).owners);
    }
    for (std::int32_t seq = 0; seq < size(); ++seq) {
      const std::int32_t cell = tail(seq);
      if (cell < 0 ? owned.has(seq) : !at(cell).owners.has(seq))
        return fmt::format("sequence {} does not own its tail", seq);
    }
    return std::nullopt;
  }

 protected:
  /// Errors  as RecurrentMemory::do_decode.
  Status do_decode(const cells::Batch& batch, const cells::SeeStates& see) override {
    if (const Status valid = plan_.read(batch, options().n_seq_max, options().quirks); !valid)
      return valid;
    for (const std::int32_t seq : plan_.named()) plan_.set_stored(seq, seq_pos(seq));
    if (const Status valid = plan_.check(); !valid) return valid;
    if (plan_.lowest_pos() < 0) return refused(fmt::format("position {}", plan_.lowest_pos()));
    const std::int64_t keep_tail = options().n_rs_seq > 0 ? options().n_rs_seq + 1 : 0;
    if (const Status divided = plan_.split_sequential(batch.n_ubatch, keep_tail); !divided)
      return divided;
    std::size_t begin = 0;
    for (const std::size_t end : plan_.ends()) place(std::exchange(begin, end), end, see);
    return {};
  }
  bool do_seq_rm(std::int32_t seq, const cells::Range& range) override {
    if (range.begin == 0 && range.end == cells::kMaxPosition) rollback(seq) = 0;
    const std::int32_t cell = tail_in(seq, range);
    if (cell >= 0 && range.begin > 0) {
      const std::int64_t back = at(cell).pos - (std::int64_t{range.begin} - 1);
      if (rollback(seq) != 0 || back > options().n_rs_seq) return false;
      at(cell).pos = range.begin - 1;
      rollback(seq) = back;
      if (!has(Quirk::kOthersStayAhead))
        at(cell).owners.each([&](std::int32_t other) { rollback(other) = back; });
      return true;
    }
    if (cell < 0) {
      const bool older =
          tail(seq) >= 0 && range.begin < range.end && range.end <= at(tail(seq)).pos;
      return !older || has(Quirk::kOlderStayUnsaid);
    }
    tail(seq) = -1;
    if (leave(cell, seq)) head_ = std::min<std::int64_t>(head_, cell);
    return true;
  }
  void do_seq_cp(std::int32_t src, std::int32_t dst) override {
    if (tail(dst) >= 0) leave(tail(dst), dst);
    tail(dst) = tail(src);
    if (tail(src) >= 0) at(tail(src)).owners.insert(dst);
    if (!has(Quirk::kCopyIsAhead)) rollback(dst) = rollback(src);
  }
  void do_seq_keep(std::int32_t seq) override {
    const std::int32_t kept = tail(seq);
    std::ranges::fill(tails_, -1);
    tail(seq) = kept;
    for (std::int32_t i = 0; i < size(); ++i) {
      State& state = at(i);
      if (i == kept) {
        state.owners = {};
        state.owners.insert(seq);
        continue;
      }
      if (state.pos >= 0) --used_;
      state = {};
      taken_.erase(i);
      head_ = std::min<std::int64_t>(head_, i);
    }
  }
  /// Errors  as RecurrentMemory::do_seq_add.
  Status do_seq_add(std::int32_t seq, const cells::Range& range, std::int32_t delta) override {
    const std::int32_t cell = tail_in(seq, range);
    if (cell < 0) return {};
    if (is_shared(cell) && !has(Quirk::kSharedStateMoves))
      return fail(Code::kNotSupported, "the state is shared");
    const std::int64_t pos = std::int64_t{at(cell).pos} + delta;
    if (pos > cells::kMaxPosition) return refused(fmt::format("delta {} overflows", delta));
    if (pos < 0 && !has(Quirk::kStateBelowZero)) {
      do_seq_rm(seq, {0, cells::kMaxPosition});
    } else {
      at(cell).pos = static_cast<std::int32_t>(pos);
    }
    return {};
  }
  /// Errors  as RecurrentMemory::do_seq_div.
  Status do_seq_div(std::int32_t seq, const cells::Range& range, std::int32_t d) override {
    const std::int32_t cell = tail_in(seq, range);
    if (cell < 0) return {};
    if (is_shared(cell) && !has(Quirk::kSharedStateMoves))
      return fail(Code::kNotSupported, "the state is shared");
    if (d < 1) return refused(fmt::format("d {}", d));
    at(cell).pos /= d;
    return {};
  }

 private:
  struct State {
    std::int32_t pos = -1;
    std::int32_t src = -1;
    OwnerSet owners = {};
  };
  /// The smallest and largest tail of an ubatch.
  struct Tails {
    std::int32_t low = 0;
    std::int32_t high = 0;
  };

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(states_.size()); }
  [[nodiscard]] State& at(std::int32_t cell) { return states_[static_cast<std::size_t>(cell)]; }
  [[nodiscard]] const State& at(std::int32_t cell) const {
    return states_[static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] std::int32_t& tail(std::int32_t seq) {
    return tails_[static_cast<std::size_t>(seq)];
  }
  [[nodiscard]] std::int32_t tail(std::int32_t seq) const {
    return tails_[static_cast<std::size_t>(seq)];
  }
  [[nodiscard]] std::int64_t& rollback(std::int32_t seq) {
    return rollback_[static_cast<std::size_t>(seq)];
  }
  /// The tail of a sequence, if its position is in range; -1 otherwise.
  [[nodiscard]] std::int32_t tail_in(std::int32_t seq, const cells::Range& range) const {
    const std::int32_t cell = tail(seq);
    return cell >= 0 && range.has(at(cell).pos) ? cell : -1;
  }
  /// Whether a sequence is not the only owner of a cell.
  [[nodiscard]] bool is_shared(std::int32_t cell) const { return at(cell).owners.count() > 1; }
  [[nodiscard]] std::int32_t free_from(std::int64_t begin) const {
    const auto first = static_cast<std::int32_t>(begin % size());
    if (const std::int32_t found = taken_.next_missing(first); found < size()) return found;
    const std::int32_t found = taken_.next_missing(0);
    return found < size() ? found : first;
  }
  bool leave(std::int32_t cell, std::int32_t seq) {
    State& left = at(cell);
    left.owners.erase(seq);
    if (left.owners != OwnerSet()) return false;
    left = {};
    taken_.erase(cell);
    --used_;
    return true;
  }
  // Gives each sequence of the ubatch a tail that it alone owns (LC-93).
  [[nodiscard]] Tails find_tails() {
    const std::int64_t k = std::ssize(seqs_);
    if (head_ > used_ + 2 * k) head_ = 0;
    std::int32_t free = free_from(head_);
    Tails tails{size(), -1};
    for (const std::int32_t seq : seqs_) {
      const std::int32_t old = tail(seq);
      if (old < 0 || is_shared(old)) {
        tail(seq) = free;
        if (old >= 0) {
          at(free) = {at(old).pos, at(old).src};
          at(free).owners.insert(seq);
          at(old).owners.erase(seq);
          taken_.insert(free);
        }
        if (seq != seqs_.back()) free = free_from(std::int64_t{free} + 1);
      }
      tails.low = std::min(tails.low, tail(seq));
      tails.high = std::max(tails.high, tail(seq));
    }
    return tails;
  }
  // Exchanges two cells, and the tails that name them (LC-94).
  void exchange(std::int32_t a, std::int32_t b) {
    if (a == b) return;
    std::swap(at(a), at(b));
    const bool a_taken = taken_.has(a);
    const bool b_taken = taken_.has(b);
    taken_.put(a, b_taken);
    taken_.put(b, a_taken);
    for (std::int32_t& one : tails_) one = one == a ? b : one == b ? a : one;
  }
  void place(std::size_t begin, std::size_t end, const cells::SeeStates& see) {
    const auto rows = plan_.rows().subspan(begin, end - begin);
    const auto token_of = [&](std::int32_t row) -> const BatchPlan::Token& {
      return plan_.tokens()[static_cast<std::size_t>(row)];
    };
    seqs_.clear();
    for (const std::int32_t row : rows)
      if (seqs_.empty() || seqs_.back() != token_of(row).primary)
        seqs_.push_back(token_of(row).primary);
    const Tails tails = find_tails();
    for (std::size_t x = 0; x < seqs_.size(); ++x)
      exchange(tails.low + static_cast<std::int32_t>(x), tail(seqs_[x]));
    for (const std::int32_t row : rows) at(tail(token_of(row).primary)).pos = token_of(row).pos;
    for (const std::int32_t seq : seqs_) {
      at(tail(seq)).owners = {};
      at(tail(seq)).owners.insert(seq);
      taken_.insert(tail(seq));
    }
    OwnerSet sources;  // cells that are someone's src
    for (const State& state : states_)
      if (state.src >= 0) sources.insert(state.src);
    std::int32_t zero = sources.next_missing(tails.low);
    if (zero > tails.high) zero = -1;
    copy_.clear();
    for (std::int32_t i = tails.low; i <= tails.high; ++i) {
      State& state = at(i);
      std::int64_t from = state.src < 0 ? zero : state.src;
      state.src = i;
      if (taken_.has(i)) from += size() * std::exchange(rollback(state.owners.first()), 0);
      copy_.push_back(from);
    }
    head_ = tails.low;
    used_ = taken_.count();
    if (see)
      see({.rows = rows,
           .head = tails.low,
           .n = tails.high - tails.low + 1,
           .zero = zero,
           .copy = copy_});
  }

  std::vector<State> states_;
  std::vector<std::int32_t> tails_;     ///< [sequence]
  std::vector<std::int64_t> rollback_;  ///< [sequence]
  OwnerSet taken_;                      ///< cells with owners
  std::int64_t head_ = 0;
  std::int64_t used_ = 0;
  BatchPlan plan_;
  std::vector<std::int32_t> seqs_;  ///< of the ubatch in the making
  std::vector<std::int64_t> copy_;  ///< PlacedStates::copy of it
};

}  // namespace

Result<std::unique_ptr<cells::RecurrentMemory>> make_recurrent_cells(
    const cells::RecurrentOptions& options) {
  return std::make_unique<RecurrentCells>(options);
}

}  // namespace kvo::optimized
