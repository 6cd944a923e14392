// The history of a cache of all tokens: a list that is cut and added to (MR-10 to MR-17).
#include <algorithm>
#include <memory>
#include <utility>

#include "properties/snapshot/history.hpp"

namespace kvo::snapshot {
namespace {

class KvHistory final : public History<KvHistory, RowsOps, LayerHistory> {
 public:
  KvHistory(const RowsConfig& config, QuirkSet<Quirk> quirks)
      : History(quirks, config.rows.format()) {}

  using LayerHistory::observe;
  Words observe(const New& /*op*/, const Observation& seen) {
    return can_store() ? begin_empty(seen) : must_fail(Code::kOutOfRange, seen);
  }
  Words observe(const Update& op, const Observation& seen);
  Words observe(const ShowState& /*op*/, const Observation& seen) {
    if (unknown_) return skip();
    if (!live_) return must_show(ShowState::Returns(), seen);
    return must_have_state(live_->k.shown(), live_->v.shown(), seen);
  }
  Words observe(const Offset& /*op*/, const Observation& seen) {
    return unknown_ ? skip() : must_show(Offset::Returns{offset()}, seen);
  }
  Words observe(const Take& op, const Observation& seen);
  Words observe(const Restore& op, const Observation& seen);
  Words observe(const Merge& op, const Observation& seen);
  Words observe(const Split& op, const Observation& seen);

 private:
  [[nodiscard]] std::int64_t offset() const { return live_ ? live_->count() : 0; }
  void clear() override {
    live_.reset();
    unknown_ = false;
  }
  Words lost_track() {
    unknown_ = true;
    return skip();
  }
  /// Whether a type is wider than that of what is live.
  [[nodiscard]] bool widens(const TokenRows& rows) const {
    return live_ && (wider(rows.k.type, live_->k.type) || wider(rows.v.type, live_->v.type));
  }
  Words refused(const Observation& seen) {
    return must_show(Restore::Returns{false, offset()}, seen);
  }
  Words restored(const Kept& kept, const Restore& op, const Observation& seen);

