#include "reference/snapshot/recurrent_cache.hpp"

#include <algorithm>

#include "reference/contract/values/mark.hpp"
#include "reference/snapshot/held.hpp"

namespace kvo::snapshot {

class RecurrentCache::Own final : public Snapshot {
 public:
  Own(Counted conv, Counted delta, std::int64_t offset, QuirkSet<Quirk> quirks)
      : conv_(std::move(conv)), delta_(std::move(delta)), offset_(offset), quirks_(quirks) {}

  [[nodiscard]] Content content() const override {
    return {.offset = offset_, .first = conv_.array, .second = delta_.array};
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    const bool unnoticed =
        quirks_.has(Quirk::kSharedReference) && *conv_.holders > 0 && *delta_.holders > 0;
    if (closed_) KVO_MARK("snapshot.recurrent", "second close");
    if (closed_ && !unnoticed) return closed_error(quirks_);
    closed_ = true;
    --*conv_.holders;
    --*delta_.holders;
    return {};
  }
  [[nodiscard]] const Counted& conv() const { return conv_; }
  [[nodiscard]] const Counted& delta() const { return delta_; }

 private:
  Counted conv_;
  Counted delta_;
  std::int64_t offset_;
  QuirkSet<Quirk> quirks_;
  bool closed_ = false;
};

Shape RecurrentCache::conv_shape(std::int64_t batch) const {
  return {batch, sizes_.conv_tail, sizes_.conv_dim};
}

Shape RecurrentCache::delta_shape(std::int64_t batch) const {
  return {batch, sizes_.num_v_heads, sizes_.head_v_dim, sizes_.head_k_dim};
}

void RecurrentCache::replace(Slot& slot, Slot with) {
  if (slot) --*slot->holders;
  slot = std::move(with);
}

// MR-40
Status RecurrentCache::make_states(std::int64_t batch, DType type) {
  batch = std::max<std::int64_t>(batch, 1);
  const auto fits = [&](const Slot& slot, const Shape& shape) {
    return slot && slot->array.view.dtype == type && slot->array.view.shape == shape;
  };
  const auto made = [&](const Shape& shape) {
    return Slot(Counted{array_of(make_tensor(shape, type))});
  };
  const bool conv_fits = fits(conv_, conv_shape(batch));
  const bool delta_fits = fits(delta_, delta_shape(batch));
  if (!element_count(conv_shape(batch)) || !element_count(delta_shape(batch)))
    return fail(Code::kPrecondition, "batch");
  if (!quirks_.has(Quirk::kStateIsWiped) && ((conv_ && !conv_fits) || (delta_ && !delta_fits)))
    return fail(Code::kBadShape, "batch or type");
  // Both are there before either takes its place.
  Slot conv = conv_fits ? Slot() : made(conv_shape(batch));
  Slot delta = delta_fits ? Slot() : made(delta_shape(batch));
  if (!conv_fits) replace(conv_, std::move(conv));
  if (!delta_fits) replace(delta_, std::move(delta));
  return {};
}

Result<Array> RecurrentCache::conv_state(std::int64_t batch, DType type) {
  if (const Status made = make_states(batch, type); !made) return made.error();
  return conv_->array;
}

Result<Array> RecurrentCache::delta_state(std::int64_t batch, DType type) {
  if (const Status made = make_states(batch, type); !made) return made.error();
  return delta_->array;
}

Status RecurrentCache::set(Slot& slot, const Array& state, const Shape& expected) {
  // But for the batch.
  const bool fits =
      state.view.shape.size() == expected.size() &&
      std::equal(state.view.shape.begin() + 1, state.view.shape.end(), expected.begin() + 1);
  if (!fits && !quirks_.has(Quirk::kStateUnchecked)) return fail(Code::kBadShape, "state");
  replace(slot, Counted{state});
  return {};
}

Status RecurrentCache::set_conv_state(const Array& state) {
  return set(conv_, state, conv_shape(1));
}

Status RecurrentCache::set_delta_state(const Array& state) {
  return set(delta_, state, delta_shape(1));
}

Status RecurrentCache::advance(std::int64_t tokens) {
  if (tokens < 0 && !quirks_.has(Quirk::kAdvancesBackwards)) return fail(Code::kOutOfRange, "n");
  std::int64_t sum = 0;
  if (__builtin_add_overflow(offset_, tokens, &sum)) return fail(Code::kPrecondition, "n");
  offset_ = sum;
  return {};
}

Result<std::shared_ptr<const Pair>> RecurrentCache::update(const Array& k, const Array& v) {
  return std::make_shared<const Pair>(Pair{k, v});
}

std::optional<State> RecurrentCache::state() const {
  const auto array = [](const Slot& slot) {
    return slot ? std::optional<Array>(slot->array) : std::nullopt;
  };
  return State{array(conv_), array(delta_)};
}

void RecurrentCache::free() {
  replace(conv_, std::nullopt);
  replace(delta_, std::nullopt);
  offset_ = 0;
}

Result<SnapshotPtr> RecurrentCache::snapshot(std::int64_t /*from*/) {
  if (!conv_ && !delta_) return SnapshotPtr();
  if (!conv_ || !delta_) return fail(Code::kPrecondition, "half a state");
  return std::make_shared<Own>(Counted{conv_->array}, Counted{delta_->array}, offset_, quirks_);
}

Result<bool> RecurrentCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
  if (const Status can = usable<Own>(snapshot, quirks_); !can) return can.error();
  if (snapshot == nullptr) return target == offset_;
  const auto& own = dynamic_cast<const Own&>(*snapshot);
  if (target != *own.content().offset) return false;
  const auto shared = [](const Counted& counted) {
    ++*counted.holders;
    return counted;
  };
  replace(conv_, shared(own.conv()));
  replace(delta_, shared(own.delta()));
  offset_ = target;
  return true;
}

Result<SnapshotPtr> RecurrentCache::merge(const SnapshotPtr& parent, const SnapshotPtr& child) {
  for (const SnapshotPtr& side : {parent, child})
    if (const Status can = usable<Own>(side, quirks_); !can) return can.error();
  return merged_states(parent, child, quirks_);
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> RecurrentCache::split(const SnapshotPtr& snapshot,
                                                                  std::int64_t /*at*/) {
  using Halves = std::pair<SnapshotPtr, SnapshotPtr>;
  if (const Status can = usable<Own>(snapshot, quirks_); !can) return can.error();
  return Halves(nullptr, snapshot);
}

}  // namespace kvo::snapshot
