#include "cuda/snapshot/kv_device_cache.hpp"

#include <algorithm>

#include "cuda/jobs/cells.hpp"
#include "reference/snapshot/held.hpp"

namespace kvo::cuda {

using snapshot::Array;
using snapshot::Pair;
using snapshot::Quirk;
using snapshot::RowForm;
using snapshot::SidesChange;
using snapshot::SnapshotPtr;

Status SnapshotKvDeviceCache::fits(const Array& k, const Array& v) const {
  const bool axes = k.view.shape.size() == 4 && v.view.shape.size() == 4;
  if (axes && sides_.exists() && !quirks_.has(Quirk::kTypeWidens) &&
      (snapshot::wider(k.view.dtype, sides_.k_form()->type) ||
       snapshot::wider(v.view.dtype, sides_.v_form()->type)))
    return fail(Code::kBadShape, "type");
  return snapshot::rows_fit({k, v}, sides_.k_form(), sides_.v_form(), quirks_);
}

Result<std::shared_ptr<const Pair>> SnapshotKvDeviceCache::add(const Array& k, const Array& v) {
  if (const Status held = holdable(k, v); !held) return held.error();
  if (const Status fit = fits(k, v); !fit) return fit.error();
  auto shown = std::make_shared<Pair>(Pair{k, v});
  const bool nothing = snapshot::tokens_of(k) == 0 && !quirks_.has(Quirk::kNothingMakesABuffer);
  if (nothing && !sides_.exists()) return std::shared_ptr<const Pair>(std::move(shown));
  const std::int64_t end = offset_ + snapshot::tokens_of(k);
  SidesChange change = sides_.change();
  if (!nothing) snapshot::append_rows(change, offset_, k, v);
  auto read = sides_.apply(change, end);
  if (!read) return read.error();
  offset_ = end;
  *shown = std::move(*read);
  return std::shared_ptr<const Pair>(std::move(shown));
}

std::optional<snapshot::State> SnapshotKvDeviceCache::state() const {
  if (!sides_.exists()) return std::nullopt;
  Pair shown = demanded(sides_.read(offset_));
  return snapshot::State{std::move(shown.k), std::move(shown.v)};
}

void SnapshotKvDeviceCache::free() {
  sides_.clear();
  offset_ = 0;
}

Result<SnapshotPtr> SnapshotKvDeviceCache::snapshot(std::int64_t from) {
  if (!sides_.exists() || offset_ <= from) return SnapshotPtr();
  const std::int64_t begin = std::max<std::int64_t>(from, 0);
  return std::make_shared<Own>(Own::Place{.from = begin, .to = offset_}, sides_.device(),
                               sides_.k().shared(begin, offset_), sides_.v().shared(begin, offset_),
                               quirks_);
}

Result<bool> SnapshotKvDeviceCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  if (snapshot == nullptr) {
    if (target < 0 || target > offset_) return false;
    offset_ = target;
    return true;
  }
  const auto& own = dynamic_cast<const Own&>(*snapshot);
  const std::int64_t from = own.place().from;
  if (target < 0 || target > own.place().to || offset_ < from) return false;
  if (target < from && !quirks_.has(Quirk::kRestoresBelowFrom)) return false;
  const Array k = own.k().form();
  const Array v = own.v().form();
  if (const Status fit = fits(k, v); !fit) return fit.error();
  const bool there = own.k().count == own.v().count && sides_.k().holds(own.k(), from) &&
                     sides_.v().holds(own.v(), from);
  if (!there) {
    SidesChange change = sides_.change();
    snapshot::append_rows(change, from, k, v);
    if (Status done = sides_.apply(change, own.k(), own.v()); !done) return done.error();
  }
  offset_ = std::min(from + own.k().count, target);
  return true;
}

Result<RowRange> SnapshotKvDeviceCache::joined(const RowRange& first,
                                               const RowRange& second) const {
  const RowForm& front = first.block->form();
  const RowForm& behind = second.block->form();
  const std::int64_t count = first.count + second.count;
  const bool adjoin = first.block == second.block && first.begin + first.count == second.begin;
  if (adjoin || (front == behind && second.count == 0))
    return RowRange{first.block, first.begin, count};
  RowForm form = front;
  if (snapshot::wider(behind.type, front.type)) form.type = behind.type;
  auto made = RowBlock::make(sides_.device(), form, count);
  if (!made) return made.error();
  RowBlock& block = **made;
  block.used = count;
  Device& device = *sides_.device();
  std::int64_t at = 0;
  Status queued;
  for (const RowRange* rows : {&first, &second}) {
    const DType type = rows->block->form().type;
    const DevicePtr from = rows->block->row(rows->begin);
    if (queued && rows->count > 0 && form.bytes() > 0)
      queued = type == form.type ? device.copy(block.row(at), from, rows->count * form.bytes())
                                 : device.run(convert_cells(block.row(at), form.type, from, type,
                                                            rows->count * form.elements()));
    at += rows->count;
  }
  const Status done = device.synchronize(Stream());
  if (!queued) return error_of_device(queued.error());
  if (!done) return error_of_device(done.error());
  return RowRange{*made, 0, count};
}

Result<SnapshotPtr> SnapshotKvDeviceCache::merge(const SnapshotPtr& parent,
                                                 const SnapshotPtr& child) {
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
  const auto alike = [](const RowRange& a, const RowRange& b) {
    return a.block->form().same_shape(b.block->form());
  };
  if (!alike(before.k(), behind.k()) || !alike(before.v(), behind.v()))
    return fail(quirks_.has(Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
                "k, v");
  auto k = joined(before.k(), behind.k());
  if (!k) return k.error();
  auto v = joined(before.v(), behind.v());
  if (!v) return v.error();
  SnapshotPtr merged =
      std::make_shared<Own>(Own::Place{.from = before.place().from, .to = behind.place().to},
                            sides_.device(), std::move(*k), std::move(*v), quirks_);
  (void)parent->close();
  (void)child->close();
  return merged;
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> SnapshotKvDeviceCache::split(
    const SnapshotPtr& snapshot, std::int64_t at) {
  using Halves = std::pair<SnapshotPtr, SnapshotPtr>;
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  if (snapshot == nullptr) return Halves();
  const auto& whole = dynamic_cast<const Own&>(*snapshot);
  const std::int64_t from = whole.place().from;
  const std::int64_t to = whole.place().to;
  if (at <= from) return Halves(nullptr, snapshot);
  if (at >= to) return Halves(snapshot, nullptr);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return std::make_shared<Own>(Own::Place{.from = from + begin, .to = from + end},
                                 sides_.device(), whole.k().part(begin, end),
                                 whole.v().part(begin, end), quirks_);
  };
  Halves halves(part(0, at - from), part(at - from, to - from));
  if (const Status done = snapshot->close(); !done) return done.error();
  return halves;
}

}  // namespace kvo::cuda
