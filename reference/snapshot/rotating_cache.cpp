#include "reference/snapshot/rotating_cache.hpp"

#include <algorithm>

#include "reference/contract/values/mark.hpp"

namespace kvo::snapshot {
namespace {

// One behind the other; what does not fit is lost (MR-A6).
Array joined(const Array& first, const std::optional<Array>& second) {
  return second ? concatenated(first, *second).value_or(first) : first;
}

template <class Change>
Pair changed(const Pair& rows, const Change& change) {
  return {change(rows.k), change(rows.v)};
}

}  // namespace

Status RotatingCache::fits(const Array& k, const Array& v) const {
  const bool silent = quirks_.has(Quirk::kMisfitIsSilent);
  if (k.view.shape.size() != kArrayAxes || v.view.shape.size() != kArrayAxes)
    return fail(silent ? Code::kPrecondition : Code::kBadShape, "axes");
  if (silent) return {};
  const bool alike = tokens_of(k) == tokens_of(v) && k.view.shape[0] == v.view.shape[0] &&
                     k.view.shape[1] == v.view.shape[1];
  if (!alike || (buffer_ && (!same_rows(k, buffer_->k) || !same_rows(v, buffer_->v))))
    return fail(Code::kBadShape, "k, v");
  return {};
}

// MR-21
void RotatingCache::append_chunk(Ring& ring, const Array& k, const Array& v) const {
  if (!ring.rows) {
    ring.rows = {k, v};
  } else {
    if (ring.idx < ring.slots()) {
      const bool drops = ring.offset <= window_ || quirks_.has(Quirk::kChunkDropsOlder);
      const std::int64_t slots = ring.slots();
      ring.rows = changed(*ring.rows, [&](const Array& side) {
        const Array newer = sliced(side, 0, ring.idx);
        return drops ? newer : joined(sliced(side, ring.idx, slots), newer);
      });
      ring.idx = ring.slots();
    }
    const std::int64_t excess = std::max<std::int64_t>(ring.idx - window_ + 1, 0);
    const std::int64_t slots = ring.slots();
    const Pair kept =
        changed(*ring.rows, [&](const Array& side) { return sliced(side, excess, slots); });
    ring.rows = {joined(kept.k, k), joined(kept.v, v)};
  }
  ring.offset += tokens_of(k);
  ring.idx = ring.slots();
}

// MR-22
void RotatingCache::write_single(Ring& ring, const Array& k, const Array& v) const {
  if (!ring.rows || (ring.offset >= ring.slots() && ring.slots() < window_)) {
    const bool is_short =
        ring.rows && ring.offset > ring.slots() && !quirks_.has(Quirk::kShortRing);
    const std::int64_t filled = is_short ? ring.slots() : ring.offset;
    const std::int64_t more = std::min(kGrowth, window_ - filled);
    const Pair before = ring.rows.value_or(Pair{*zeros(k, 0), *zeros(v, 0)});
    ring.rows = {joined(before.k, zeros(k, more)), joined(before.v, zeros(v, more))};
    ring.idx = filled;
  }
  if (const std::int64_t slots = ring.slots(); slots > window_) {
    ring.rows = changed(*ring.rows,
                        [&](const Array& side) { return sliced(side, slots - window_, slots); });
    ring.idx = window_;
  }
  if (ring.idx >= window_) ring.idx = 0;
  const std::int64_t end = ring.idx + tokens_of(k);
  ring.rows = {overwritten(ring.rows->k, ring.idx, end, k).value_or(ring.rows->k),
               overwritten(ring.rows->v, ring.idx, end, v).value_or(ring.rows->v)};
  ring.offset += tokens_of(k);
  ring.idx = end;
}

Result<std::shared_ptr<const Pair>> RotatingCache::add(const Array& k, const Array& v) {
  if (const Status fit = fits(k, v); !fit) return fit.error();
  const bool chunk = tokens_of(k) > 1;
  const bool nothing = tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMovesTheRing);
  if (nothing && !buffer_) return std::make_shared<const Pair>(Pair{k, v});
  Ring ring{buffer_ ? std::optional(*buffer_) : std::nullopt, offset_, idx_};
  if (chunk)
    append_chunk(ring, k, v);
  else if (!nothing)
    write_single(ring, k, v);
  const std::int64_t seen = nothing ? ring.offset
                            : chunk ? ring.slots()
                                    : std::min(ring.offset, window_);
  auto shown = std::make_shared<const Pair>(
      changed(*ring.rows, [&](const Array& side) { return sliced(side, 0, seen); }));
  if (!buffer_) buffer_ = std::make_shared<Pair>();
  *buffer_ = *std::move(ring.rows);
  offset_ = ring.offset;
  idx_ = ring.idx;
  if (chunk && quirks_.has(Quirk::kLiveChunk)) return std::shared_ptr<const Pair>(buffer_);
  return shown;
}

std::optional<State> RotatingCache::state() const {
  if (!buffer_) return std::nullopt;
  return State{sliced(buffer_->k, 0, offset_), sliced(buffer_->v, 0, offset_)};
}

void RotatingCache::free() {
  buffer_.reset();
  offset_ = idx_ = 0;
}

Result<SnapshotPtr> RotatingCache::snapshot(std::int64_t from) {
  if (!buffer_ || offset_ <= from) return SnapshotPtr();
  const State shown = *state();
  return std::make_shared<Own>(
      Content{
          .from = from, .to = offset_, .idx = idx_, .first = *shown.first, .second = *shown.second},
      quirks_, window_);
}

Result<bool> RotatingCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
  if (const Status can = usable<Own>(snapshot, quirks_); !can) return can.error();
  if (target < 0) return false;
  if (snapshot == nullptr) {
    if (target >= offset_) return target == offset_;
    if (offset_ > window_) return false;
    offset_ = idx_ = target;
    return true;
  }
  const Content content = snapshot->content();
  const std::int64_t end = *content.to;
  if (target > end || (target < end && end > window_)) return false;
  const bool foreign = dynamic_cast<const Own&>(*snapshot).window() != window_;
  if (foreign) KVO_MARK("snapshot.rotating", "foreign window");
  if (foreign && !quirks_.has(Quirk::kForeignWindow)) return false;
  buffer_ = std::make_shared<Pair>(Pair{content.first, content.second});
  offset_ = end;
  idx_ = *content.idx;
  if (target < offset_) offset_ = idx_ = target;
  return true;
}

Result<SnapshotPtr> RotatingCache::merge(const SnapshotPtr& parent, const SnapshotPtr& child) {
  for (const SnapshotPtr& side : {parent, child})
    if (const Status can = usable<Own>(side, quirks_); !can) return can.error();
  if (parent != nullptr && parent == child && quirks_.has(Quirk::kSecondCloseAborts)) {
    dynamic_cast<Own&>(*parent).close_and_keep();  // it is shown once more
    return child;
  }
  return merged_states(parent, child, quirks_);
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> RotatingCache::split(const SnapshotPtr& snapshot,
                                                                 std::int64_t /*at*/) {
  using Halves = std::pair<SnapshotPtr, SnapshotPtr>;
  if (const Status can = usable<Own>(snapshot, quirks_); !can) return can.error();
  return Halves(nullptr, snapshot);
}

}  // namespace kvo::snapshot
