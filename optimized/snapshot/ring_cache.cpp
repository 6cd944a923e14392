#include "optimized/snapshot/ring_cache.hpp"

#include "reference/snapshot/held.hpp"

namespace kvo::optimized {

using snapshot::Array;
using snapshot::Pair;
using snapshot::Quirk;
using snapshot::SnapshotPtr;

Result<std::shared_ptr<const Pair>> SnapshotRingCache::add(const Array& k, const Array& v) {
  auto shown = std::make_shared<Pair>();
  // Most tokens come one by one, and take a slot that nobody else sees.
  const std::int64_t slot = idx_ < window_ ? idx_ : 0;
  const std::int64_t size = slots_.k.size();
  const bool stays = size == window_ || (size < window_ && offset_ < size);
  const bool shown_whole = slot == offset_ || (slots_.k.is_full() && slots_.v.is_full());
  const bool plain = stays && shown_whole && live_.expired();
  if (plain && slots_.take_in_place(slot, k, v)) {
    idx_ = slot + 1;
    slots_.show(std::min(++offset_, window_), *shown);
    return std::shared_ptr<const Pair>(std::move(shown));
  }
  const RowForm* k_form = slots_.exists() ? &slots_.k.form() : nullptr;
  const RowForm* v_form = slots_.exists() ? &slots_.v.form() : nullptr;
  if (const Status fit = snapshot::rows_fit({k, v}, k_form, v_form, quirks_); !fit)
    return fit.error();
  const bool chunk = snapshot::tokens_of(k) > 1;
  const bool nothing = snapshot::tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMovesTheRing);
  const std::shared_ptr<Pair> live = live_.lock();
  const bool shows_live = chunk && quirks_.has(Quirk::kLiveChunk);
  if (shows_live && live) shown = live;
  if (nothing) {
    *shown = slots_.exists() ? slots_.pair(0, offset_) : Pair{k, v};
    return std::shared_ptr<const Pair>(std::move(shown));
  }
  snapshot::SidesChange change = slots_.change();
  snapshot::RingPlace place{.window = window_, .offset = offset_, .idx = idx_};
  (chunk ? snapshot::write_chunk : snapshot::write_single)(change, place, k, v, quirks_);
  if (live) {
    change.k.show(change.k.size());
    change.v.show(change.v.size());
  }
  slots_.apply(change);
  offset_ = place.offset;
  idx_ = place.idx;
  const auto whole = [](const Slots& slots) { return slots.range(0, slots.size()).array(); };
  if (shows_live) live_ = shown;
  if (live || shows_live) *(live ? live : shown) = {whole(slots_.k), whole(slots_.v)};
  if (!shows_live) *shown = slots_.pair(0, place.seen);
  return std::shared_ptr<const Pair>(std::move(shown));
}

std::optional<snapshot::State> SnapshotRingCache::state() const {
  if (!slots_.exists()) return std::nullopt;
  Pair shown = slots_.pair(0, offset_);
  return snapshot::State{std::move(shown.k), std::move(shown.v)};
}

void SnapshotRingCache::free() {
  slots_.clear();
  live_.reset();
  offset_ = idx_ = 0;
}

Result<SnapshotPtr> SnapshotRingCache::snapshot(std::int64_t from) {
  if (!slots_.exists() || offset_ <= from) return SnapshotPtr();
  return std::make_shared<Own>(
      Own::Place{.from = from, .to = offset_, .idx = idx_, .window = window_},
      slots_.k.range(0, offset_), slots_.v.range(0, offset_), quirks_);
}

Result<bool> SnapshotRingCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  if (target < 0) return false;
  if (snapshot == nullptr) {
    if (target >= offset_) return target == offset_;
    if (offset_ > window_) return false;
    offset_ = idx_ = target;
    return true;
  }
  const auto& own = dynamic_cast<const Own&>(*snapshot);
  const auto [from, end, idx, window] = own.place();
  if (target > end || (target < end && end > window_)) return false;
  if (window != window_ && !quirks_.has(Quirk::kForeignWindow)) return false;
  slots_.k.replace(own.k());
  slots_.v.replace(own.v());
  live_.reset();
  offset_ = target;
  idx_ = target < end ? target : *idx;
  return true;
}

Result<SnapshotPtr> SnapshotRingCache::merge(const SnapshotPtr& parent, const SnapshotPtr& child) {
  for (const SnapshotPtr& side : {parent, child})
    if (const Status can = snapshot::usable<Own>(side, quirks_); !can) return can.error();
  if (parent != nullptr && parent == child && quirks_.has(Quirk::kSecondCloseAborts)) {
    dynamic_cast<Own&>(*parent).close_and_keep();  // it is shown once more
    return child;
  }
  return snapshot::merged_states(parent, child, quirks_);
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> SnapshotRingCache::split(const SnapshotPtr& snapshot,
                                                                     std::int64_t /*at*/) {
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  return std::pair<SnapshotPtr, SnapshotPtr>(nullptr, snapshot);
}

}  // namespace kvo::optimized
