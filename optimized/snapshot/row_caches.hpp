// optimized/snapshot/row_caches.hpp: caches of rows and their snapshots, over a store of slots.
//
// What the caches decide is here: which rows fit, which slots change, what a snapshot covers. The
// store has both sides of a cache in its memory, and changes them together or not at all:
// SlotsPair (slots.hpp) in host memory, cuda::DeviceSides on a device. A store has
//   Memory                where it stores rows; Store(storage, memory, most) makes an empty one,
//                         of which at most `most` slots are needed for long
//   RowRange, KeptRows    rows that others share, and those of a snapshot
//   k, v                  the sides: form(), size(), shared(begin, end), replace(rows)
//   encodes, encoded      whether update must convert rows, and the rows as they are stored
//   kInPlace, is_full, take_in_place  whether single rows have a faster path, and the path
//   change, apply         a change to describe; makes it and returns slots [0, end)
//   put_shared            makes a change whose rows are those of a snapshot
//   read, look            slots [0, end); the rows of a snapshot
//   forget_from           slots from there on need not be stored any more
//   joined                one range of two
// Errors of a store are kOutOfMemory and those of a device. Reads that cannot return them throw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "reference/snapshot/cache.hpp"
#include "reference/snapshot/held.hpp"
#include "reference/snapshot/slots_change.hpp"

namespace kvo::optimized {

/// A snapshot of rows. `Issuer` separates the kinds (MR-5). Taking one costs the same for any
/// number of rows: they are shared.
template <class Issuer, class Store>
class RowsSnapshot final : public snapshot::Snapshot {
 public:
  /// Which tokens its rows are, and what a ring needs.
  struct Place {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::optional<std::int64_t> idx = std::nullopt;
    std::int64_t window = 0;
  };
  using RowRange = typename Store::RowRange;

  RowsSnapshot(const Place& place, RowRange k, RowRange v, QuirkSet<snapshot::Quirk> quirks)
      : place_(place), k_(std::move(k)), v_(std::move(v)), quirks_(quirks) {}

  [[nodiscard]] snapshot::Content content() const override {
    snapshot::Pair shown = Store::look(k(), v());
    return {.from = place_.from,
            .to = place_.to,
            .idx = place_.idx,
            .first = std::move(shown.k),
            .second = std::move(shown.v)};
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    if (closed_) return snapshot::closed_error(quirks_);
    closed_ = true;
    k_.drop();
    v_.drop();
    return {};
  }
  /// Closed, but its content can still be read (MR-28, profile original).
  void close_and_keep() { closed_ = true; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const RowRange& k() const { return k_.rows(); }
  [[nodiscard]] const RowRange& v() const { return v_.rows(); }

 private:
  Place place_;
  typename Store::KeptRows k_;
  typename Store::KeptRows v_;
  QuirkSet<snapshot::Quirk> quirks_;
  bool closed_ = false;
};

/// What both caches have. `Self` is the cache, with add(k, v): an update with rows as they are
/// stored.
template <class Self, class Store>
class RowsCache : public snapshot::Cache {
 public:
  using Array = snapshot::Array;
  using Pair = snapshot::Pair;
  using Quirk = snapshot::Quirk;
  using SnapshotPtr = snapshot::SnapshotPtr;
  using Shown = std::shared_ptr<const Pair>;
  using Own = RowsSnapshot<Self, Store>;

  [[nodiscard]] Result<Shown> update(const Array& k, const Array& v) override {
    if (!store_.encodes()) return static_cast<Self*>(this)->add(k, v);
    const auto rows = store_.encoded(k, v, quirks_);
    if (!rows) return rows.error();
    return static_cast<Self*>(this)->add(rows->k, rows->v);
  }
  [[nodiscard]] std::optional<snapshot::State> state() const override {
    if (!store_.exists()) return std::nullopt;
    Pair shown = store_.read(offset_);
    return snapshot::State{std::move(shown.k), std::move(shown.v)};
  }
  [[nodiscard]] std::int64_t offset() const override { return offset_; }

 protected:
  RowsCache(const StorageFormat& storage, QuirkSet<Quirk> quirks,
            const typename Store::Memory& memory, std::int64_t most)
      : quirks_(quirks), store_(storage, memory, most) {}

