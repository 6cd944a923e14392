// The history of a ring: its window by definition, not by slots (MR-20 to MR-30).
#include <algorithm>
#include <memory>
#include <utility>

#include "properties/snapshot/history.hpp"

namespace kvo::snapshot {
namespace {

class RingHistory final : public History<RingHistory, RowsOps, LayerHistory> {
 public:
  RingHistory(const RowsConfig& config, QuirkSet<Quirk> quirks)
      : History(quirks, config.rows.format()), config_window_(config.max_size.value_or(0)) {}

  using LayerHistory::observe;
  Words observe(const New& op, const Observation& seen);
  Words observe(const Update& op, const Observation& seen);
  Words observe(const ShowState& /*op*/, const Observation& seen);
  Words observe(const Offset& /*op*/, const Observation& seen) {
    return odd_window() ? skip() : must_show(Offset::Returns{offset_}, seen);
  }
  Words observe(const Take& op, const Observation& seen);
  Words observe(const Restore& op, const Observation& seen);
  Words observe(const Merge& op, const Observation& seen) { return saw_whole(op, seen); }
  Words observe(const Split& op, const Observation& seen) { return saw_whole(op, seen); }

 private:
  void clear() override {
    live_.reset();
    offset_ = 0;
    wrapped_ = false;
    doubt_ = Doubt::kNone;
  }
  [[nodiscard]] bool odd_window() const { return window_ < 1; }
  [[nodiscard]] bool known() const { return doubt_ == Doubt::kNone && !odd_window(); }
  Words added_nothing(const TokenRows& rows, const Observation& seen);
  Words added_one(const TokenRows& rows, const Observation& seen);
  Words added_chunk(const TokenRows& rows, const Observation& seen);
  /// What is live, in the order of time, or one that goes round if that is what is shown.
  [[nodiscard]] std::pair<Tensor, Tensor> in_the_order_of(const Tensor& k, const Tensor& v) const;