  std::optional<TokenRows> live_;  ///< nothing: there is no buffer
  bool unknown_ = false;           ///< a quirk has spoilt the buffer, until it is freed
};

// MR-10
Words KvHistory::observe(const Update& op, const Observation& seen) {
  remember_pair(op, seen, false);
  if (const auto code = refusal_of(op)) return must_fail(*code, seen);
  const bool silent = has(Quirk::kMisfitIsSilent);
  if (unknown_) return skip();
  if (!are_rows(op.k, op.v)) return silent ? lost_track() : must_fail(Code::kBadShape, seen);
  const TokenRows rows = TokenRows::of(as_shown(op.k), as_shown(op.v));
  if (live_ && !live_->alike(rows)) return silent ? lost_track() : must_fail(Code::kBadShape, seen);
  if (rows.count() == 0 && !live_) {
    if (has(Quirk::kNothingMakesABuffer)) return lost_track();
    return must_return(rows.shown(), seen);
  }
  if (widens(rows)) {
    if (!has(Quirk::kTypeWidens)) return must_fail(Code::kBadShape, seen);
    // Either type may come of it: the one that is shown.
    if (seen.error) return judged("rows of a wider type are refused");
    live_->widen(rows, &seen.as<Update::Returns>());
  }
  if (!live_) live_ = rows.part(0, 0);
  live_->append(rows);
  return must_return(live_->shown(), seen);
}

// MR-12
Words KvHistory::observe(const Take& op, const Observation& seen) {
  if (unknown_) {
    if (seen.error) return skip();
    const Contents& taken = seen.as<Numbered>().shown;
    Kept kept;
    if (taken.k && taken.v && taken.from && taken.to && are_rows(*taken.k, *taken.v) &&
        taken.k->shape[kTokenAxis] == *taken.to - *taken.from)
      kept.rows = TokenRows::of(*taken.k, *taken.v);
    remember(seen.as<Numbered>(), std::move(kept));
    return skip();
  }
  if (!live_ || offset() <= op.from) return must_show(Numbered(), seen);
  const std::int64_t from = std::max<std::int64_t>(op.from, 0);
  return must_show(add({.rows = live_->part(from, offset())}, from, offset()), seen);
}

// MR-13, MR-14
Words KvHistory::observe(const Restore& op, const Observation& seen) {
  const Used used = use(op.handle);
  if (used.error) return must_fail(*used.error, seen);
  if (unknown_ || used.unknown || (used.kept != nullptr && !used.kept->rows)) return lost_track();
  if (used.kept != nullptr) return restored(*used.kept, op, seen);
  if (op.target < 0 || op.target > offset()) return refused(seen);
  if (live_) live_ = live_->part(0, op.target);
  return must_show(Restore::Returns{true, op.target}, seen);
}

Words KvHistory::restored(const Kept& kept, const Restore& op, const Observation& seen) {
  const std::int64_t from = *kept.contents.from;
  if (op.target < 0 || op.target > *kept.contents.to || offset() < from) return refused(seen);
  const bool below = op.target < from;
  if (below && !has(Quirk::kRestoresBelowFrom)) return refused(seen);
  const bool misfit = live_ && !live_->alike(*kept.rows);
  if (misfit || widens(*kept.rows)) {
    if (has(misfit ? Quirk::kMisfitIsSilent : Quirk::kTypeWidens)) return lost_track();
    return must_fail(Code::kBadShape, seen);
  }
  TokenRows whole = live_ ? live_->part(0, from) : kept.rows->part(0, 0);
  whole.append(*kept.rows);
  if (below) {  // whatever was answered is what happened
    if (!seen.error && seen.as<Restore::Returns>().ok) live_ = whole.part(0, op.target);
    return skip();
  }
  live_ = whole.part(0, op.target);
  return must_show(Restore::Returns{true, op.target}, seen);
}

// MR-15
Words KvHistory::observe(const Merge& op, const Observation& seen) {
  const Sides sides = use(op);
  const auto& [parent, child, error] = sides;
  if (error) return must_fail(*error, seen);
  Kept* alone = parent.kept == nullptr ? child.kept : child.kept == nullptr ? parent.kept : nullptr;
  const bool both = parent.kept != nullptr && child.kept != nullptr;
  const bool adjoin = both && parent.kept->contents.to == child.kept->contents.from;
  if (both && parent.kept == child.kept)
    return must_fail(has(Quirk::kMergeUnchecked) ? closed_code() : Code::kBadPosition, seen);
  const auto unsure = [&] {
    sides.lose();
    if (!seen.error) remember(seen.as<Numbered>(), {});
    return skip();
  };
  if (parent.unknown || child.unknown || (alone != nullptr && has(Quirk::kMergeLosesOneSide)) ||
      (both && !adjoin && has(Quirk::kMergeUnchecked)))
    return unsure();
  if (!both && alone == nullptr) return must_show(Numbered(), seen);
  if (!both)
    return must_show(Numbered{alone == parent.kept ? op.parent : op.child, alone->contents}, seen);
  if (!adjoin) return must_fail(Code::kBadPosition, seen);
  if (!parent.kept->rows || !child.kept->rows) return unsure();
  if (!parent.kept->rows->alike(*child.kept->rows))
    return has(Quirk::kMisfitIsSilent) ? unsure() : must_fail(Code::kBadShape, seen);
  TokenRows rows = *parent.kept->rows;
  rows.widen(*child.kept->rows);
  rows.append(*child.kept->rows);
  parent.kept->life = child.kept->life = Kept::Life::kClosed;
  return must_show(
      add({.rows = std::move(rows)}, *parent.kept->contents.from, *child.kept->contents.to), seen);
}

// MR-16
Words KvHistory::observe(const Split& op, const Observation& seen) {
  const Used whole = use(op.handle);
  if (whole.error) return must_fail(*whole.error, seen);
  Split::Returns halves;
  if (whole.kept == nullptr) return must_show(std::move(halves), seen);
  const Contents contents = whole.kept->contents;
  const bool inside = op.at > *contents.from && op.at < *contents.to;
  if (whole.unknown || (inside && !whole.kept->rows)) {
    whole.kept->life = Kept::Life::kUnknown;
    if (seen.error) return skip();
    for (const auto& half : {seen.as<Split::Returns>().parent, seen.as<Split::Returns>().child})
      if (half.has_value()) remember(*half, {});
    return skip();
  }
  if (!inside) {
    (op.at <= *contents.from ? halves.child : halves.parent) = Numbered{op.handle, contents};
    return must_show(std::move(halves), seen);
  }
  const TokenRows rows = *whole.kept->rows;
  whole.kept->life = Kept::Life::kClosed;
  const auto half = [&](std::int64_t from, std::int64_t to) {
    return add({.rows = rows.part(from - *contents.from, to - *contents.from)}, from, to);
  };
  halves.parent = half(*contents.from, op.at);
  halves.child = half(op.at, *contents.to);
  return must_show(std::move(halves), seen);
}

}  // namespace

std::unique_ptr<Oracle> kv_history(const RowsConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<KvHistory>(config, quirks);
}

}  // namespace kvo::snapshot