  /// Whether rows have the shape of those that are stored (MR-A6).
  [[nodiscard]] Status shaped(const Array& k, const Array& v) const {
    const bool exists = store_.exists();
    return snapshot::rows_fit({k, v}, exists ? &store_.k.form() : nullptr,
                              exists ? &store_.v.form() : nullptr, quirks_);
  }
  [[nodiscard]] Status usable(const SnapshotPtr& first, const SnapshotPtr& second = nullptr) const {
    const Status can = snapshot::usable<Own>(first, quirks_);
    return can ? snapshot::usable<Own>(second, quirks_) : can;
  }
  /// Requires  usable().
  [[nodiscard]] static Own& own(const SnapshotPtr& snapshot) {
    return static_cast<Own&>(*snapshot);
  }

  QuirkSet<Quirk> quirks_;
  Store store_;
  std::int64_t offset_ = 0;
};

/// A cache of all tokens (MR-10 to MR-17) that appends in place, and whose snapshots share its
/// rows.
template <class Store>
class SnapshotKv final : public RowsCache<SnapshotKv<Store>, Store> {
  using Base = RowsCache<SnapshotKv, Store>;
  using Base::offset_, Base::own, Base::quirks_, Base::store_, Base::usable;
  using typename Base::Array, typename Base::Own, typename Base::Pair, typename Base::Quirk,
      typename Base::Shown, typename Base::SnapshotPtr;
  using RowRange = typename Store::RowRange;
  using Halves = std::pair<SnapshotPtr, SnapshotPtr>;

 public:
  SnapshotKv(const StorageFormat& storage, QuirkSet<Quirk> quirks,
             const typename Store::Memory& memory)
      : Base(storage, quirks, memory, std::numeric_limits<std::int64_t>::max()) {}

  [[nodiscard]] Result<Shown> add(const Array& k, const Array& v) {
    auto shown = std::make_shared<Pair>();
    if constexpr (Store::kInPlace) {
      // Most tokens come one by one, and fit behind the others.
      if (store_.take_in_place(offset_, k, v)) {
        store_.show(++offset_, *shown);
        return Shown(std::move(shown));
      }
    }
    if (const Status fit = fits(k, v); !fit) return fit.error();
    const bool nothing = snapshot::tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMakesABuffer);
    if (nothing && !store_.exists()) {
      *shown = {k, v};
      return Shown(std::move(shown));
    }
    const std::int64_t end = offset_ + snapshot::tokens_of(k);
    snapshot::SidesChange change = store_.change();
    if (!nothing) snapshot::append_rows(change, offset_, k, v);
    auto made = store_.apply(change, end);
    if (!made) return made.error();
    offset_ = end;
    *shown = std::move(*made);
    return Shown(std::move(shown));
  }

  void free() override {
    store_.clear();
    offset_ = 0;
  }

  [[nodiscard]] Result<SnapshotPtr> snapshot(std::int64_t from) override {
    if (!store_.exists() || offset_ <= from) return SnapshotPtr();
    const std::int64_t begin = std::max<std::int64_t>(from, 0);
    return std::make_shared<Own>(typename Own::Place{.from = begin, .to = offset_},
                                 store_.k.shared(begin, offset_), store_.v.shared(begin, offset_),
                                 quirks_);
  }

  [[nodiscard]] Result<bool> restore(const SnapshotPtr& snapshot, std::int64_t target) override {
    if (const Status can = usable(snapshot); !can) return can.error();
    // Rows behind offset can be seen again only where others are lost.
    const bool forgets = !quirks_.has(Quirk::kMisfitIsSilent);
    if (snapshot == nullptr) {
      if (target < 0 || target > offset_) return false;
      offset_ = target;
      if (forgets) store_.forget_from(target);
      return true;
    }
    const auto& [from, to, idx, window] = own(snapshot).place();
    const RowRange& k_rows = own(snapshot).k();
    const RowRange& v_rows = own(snapshot).v();
    if (target < 0 || target > to || offset_ < from) return false;
    if (target < from && !quirks_.has(Quirk::kRestoresBelowFrom)) return false;
    const Array k = k_rows.array();
    const Array v = v_rows.array();
    if (const Status fit = fits(k, v); !fit) return fit.error();
    snapshot::SidesChange change = store_.change();
    snapshot::append_rows(change, from, k, v);
    if (forgets) {
      change.k.forget_from(from);
      change.v.forget_from(from);
    }
    if (Status put = store_.put_shared(change, from, k_rows, v_rows); !put) return put.error();
    offset_ = std::min(from + k_rows.count, target);
    if (forgets) store_.forget_from(offset_);
    return true;
  }