  std::int64_t config_window_;
  std::int64_t window_ = 0;
  std::optional<TokenRows> live_;  ///< in order of time; nothing: there is no buffer
  std::int64_t offset_ = 0;
  bool wrapped_ = false;  ///< a single token has taken the place of the oldest since the last chunk
  Doubt doubt_ = Doubt::kNone;
};

// MR-27: a window of no token.
Words RingHistory::observe(const New& op, const Observation& seen) {
  const std::int64_t window = op.max_size.value_or(config_window_);
  if (!can_store() || (window < 1 && !has(Quirk::kAnyWindow)))
    return must_fail(Code::kOutOfRange, seen);
  window_ = window;
  return begin_empty(seen);
}

Words RingHistory::observe(const Update& op, const Observation& seen) {
  if (const auto code = refusal_of(op)) return must_fail(*code, seen);
  remember_pair(op, seen, op.k.shape[kTokenAxis] > 1 && has(Quirk::kLiveChunk));
  const bool fits = are_rows(op.k, op.v);
  const TokenRows rows = fits ? TokenRows::of(as_shown(op.k), as_shown(op.v)) : TokenRows();
  if (!fits || (live_ && !live_->alike(rows))) {
    if (!has(Quirk::kMisfitIsSilent)) return must_fail(Code::kBadShape, seen);
    offset_ += op.k.shape[kTokenAxis];
    doubt_ = Doubt::kAll;
    return skip();
  }
  if (rows.count() == 0) return added_nothing(rows, seen);
  offset_ += rows.count();
  if (odd_window() || doubt_ == Doubt::kAll) return skip();
  return rows.count() > 1 ? added_chunk(rows, seen) : added_one(rows, seen);
}

// MR-22 with L = 0
Words RingHistory::added_nothing(const TokenRows& rows, const Observation& seen) {
  if (has(Quirk::kNothingMovesTheRing)) {
    if (doubt_ == Doubt::kNone) doubt_ = Doubt::kShort;
    if (!live_) live_ = rows;
    return skip();
  }
  if (!known()) return skip();
  if (!live_) return must_return(rows.shown(), seen);
  if (seen.error) return judged("rows that fit are refused");
  const auto& shown = seen.as<Update::Returns>();
  return must_return(in_the_order_of(shown.k, shown.v), seen);
}

// MR-22: the newest tokens, as many as the window at most.
Words RingHistory::added_one(const TokenRows& rows, const Observation& seen) {
  if (!known()) return skip();
  if (seen.error) return judged("rows that fit are refused");
  const auto& shown = seen.as<Update::Returns>();
  if (!live_) live_ = rows.part(0, 0);
  // A buffer that grows takes the wider type, one that does not keeps its own.
  live_->widen(rows, &shown);
  wrapped_ = wrapped_ || live_->count() >= window_;
  live_->append(rows);
  live_ = live_->newest(window_);
  return must_return(in_the_order_of(shown.k, shown.v), seen);
}

// MR-21: one less than the window of those before, and all the new ones behind.
Words RingHistory::added_chunk(const TokenRows& rows, const Observation& seen) {
  if (seen.error) return judged("rows that fit are refused");
  if (doubt_ == Doubt::kShort || (wrapped_ && has(Quirk::kChunkDropsOlder))) {
    // How many of the older ones are left is the quirk's; the new ones are there.
    const auto& shown = seen.as<Update::Returns>();
    if (!are_rows(shown.k, shown.v)) return judged("a chunk shows keys and values that differ");
    TokenRows all = TokenRows::of(shown.k, shown.v);
    TokenRows wanted = rows;
    wanted.k = wanted.k.cast(all.k.type);
    wanted.v = wanted.v.cast(all.v.type);
    const TokenRows newest = all.newest(rows.count());
    live_ = std::move(all);
    wrapped_ = false;
    doubt_ = live_->count() >= window_ ? Doubt::kNone : Doubt::kShort;
    return must_return(
        wanted.shown(),
        {.returns = Record::of(Update::Returns{newest.k.shown(), newest.v.shown(), shown.handle})});
  }
  live_ = live_ ? live_->newest(window_ - 1) : rows.part(0, 0);
  live_->widen(rows);
  live_->append(rows);
  wrapped_ = false;
  return must_return(live_->shown(), seen);
}

std::pair<Tensor, Tensor> RingHistory::in_the_order_of(const Tensor& k, const Tensor& v) const {
  std::pair<Tensor, Tensor> ordered = live_->shown();
  if (!wrapped_ || ordered == std::pair(k, v) || !are_rows(k, v)) return ordered;
  const TokenRows shown = TokenRows::of(k, v);
  if (!live_->alike(shown) || shown.count() != live_->count()) return ordered;
  for (std::size_t first = 1; first < shown.k.tokens.size(); ++first) {
    if (*live_->k.tokens[first] != *shown.k.tokens.front() ||
        *live_->v.tokens[first] != *shown.v.tokens.front())
      continue;
    if (auto round = live_->shown(first); round == std::pair(k, v)) return round;
  }
  return ordered;
}

// MR-24
Words RingHistory::observe(const ShowState& /*op*/, const Observation& seen) {
  if (!known()) return skip();
  if (!live_) return must_show(ShowState::Returns(), seen);
  if (seen.error || !seen.as<ShowState::Returns>().state.has_value() ||
      seen.as<ShowState::Returns>().state->size() != 2)
    return judged("what was added is not shown");
  const auto& state = *seen.as<ShowState::Returns>().state;
  if (!state[0].has_value() || !state[1].has_value()) return judged("keys or values are not shown");
  auto [k, v] = in_the_order_of(*state[0], *state[1]);
  return must_have_state(std::move(k), std::move(v), seen);
}

// MR-25: with idx, the slot behind the newest, the order of time is known.
Words RingHistory::observe(const Take& op, const Observation& seen) {
  Kept kept{.window = window_, .wrapped = wrapped_, .doubt = doubt_};
  if (!known()) {
    kept.doubt = odd_window() ? Doubt::kAll : doubt_;
    if (doubt_ == Doubt::kShort) kept.rows = live_;
    if (!seen.error) remember(seen.as<Numbered>(), std::move(kept));
    return skip();
  }
  if (!live_ || offset_ <= op.from) return must_show(Numbered(), seen);
  if (seen.error) return judged("a snapshot is refused");
  const std::int64_t count = live_->count();
  std::int64_t idx = count;
  if (const auto& shown = seen.as<Numbered>().shown.idx; wrapped_ && shown && *shown > 0)
    idx = std::min(*shown, count);
  kept.rows = live_;
  return must_show(add(std::move(kept), op.from, offset_, idx), seen);
}

// MR-26, MR-27
Words RingHistory::observe(const Restore& op, const Observation& seen) {
  const Used used = use(op.handle);
  if (used.error) return must_fail(*used.error, seen);
  const bool lower = used.kept == nullptr && op.target < offset_;
  if (odd_window() || used.unknown || (lower && doubt_ == Doubt::kAll)) {
    if (!seen.error) offset_ = seen.as<Restore::Returns>().offset;
    if (used.kept != nullptr || !odd_window()) doubt_ = Doubt::kAll;
    return skip();
  }
  if (used.kept == nullptr) {
    if (op.target < 0 || op.target > offset_ || (lower && offset_ > window_))
      return must_show(Restore::Returns{false, offset_}, seen);
    if (lower && live_ && live_->count() >= op.target) live_ = live_->part(0, op.target);
    offset_ = op.target;
    return must_show(Restore::Returns{true, offset_}, seen);
  }
  const Kept& kept = *used.kept;
  const std::int64_t end = *kept.contents.to;
  const bool foreign = kept.window != window_;
  if (op.target < 0 || op.target > end || (op.target < end && end > window_) ||
      (foreign && !has(Quirk::kForeignWindow)))
    return must_show(Restore::Returns{false, offset_}, seen);
  doubt_ = foreign || !kept.rows ? Doubt::kAll : kept.doubt;
  live_ = kept.rows;
  wrapped_ = kept.wrapped;
  offset_ = op.target;
  if (doubt_ == Doubt::kNone && op.target < end) live_ = live_->part(0, op.target);
  if (foreign) return skip();
  return must_show(Restore::Returns{true, offset_}, seen);
}

}  // namespace

std::unique_ptr<Oracle> ring_history(const RowsConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<RingHistory>(config, quirks);
}

}  // namespace kvo::snapshot
