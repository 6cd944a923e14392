#include "cuda/snapshot/ring_device_cache.hpp"

#include "reference/snapshot/held.hpp"

namespace kvo::cuda {

using snapshot::Array;
using snapshot::Pair;
using snapshot::Quirk;
using snapshot::SnapshotPtr;

Result<std::shared_ptr<const Pair>> SnapshotRingDeviceCache::add(const Array& k, const Array& v) {
  if (const Status held = holdable(k, v); !held) return held.error();
  const Status fit = snapshot::rows_fit({k, v}, sides_.k_form(), sides_.v_form(), quirks_);
  if (!fit) return fit.error();
  const bool chunk = snapshot::tokens_of(k) > 1;
  const bool nothing = snapshot::tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMovesTheRing);
  auto shown = std::make_shared<Pair>(Pair{k, v});
  if (nothing && !sides_.exists()) return std::shared_ptr<const Pair>(std::move(shown));

  const std::shared_ptr<Pair> live = live_.lock();
  const bool shows_live = chunk && quirks_.has(Quirk::kLiveChunk);
  if (shows_live && live) shown = live;
  snapshot::SidesChange change = sides_.change();
  snapshot::RingPlace place{.window = window_, .offset = offset_, .idx = idx_, .seen = offset_};
  if (chunk)
    snapshot::write_chunk(change, place, k, v, quirks_);
  else if (!nothing)
    snapshot::write_single(change, place, k, v, quirks_);
  const bool whole = live || shows_live;
  const std::int64_t most = std::max(change.k.size(), change.v.size());
  auto read = sides_.apply(change, whole ? most : place.seen);
  if (!read) return read.error();
  offset_ = place.offset;
  idx_ = place.idx;
  if (shows_live) live_ = shown;
  if (whole) *(live ? live : shown) = *read;
  if (!shows_live)
    *shown = {snapshot::sliced(read->k, 0, place.seen), snapshot::sliced(read->v, 0, place.seen)};
  return std::shared_ptr<const Pair>(std::move(shown));
}

std::optional<snapshot::State> SnapshotRingDeviceCache::state() const {
  if (!sides_.exists()) return std::nullopt;
  Pair shown = demanded(sides_.read(offset_));
  return snapshot::State{std::move(shown.k), std::move(shown.v)};
}

void SnapshotRingDeviceCache::free() {
  sides_.clear();
  live_.reset();
  offset_ = idx_ = 0;
}

Result<SnapshotPtr> SnapshotRingDeviceCache::snapshot(std::int64_t from) {
  if (!sides_.exists() || offset_ <= from) return SnapshotPtr();
  return std::make_shared<Own>(
      Own::Place{.from = from, .to = offset_, .idx = idx_, .window = window_}, sides_.device(),
      sides_.k().shared(0, offset_), sides_.v().shared(0, offset_), quirks_);
}

Result<bool> SnapshotRingDeviceCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
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
  sides_.k().replace(own.k());
  sides_.v().replace(own.v());
  live_.reset();
  offset_ = target;
  idx_ = target < end ? target : *idx;
  return true;
}

Result<SnapshotPtr> SnapshotRingDeviceCache::merge(const SnapshotPtr& parent,
                                                   const SnapshotPtr& child) {
  for (const SnapshotPtr& side : {parent, child})
    if (const Status can = snapshot::usable<Own>(side, quirks_); !can) return can.error();
  if (parent != nullptr && parent == child && quirks_.has(Quirk::kSecondCloseAborts)) {
    dynamic_cast<Own&>(*parent).close_and_keep();  // it is shown once more
    return child;
  }
  return snapshot::merged_states(parent, child, quirks_);
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> SnapshotRingDeviceCache::split(
    const SnapshotPtr& snapshot, std::int64_t /*at*/) {
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  return std::pair<SnapshotPtr, SnapshotPtr>(nullptr, snapshot);
}

}  // namespace kvo::cuda