  [[nodiscard]] Result<SnapshotPtr> merge(const SnapshotPtr& parent,
                                          const SnapshotPtr& child) override {
    if (const Status can = usable(parent, child); !can) return can.error();
    if (parent == nullptr || child == nullptr) {
      const SnapshotPtr& left = parent != nullptr ? parent : child;
      if (left == nullptr || !quirks_.has(Quirk::kMergeLosesOneSide)) return left;
      if (const Status done = left->close(); !done) return done.error();
      return SnapshotPtr();
    }
    const bool unchecked = quirks_.has(Quirk::kMergeUnchecked);
    if (parent == child && unchecked) return snapshot::closed_error(quirks_);
    const Own& front = own(parent);
    const Own& back = own(child);
    if (parent == child || (front.place().to != back.place().from && !unchecked))
      return fail(Code::kBadPosition, "child");
    if (!front.k().form.same_shape(back.k().form) || !front.v().form.same_shape(back.v().form))
      return fail(quirks_.has(Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
                  "k, v");
    auto k = joined(front.k(), back.k());
    if (!k) return k.error();
    auto v = joined(front.v(), back.v());
    if (!v) return v.error();
    SnapshotPtr merged = std::make_shared<Own>(
        typename Own::Place{.from = front.place().from, .to = back.place().to}, std::move(*k),
        std::move(*v), quirks_);
    (void)parent->close();
    (void)child->close();
    return merged;
  }

  [[nodiscard]] Result<Halves> split(const SnapshotPtr& snapshot, std::int64_t at) override {
    if (const Status can = usable(snapshot); !can) return can.error();
    if (snapshot == nullptr) return Halves();
    const Own& whole = own(snapshot);
    const std::int64_t from = whole.place().from;
    const std::int64_t to = whole.place().to;
    if (at <= from) return Halves(nullptr, snapshot);
    if (at >= to) return Halves(snapshot, nullptr);
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      return std::make_shared<Own>(typename Own::Place{.from = begin, .to = end},
                                   whole.k().part(begin - from, end - from),
                                   whole.v().part(begin - from, end - from), quirks_);
    };
    Halves halves(part(from, at), part(at, to));
    if (const Status done = snapshot->close(); !done) return done.error();
    return halves;
  }

 private:
  [[nodiscard]] Status fits(const Array& k, const Array& v) const {
    const bool axes = k.view.shape.size() == 4 && v.view.shape.size() == 4;
    if (axes && store_.exists() && !quirks_.has(Quirk::kTypeWidens) &&
        (snapshot::wider(k.view.dtype, store_.k.form().type) ||
         snapshot::wider(v.view.dtype, store_.v.form().type)))
      return fail(Code::kBadShape, "type");
    return this->shaped(k, v);
  }

  /// One range of two, whose rows are copied unless one continues the other.
  [[nodiscard]] Result<RowRange> joined(const RowRange& first, const RowRange& second) const {
    RowRange all = first;
    all.count += second.count;
    if (first.form == second.form &&
        (second.count == 0 ||
         (first.block == second.block && first.begin + first.count == second.begin)))
      return all;
    if (snapshot::wider(second.form.type, first.form.type)) all.form.type = second.form.type;
    return store_.joined(first, second, all.form);
  }
};

/// A ring of the newest tokens (MR-20 to MR-30) that is written in place. Only a chunk after single
/// tokens that have wrapped puts it in order, because the rules show it so (MR-21).
template <class Store>
class SnapshotRing final : public RowsCache<SnapshotRing<Store>, Store> {
  using Base = RowsCache<SnapshotRing, Store>;
  using Base::offset_, Base::own, Base::quirks_, Base::store_, Base::usable;
  using typename Base::Array, typename Base::Own, typename Base::Pair, typename Base::Quirk,
      typename Base::Shown, typename Base::SnapshotPtr;

 public:
  SnapshotRing(std::int64_t window, const StorageFormat& storage, QuirkSet<Quirk> quirks,
               const typename Store::Memory& memory)
      : Base(storage, quirks, memory, std::max<std::int64_t>(window, 1)), window_(window) {}

