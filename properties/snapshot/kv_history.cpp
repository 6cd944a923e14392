// The history of a cache of all tokens: a list that is cut and added to (MR-10 to MR-17).
#include <algorithm>
#include <memory>
#include <utility>

#include "properties/snapshot/history.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::snapshot {
namespace {

class KvHistory final : public LayerHistory {
 public:
  KvHistory(const RowsConfig& config, QuirkSet<Quirk> quirks)
      : LayerHistory(quirks, config.rows.format()) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.unsupported) return words;
    visit_op(RowsOps(), op, [&](const auto& operation) { words = saw(operation, seen); });
    return words;
  }

 private:
  using LayerHistory::saw;
  Words saw(const New& /*op*/, const Observation& seen) {
    if (!can_store()) return must_fail(Code::kOutOfRange, seen);
    begun_ = true;
    clear();
    return must_succeed(seen);
  }
  Words saw(const Update& op, const Observation& seen);
  Words saw(const ShowState& /*op*/, const Observation& seen) {
    if (!begun_) return must_fail(Code::kPrecondition, seen);
    if (unknown_) return skip();
    if (!live_) return must_show(ShowState::Returns(), seen);
    return must_show(
        ShowState::Returns{std::vector<Nullable<Tensor>>{live_->k.shown(), live_->v.shown()}},
        seen);
  }
  Words saw(const Offset& /*op*/, const Observation& seen) {
    if (!begun_) return must_fail(Code::kPrecondition, seen);
    return unknown_ ? skip() : must_show(Offset::Returns{offset()}, seen);
  }
  Words saw(const Free& /*op*/, const Observation& seen) {
    if (!begun_) return must_fail(Code::kPrecondition, seen);
    clear();
    return must_succeed(seen);
  }
  Words saw(const Take& op, const Observation& seen);
  Words saw(const Restore& op, const Observation& seen);
  Words saw(const Merge& op, const Observation& seen);
  Words saw(const Split& op, const Observation& seen);

  [[nodiscard]] std::int64_t offset() const { return live_ ? live_->count() : 0; }
  void clear() {
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
Words KvHistory::saw(const Update& op, const Observation& seen) {
  const auto number = op.keep.value_or(false) ? std::optional(next_pair()) : std::nullopt;
  remember_pair(seen, false);
  if (!begun_ || op.k.dtype == DType::kI32 || op.v.dtype == DType::kI32)
    return must_fail(Code::kPrecondition, seen);
  const bool silent = has(Quirk::kMisfitIsSilent);
  if (op.k.shape.size() != kArrayAxes || op.v.shape.size() != kArrayAxes || takes_not(op))
    return must_fail(silent ? Code::kPrecondition : Code::kBadShape, seen);
  if (unknown_) return skip();
  if (!are_rows(op.k, op.v)) return silent ? lost_track() : must_fail(Code::kBadShape, seen);
  const TokenRows rows = TokenRows::of(as_shown(op.k), as_shown(op.v));
  if (live_ && !live_->alike(rows)) return silent ? lost_track() : must_fail(Code::kBadShape, seen);
  if (rows.count() == 0 && !live_) {
    if (has(Quirk::kNothingMakesABuffer)) return lost_track();
    return must_show(Update::Returns{rows.k.shown(), rows.v.shown(), number}, seen);
  }
  if (widens(rows)) {
    if (!has(Quirk::kTypeWidens)) return must_fail(Code::kBadShape, seen);
    // Either type may come of it: the one that is shown.
    if (seen.error) return wrong("rows of a wider type are refused");
    const auto& shown = seen.as<Update::Returns>();
    for (auto [side, given, got] : {std::tuple(&live_->k, rows.k.type, shown.k.dtype),
                                    std::tuple(&live_->v, rows.v.type, shown.v.dtype)})
      if (got == given && wider(given, side->type)) *side = side->cast(given);
  }
  TokenRows whole = live_.value_or(TokenRows{rows.k.part(0, 0), rows.v.part(0, 0)});
  whole.append(rows);
  live_ = std::move(whole);
  return must_show(Update::Returns{live_->k.shown(), live_->v.shown(), number}, seen);
}

// MR-12
Words KvHistory::saw(const Take& op, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
  if (unknown_) {
    if (seen.error) return skip();
    const auto& taken = seen.as<Numbered>();
    Kept kept;
    if (taken.k && taken.v && taken.from && taken.to && are_rows(*taken.k, *taken.v) &&
        taken.k->shape[kTokenAxis] == *taken.to - *taken.from)
      kept.rows = TokenRows::of(*taken.k, *taken.v);
    remember(taken, std::move(kept));
    return skip();
  }
  if (!live_ || offset() <= op.from) return must_show(Numbered(), seen);
  const std::int64_t from = std::max<std::int64_t>(op.from, 0);
  Kept kept{.rows = live_->part(from, offset())};
  const Numbered want{.handle = next_number(),
                      .from = from,
                      .to = offset(),
                      .size = bytes_of(*kept.rows),
                      .k = kept.rows->k.shown(),
                      .v = kept.rows->v.shown()};
  remember(want, std::move(kept));
  return must_show(want, seen);
}

// MR-13, MR-14
Words KvHistory::saw(const Restore& op, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
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
  TokenRows whole =
      live_ ? live_->part(0, from) : TokenRows{kept.rows->k.part(0, 0), kept.rows->v.part(0, 0)};
  whole.append(*kept.rows);
  if (below) {  // whatever was answered is what happened
    if (!seen.error && seen.as<Restore::Returns>().ok) live_ = whole.part(0, op.target);
    return skip();
  }
  live_ = whole.part(0, op.target);
  return must_show(Restore::Returns{true, op.target}, seen);
}

// MR-15
Words KvHistory::saw(const Merge& op, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
  const Used parent = use(op.parent);
  const Used child = use(op.child);
  for (const Used* side : {&parent, &child})
    if (side->error && *side->error == Code::kPrecondition) return must_fail(*side->error, seen);
  for (const Used* side : {&parent, &child})
    if (side->error) return must_fail(*side->error, seen);
  Kept* alone = parent.kept == nullptr ? child.kept : child.kept == nullptr ? parent.kept : nullptr;
  const bool both = parent.kept != nullptr && child.kept != nullptr;
  const bool adjoin = both && parent.kept->contents.to == child.kept->contents.from;
  if (both && parent.kept == child.kept)
    return must_fail(has(Quirk::kMergeUnchecked) ? closed_code() : Code::kBadPosition, seen);
  const auto unsure = [&] {
    for (const Used* side : {&parent, &child})
      if (side->kept != nullptr) side->kept->life = Kept::Life::kUnknown;
    if (!seen.error) remember(seen.as<Numbered>(), {});
    return skip();
  };
  if (parent.unknown || child.unknown || (alone != nullptr && has(Quirk::kMergeLosesOneSide)) ||
      (both && !adjoin && has(Quirk::kMergeUnchecked)))
    return unsure();
  if (!both && alone == nullptr) return must_show(Numbered(), seen);
  if (!both)
    return must_show(numbered_as(alone == parent.kept ? *op.parent : *op.child, alone->contents),
                     seen);
  if (!adjoin) return must_fail(Code::kBadPosition, seen);
  if (!parent.kept->rows || !child.kept->rows) return unsure();
  if (!parent.kept->rows->alike(*child.kept->rows))
    return has(Quirk::kMisfitIsSilent) ? unsure() : must_fail(Code::kBadShape, seen);
  Kept kept{.rows = parent.kept->rows};
  for (auto side : {&TokenRows::k, &TokenRows::v})
    if (const DType type = ((*child.kept->rows).*side).type; wider(type, ((*kept.rows).*side).type))
      (*kept.rows).*side = ((*kept.rows).*side).cast(type);
  kept.rows->append(*child.kept->rows);
  const Numbered want{.handle = next_number(),
                      .from = parent.kept->contents.from,
                      .to = child.kept->contents.to,
                      .size = bytes_of(*kept.rows),
                      .k = kept.rows->k.shown(),
                      .v = kept.rows->v.shown()};
  parent.kept->life = child.kept->life = Kept::Life::kClosed;
  remember(want, std::move(kept));
  return must_show(want, seen);
}

// MR-16
Words KvHistory::saw(const Split& op, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
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
    (op.at <= *contents.from ? halves.child : halves.parent) = numbered_as(*op.handle, contents);
    return must_show(std::move(halves), seen);
  }
  const TokenRows rows = *whole.kept->rows;
  whole.kept->life = Kept::Life::kClosed;
  const auto half = [&](std::int64_t from, std::int64_t to) {
    Kept kept{.rows = rows.part(from - *contents.from, to - *contents.from)};
    Numbered one{.handle = next_number(),
                 .from = from,
                 .to = to,
                 .size = bytes_of(*kept.rows),
                 .k = kept.rows->k.shown(),
                 .v = kept.rows->v.shown()};
    remember(one, std::move(kept));
    return one;
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
