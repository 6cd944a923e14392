#include "reference/snapshot/kv_cache.hpp"

#include <algorithm>

namespace kvo::snapshot {
namespace {

// MR-10.1 for one side: room for `tokens` more behind `offset`.
Array grown(const std::optional<Array>& buffer, const Array& rows, std::int64_t offset) {
  const std::int64_t steps = (tokens_of(rows) + kGrowth - 1) / kGrowth;
  Array room = *zeros(rows, steps * kGrowth);
  if (!buffer) return room;
  const Array kept = offset % kGrowth != 0 ? sliced(*buffer, 0, offset) : *buffer;
  return concatenated(kept, room).value_or(kept);  // MR-A6
}

}  // namespace

Status KvCache::fits(const Array& k, const Array& v) const {
  if (k.view.shape.size() != kArrayAxes || v.view.shape.size() != kArrayAxes)
    return fail(quirks_.has(Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
                "axes");
  const auto too_wide = [&](const Array& rows, const Array& buffer) {
    return !quirks_.has(Quirk::kTypeWidens) && wider(rows.view.dtype, buffer.view.dtype);
  };
  if (buffer_ && (too_wide(k, buffer_->k) || too_wide(v, buffer_->v)))
    return fail(Code::kBadShape, "type");
  if (quirks_.has(Quirk::kMisfitIsSilent)) return {};
  const bool alike = tokens_of(k) == tokens_of(v) && k.view.shape[0] == v.view.shape[0] &&
                     k.view.shape[1] == v.view.shape[1];
  if (!alike || (buffer_ && (!same_rows(k, buffer_->k) || !same_rows(v, buffer_->v))))
    return fail(Code::kBadShape, "k, v");
  return {};
}

Pair KvCache::appended(std::int64_t offset, const Array& k, const Array& v) const {
  const std::int64_t end = offset + tokens_of(k);
  const bool full = !buffer_ || end > tokens_of(buffer_->k);
  const auto side = [&](Array Pair::*one, const Array& rows) {
    const Array room =
        full ? grown(buffer_ ? std::optional((*buffer_).*one) : std::nullopt, rows, offset)
             : (*buffer_).*one;
    return overwritten(room, offset, end, rows).value_or(room);  // MR-A6
  };
  return {side(&Pair::k, k), side(&Pair::v, v)};
}

Result<std::shared_ptr<const Pair>> KvCache::add(const Array& k, const Array& v) {
  if (const Status fit = fits(k, v); !fit) return fit.error();
  const bool nothing = tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMakesABuffer);
  if (nothing && !buffer_) return std::make_shared<const Pair>(Pair{k, v});
  Pair rows = nothing ? *buffer_ : appended(offset_, k, v);
  const std::int64_t end = offset_ + tokens_of(k);
  auto shown = std::make_shared<const Pair>(Pair{sliced(rows.k, 0, end), sliced(rows.v, 0, end)});
  buffer_ = std::move(rows);
  offset_ = end;
  return shown;
}

std::optional<State> KvCache::state() const {
  if (!buffer_) return std::nullopt;
  return State{sliced(buffer_->k, 0, offset_), sliced(buffer_->v, 0, offset_)};
}

void KvCache::free() {
  buffer_.reset();
  offset_ = 0;
}

SnapshotPtr KvCache::held(std::int64_t from, std::int64_t to, const Pair& rows) const {
  return std::make_shared<Own>(Content{.from = from, .to = to, .first = rows.k, .second = rows.v},
                               quirks_);
}

Result<SnapshotPtr> KvCache::snapshot(std::int64_t from) {
  if (!buffer_ || offset_ <= from) return SnapshotPtr();
  const std::int64_t begin = std::max<std::int64_t>(from, 0);
  return held(begin, offset_,
              {sliced(buffer_->k, begin, offset_), sliced(buffer_->v, begin, offset_)});
}

Result<bool> KvCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
  if (const Status can = usable<Own>(snapshot, quirks_); !can) return can.error();
  if (snapshot == nullptr) {
    if (target < 0 || target > offset_) return false;
    offset_ = target;
    return true;
  }
  const Content content = snapshot->content();
  if (target < 0 || target > *content.to || offset_ < *content.from) return false;
  if (target < *content.from && !quirks_.has(Quirk::kRestoresBelowFrom)) return false;
  if (const Status fit = fits(content.first, content.second); !fit) return fit.error();
  buffer_ = appended(*content.from, content.first, content.second);
  const std::int64_t end = *content.from + tokens_of(content.first);
  offset_ = std::min(end, target);
  return true;
}

Result<SnapshotPtr> KvCache::merge(const SnapshotPtr& parent, const SnapshotPtr& child) {
  for (const SnapshotPtr& side : {parent, child})
    if (const Status can = usable<Own>(side, quirks_); !can) return can.error();
  if (parent == nullptr || child == nullptr) {
    const SnapshotPtr& left = parent != nullptr ? parent : child;
    if (left == nullptr || !quirks_.has(Quirk::kMergeLosesOneSide)) return left;
    if (const Status done = left->close(); !done) return done.error();
    return SnapshotPtr();
  }
  const Content before = parent->content();
  const Content behind = child->content();
  if (parent == child && quirks_.has(Quirk::kMergeUnchecked)) return closed_error(quirks_);
  if (parent == child) return fail(Code::kBadPosition, "child");
  if (*before.to != *behind.from && !quirks_.has(Quirk::kMergeUnchecked))
    return fail(Code::kBadPosition, "child");
  const auto k = concatenated(before.first, behind.first);
  const auto v = concatenated(before.second, behind.second);
  if (!k || !v)
    return fail(quirks_.has(Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
                "k, v");
  SnapshotPtr merged = held(*before.from, *behind.to, {*k, *v});
  (void)parent->close();
  (void)child->close();
  return merged;
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> KvCache::split(const SnapshotPtr& snapshot,
                                                           std::int64_t at) {
  using Halves = std::pair<SnapshotPtr, SnapshotPtr>;
  if (const Status can = usable<Own>(snapshot, quirks_); !can) return can.error();
  if (snapshot == nullptr) return Halves();
  const Content whole = snapshot->content();
  if (at <= *whole.from) return Halves(nullptr, snapshot);
  if (at >= *whole.to) return Halves(snapshot, nullptr);
  const std::int64_t i = at - *whole.from;
  const std::int64_t end = *whole.to - *whole.from;
  Halves halves(held(*whole.from, at, {sliced(whole.first, 0, i), sliced(whole.second, 0, i)}),
                held(at, *whole.to, {sliced(whole.first, i, end), sliced(whole.second, i, end)}));
  if (const Status done = snapshot->close(); !done) return done.error();
  return halves;
}

}  // namespace kvo::snapshot