  [[nodiscard]] Result<Shown> add(const Array& k, const Array& v) {
    auto shown = std::make_shared<Pair>();
    if constexpr (Store::kInPlace) {
      // Most tokens come one by one, and take a slot that is not shared.
      const std::int64_t slot = idx_ < window_ ? idx_ : 0;
      const std::int64_t size = store_.k.size();
      const bool stays = size == window_ || (size < window_ && offset_ < size);
      if (stays && (slot == offset_ || store_.is_full()) && live_.expired() &&
          store_.take_in_place(slot, k, v)) {
        idx_ = slot + 1;
        store_.show(std::min(++offset_, window_), *shown);
        return Shown(std::move(shown));
      }
    }
    if (const Status fit = this->shaped(k, v); !fit) return fit.error();
    const bool chunk = snapshot::tokens_of(k) > 1;
    const bool nothing = snapshot::tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMovesTheRing);
    if (nothing && !store_.exists()) {
      *shown = {k, v};
      return Shown(std::move(shown));
    }
    const std::shared_ptr<Pair> live = live_.lock();
    const bool shows_live = chunk && quirks_.has(Quirk::kLiveChunk);
    if (shows_live && live) shown = live;
    snapshot::SidesChange change = store_.change();
    snapshot::RingPlace place{.window = window_, .offset = offset_, .idx = idx_, .seen = offset_};
    if (!nothing)
      (chunk ? snapshot::write_chunk : snapshot::write_single)(change, place, k, v, quirks_);
    const std::int64_t most = std::max(change.k.size(), change.v.size());
    if (live) {
      change.k.show(change.k.size());
      change.v.show(change.v.size());
    }
    auto made = store_.apply(change, live || shows_live ? most : place.seen);
    if (!made) return made.error();
    offset_ = place.offset;
    idx_ = place.idx;
    if (shows_live) live_ = shown;
    if (live || shows_live)
      *(live ? live : shown) = *made;
    else
      *shown = *made;
    if (live && !shows_live)
      *shown = {snapshot::sliced(made->k, 0, place.seen), snapshot::sliced(made->v, 0, place.seen)};
    return Shown(std::move(shown));
  }

  void free() override {
    store_.clear();
    live_.reset();
    offset_ = idx_ = 0;
  }

  [[nodiscard]] Result<SnapshotPtr> snapshot(std::int64_t from) override {
    if (!store_.exists() || offset_ <= from) return SnapshotPtr();
    return std::make_shared<Own>(
        typename Own::Place{.from = from, .to = offset_, .idx = idx_, .window = window_},
        store_.k.shared(0, offset_), store_.v.shared(0, offset_), quirks_);
  }

  [[nodiscard]] Result<bool> restore(const SnapshotPtr& snapshot, std::int64_t target) override {
    if (const Status can = usable(snapshot); !can) return can.error();
    if (target < 0) return false;
    if (snapshot == nullptr) {
      if (target >= offset_) return target == offset_;
      if (offset_ > window_) return false;
      offset_ = idx_ = target;
      return true;
    }
    const auto [from, end, idx, window] = own(snapshot).place();
    if (target > end || (target < end && end > window_)) return false;
    if (window != window_ && !quirks_.has(Quirk::kForeignWindow)) return false;
    store_.k.replace(own(snapshot).k());
    store_.v.replace(own(snapshot).v());
    live_.reset();
    offset_ = target;
    idx_ = target < end ? target : *idx;
    return true;
  }

  [[nodiscard]] Result<SnapshotPtr> merge(const SnapshotPtr& parent,
                                          const SnapshotPtr& child) override {
    if (const Status can = usable(parent, child); !can) return can.error();
    if (parent != nullptr && parent == child && quirks_.has(Quirk::kSecondCloseAborts)) {
      own(parent).close_and_keep();  // it is shown once more
      return child;
    }
    return snapshot::merged_states(parent, child, quirks_);
  }

  [[nodiscard]] Result<std::pair<SnapshotPtr, SnapshotPtr>> split(const SnapshotPtr& snapshot,
                                                                  std::int64_t /*at*/) override {
    if (const Status can = usable(snapshot); !can) return can.error();
    return std::pair<SnapshotPtr, SnapshotPtr>(nullptr, snapshot);
  }

 private:
  std::int64_t window_;
  std::int64_t idx_ = 0;                     ///< slot that is written next
  std::weak_ptr<snapshot::Pair> live_ = {};  ///< a chunk's rows that show the ring of now (MR-23)
};

/// Both caches, and no cache of a recurrent state.
template <class Store>
[[nodiscard]] snapshot::MakeCaches caches_over(const typename Store::Memory& memory) {
  using Quirks = QuirkSet<snapshot::Quirk>;
  return {.kv =
              [memory](const StorageFormat& storage, Quirks quirks) {
                return std::make_unique<SnapshotKv<Store>>(storage, quirks, memory);
              },
          .rotating =
              [memory](std::int64_t window, const StorageFormat& storage, Quirks quirks) {
                return std::make_unique<SnapshotRing<Store>>(window, storage, quirks, memory);
              },
          .recurrent = nullptr,
          .stores = Store::stores};
}

}  // namespace kvo::optimized
