#include "optimized/snapshot/ring_cache.hpp"

#include "reference/snapshot/usable.hpp"

namespace kvo::optimized {

using snapshot::Array;
using snapshot::Pair;
using snapshot::Quirk;
using snapshot::SnapshotPtr;

namespace {

constexpr std::int64_t kGrowth = 256;

}  // namespace

// MR-21
SnapshotRingCache::Turned SnapshotRingCache::with_chunk(const Array& k, const Array& v) const {
  Turned turned{.k = slots_.k.change(), .v = slots_.v.change()};
  const bool drops = offset_ <= window_ || quirks_.has(Quirk::kChunkDropsOlder);
  const bool orders = slots_.exists() && idx_ < turned.k.size();
  const std::int64_t size = orders && drops ? idx_ : turned.k.size();
  const std::int64_t idx = orders ? size : idx_;
  const std::int64_t excess = std::max<std::int64_t>(idx - window_ + 1, 0);
  const auto side = [&](SlotsChange& change, const Array& rows) {
    if (!change.exists()) {
      change.start(rows);
    } else {
      if (orders && drops) change.keep(0, idx_);
      if (orders && !drops) change.rotate(idx_);
      change.keep(excess, size);
    }
    const std::int64_t begin = change.size();
    if (change.extend(rows, snapshot::tokens_of(rows)))
      (void)change.put(begin, change.size(), rows);
    change.show(change.size());
  };
  side(turned.k, k);
  side(turned.v, v);
  turned.idx = turned.seen = turned.k.size();
  return turned;
}

// MR-22
SnapshotRingCache::Turned SnapshotRingCache::with_single(const Array& k, const Array& v) const {
  Turned turned{.k = slots_.k.change(), .v = slots_.v.change(), .idx = idx_};
  const std::int64_t held = turned.k.size();
  const bool exists = slots_.exists();
  const bool grows = !exists || (offset_ >= held && held < window_);
  const bool is_short = exists && offset_ > held && !quirks_.has(Quirk::kShortRing);
  const std::int64_t filled = is_short ? held : offset_;
  const auto grow = [&](SlotsChange& change, const Array& rows) {
    if (!exists) change.start(rows);
    if (grows) (void)change.extend(rows, std::min(kGrowth, window_ - filled));
  };
  grow(turned.k, k);
  grow(turned.v, v);
  if (grows) turned.idx = filled;
  const std::int64_t slots = turned.k.size();
  if (slots > window_) {
    turned.k.keep(slots - window_, slots);
    turned.v.keep(slots - window_, slots);
    turned.idx = window_;
  }
  if (turned.idx >= window_) turned.idx = 0;
  const std::int64_t end = turned.idx + snapshot::tokens_of(k);
  (void)turned.k.put(turned.idx, end, k);  // MR-A6
  (void)turned.v.put(turned.idx, end, v);
  const std::int64_t offset = offset_ + snapshot::tokens_of(k);
  turned.k.show(offset);
  turned.v.show(offset);
  turned.idx = end;
  turned.seen = std::min(offset, window_);
  return turned;
}

Result<std::shared_ptr<const Pair>> SnapshotRingCache::update(const Array& k, const Array& v) {
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
  if (const Status fit = rows_fit({k, v}, k_form, v_form, quirks_); !fit) return fit.error();
  const bool chunk = snapshot::tokens_of(k) > 1;
  const bool nothing = snapshot::tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMovesTheRing);
  const std::shared_ptr<Pair> live = live_.lock();
  const bool shows_live = chunk && quirks_.has(Quirk::kLiveChunk);
  if (shows_live && live) shown = live;
  if (nothing) {
    *shown = slots_.exists() ? slots_.pair(0, offset_) : Pair{k, v};
    return std::shared_ptr<const Pair>(std::move(shown));
  }
  Turned turned = chunk ? with_chunk(k, v) : with_single(k, v);
  if (live) {
    turned.k.show(turned.k.size());
    turned.v.show(turned.v.size());
  }
  slots_.apply(turned.k, turned.v);
  offset_ += snapshot::tokens_of(k);
  idx_ = turned.idx;
  const auto whole = [](const Slots& slots) { return slots.range(0, slots.size()).array(); };
  if (shows_live) live_ = shown;
  if (live || shows_live) *(live ? live : shown) = {whole(slots_.k), whole(slots_.v)};
  if (!shows_live) *shown = slots_.pair(0, turned.seen);
  return std::shared_ptr<const Pair>(std::move(shown));
}

std::optional<snapshot::State> SnapshotRingCache::state() const {
  if (!slots_.exists()) return std::nullopt;
  const Pair shown = slots_.pair(0, offset_);
  return snapshot::State{shown.k, shown.v};
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
