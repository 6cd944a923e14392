#include "optimized/snapshot/kv_cache.hpp"

#include <algorithm>
#include <utility>

#include "reference/snapshot/held.hpp"

namespace kvo::optimized {

using snapshot::Array;
using snapshot::Pair;
using snapshot::Quirk;
using snapshot::SnapshotPtr;

Status SnapshotKvCache::fits(const Array& k, const Array& v) const {
  const RowForm* k_form = slots_.exists() ? &slots_.k.form() : nullptr;
  const RowForm* v_form = slots_.exists() ? &slots_.v.form() : nullptr;
  const bool axes = k.view.shape.size() == 4 && v.view.shape.size() == 4;
  if (axes && slots_.exists() && !quirks_.has(Quirk::kTypeWidens) &&
      (snapshot::wider(k.view.dtype, k_form->type) || snapshot::wider(v.view.dtype, v_form->type)))
    return fail(Code::kBadShape, "type");
  return snapshot::rows_fit({k, v}, k_form, v_form, quirks_);
}

Result<std::shared_ptr<const Pair>> SnapshotKvCache::add(const Array& k, const Array& v) {
  auto shown = std::make_shared<Pair>();
  // Most tokens come one by one and find room.
  if (slots_.take_in_place(offset_, k, v)) {
    slots_.show(++offset_, *shown);
    return std::shared_ptr<const Pair>(std::move(shown));
  }
  if (const Status fit = fits(k, v); !fit) return fit.error();
  const bool nothing = snapshot::tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMakesABuffer);
  if (nothing && !slots_.exists()) {
    *shown = {k, v};
    return std::shared_ptr<const Pair>(std::move(shown));
  }
  if (!nothing) {
    snapshot::SidesChange changes = slots_.change();
    snapshot::append_rows(changes, offset_, k, v);
    slots_.apply(changes);
    offset_ += snapshot::tokens_of(k);
  }
  *shown = slots_.pair(0, offset_);
  return std::shared_ptr<const Pair>(std::move(shown));
}

std::optional<snapshot::State> SnapshotKvCache::state() const {
  if (!slots_.exists()) return std::nullopt;
  Pair shown = slots_.pair(0, offset_);
  return snapshot::State{std::move(shown.k), std::move(shown.v)};
}

void SnapshotKvCache::free() {
  slots_.clear();
  offset_ = 0;
}

Result<SnapshotPtr> SnapshotKvCache::snapshot(std::int64_t from) {
  if (!slots_.exists() || offset_ <= from) return SnapshotPtr();
  const std::int64_t begin = std::max<std::int64_t>(from, 0);
  return std::make_shared<Own>(Own::Place{.from = begin, .to = offset_},
                               slots_.k.range(begin, offset_), slots_.v.range(begin, offset_),
                               quirks_);
}

Result<bool> SnapshotKvCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  // Rows behind offset can be seen again only where others are lost.
  const bool forgets = !quirks_.has(Quirk::kMisfitIsSilent);
  if (snapshot == nullptr) {
    if (target < 0 || target > offset_) return false;
    offset_ = target;
    if (forgets) slots_.forget_from(target);
    return true;
  }
  const auto& own = dynamic_cast<const Own&>(*snapshot);
  const std::int64_t from = own.place().from;
  if (target < 0 || target > own.place().to || offset_ < from) return false;
  if (target < from && !quirks_.has(Quirk::kRestoresBelowFrom)) return false;
  const Array k = own.k().array();
  const Array v = own.v().array();
  if (const Status fit = fits(k, v); !fit) return fit.error();
  snapshot::SidesChange changes = slots_.change();
  snapshot::append_rows(changes, from, k, v);
  if (forgets) {
    changes.k.forget_from(from);
    changes.v.forget_from(from);
  }
  const std::int64_t end = from + own.k().count;
  if (slots_.k.can_adopt(changes.k, from, own.k()) &&
      slots_.v.can_adopt(changes.v, from, own.v())) {
    slots_.k.adopt(changes.k, from, own.k());
    slots_.v.adopt(changes.v, from, own.v());
  } else {
    slots_.apply(changes);
  }
  offset_ = std::min(end, target);
  if (forgets) slots_.forget_from(offset_);
  return true;
}

RowRange SnapshotKvCache::joined(const RowRange& first, const RowRange& second) const {
  RowRange all = first;
  all.count += second.count;
  if (first.form == second.form &&
      (second.count == 0 ||
       (first.block == second.block && first.begin + first.count == second.begin)))
    return all;
  if (snapshot::wider(second.form.type, first.form.type)) all.form.type = second.form.type;
  all.begin = 0;
  all.block = std::make_shared<Block>(all.form, all.count, Block::Growth::kNone, live_);
  put_rows(*all.block, 0, first.array(), 0, first.count);
  put_rows(*all.block, first.count, second.array(), 0, second.count);
  all.block->wrote(all.count);
  return all;
}

Result<SnapshotPtr> SnapshotKvCache::merge(const SnapshotPtr& parent, const SnapshotPtr& child) {
  for (const SnapshotPtr& side : {parent, child})
    if (const Status can = snapshot::usable<Own>(side, quirks_); !can) return can.error();
  if (parent == nullptr || child == nullptr) {
    const SnapshotPtr& left = parent != nullptr ? parent : child;
    if (left == nullptr || !quirks_.has(Quirk::kMergeLosesOneSide)) return left;
    if (const Status done = left->close(); !done) return done.error();
    return SnapshotPtr();
  }
  const bool unchecked = quirks_.has(Quirk::kMergeUnchecked);
  if (parent == child && unchecked) return snapshot::closed_error(quirks_);
  if (parent == child) return fail(Code::kBadPosition, "child");
  const auto& before = dynamic_cast<const Own&>(*parent);
  const auto& behind = dynamic_cast<const Own&>(*child);
  if (before.place().to != behind.place().from && !unchecked)
    return fail(Code::kBadPosition, "child");
  if (!before.k().form.same_shape(behind.k().form) || !before.v().form.same_shape(behind.v().form))
    return fail(quirks_.has(Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
                "k, v");
  SnapshotPtr merged = std::make_shared<Own>(
      Own::Place{.from = before.place().from, .to = behind.place().to},
      joined(before.k(), behind.k()), joined(before.v(), behind.v()), quirks_);
  (void)parent->close();
  (void)child->close();
  return merged;
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> SnapshotKvCache::split(const SnapshotPtr& snapshot,
                                                                   std::int64_t at) {
  using Halves = std::pair<SnapshotPtr, SnapshotPtr>;
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  if (snapshot == nullptr) return Halves();
  const auto& whole = dynamic_cast<const Own&>(*snapshot);
  const std::int64_t from = whole.place().from;
  const std::int64_t to = whole.place().to;
  if (at <= from) return Halves(nullptr, snapshot);
  if (at >= to) return Halves(snapshot, nullptr);
  const std::int64_t i = at - from;
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return std::make_shared<Own>(Own::Place{.from = from + begin, .to = from + end},
                                 whole.k().part(begin, end), whole.v().part(begin, end), quirks_);
  };
  Halves halves(part(0, i), part(i, to - from));
  if (const Status done = snapshot->close(); !done) return done.error();
  return halves;
}

}  // namespace kvo::optimized
