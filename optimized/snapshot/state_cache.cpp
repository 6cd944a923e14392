#include "optimized/snapshot/state_cache.hpp"

#include <algorithm>
#include <array>

#include "reference/snapshot/usable.hpp"

namespace kvo::optimized {

using snapshot::Array;
using snapshot::Quirk;
using snapshot::SnapshotPtr;

class SnapshotStateCache::Own final : public snapshot::Snapshot {
 public:
  Own(const Array& conv, const Array& delta, std::int64_t offset, QuirkSet<Quirk> quirks)
      : offset_(offset), quirks_(quirks) {
    conv_.array = conv;
    delta_.array = delta;
    if (!quirks.has(Quirk::kSharedReference)) return;
    conv_.holders = std::make_shared<std::int64_t>(1);
    delta_.holders = std::make_shared<std::int64_t>(1);
  }

  [[nodiscard]] snapshot::Content content() const override {
    return {.offset = offset_, .first = *conv_.array, .second = *delta_.array};
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    if (conv_.holders) {
      if (closed_ && (*conv_.holders <= 0 || *delta_.holders <= 0))
        return snapshot::closed_error(quirks_);
      --*conv_.holders;
      --*delta_.holders;
    } else if (closed_) {
      return snapshot::closed_error(quirks_);
    } else {
      conv_.array.reset();
      delta_.array.reset();
    }
    closed_ = true;
    return {};
  }
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  // What a cache that is restored holds.
  [[nodiscard]] std::pair<Held, Held> shared() const {
    if (conv_.holders) {
      ++*conv_.holders;
      ++*delta_.holders;
    }
    return {conv_, delta_};
  }

 private:
  Held conv_;
  Held delta_;
  std::int64_t offset_;
  QuirkSet<Quirk> quirks_;
  bool closed_ = false;
};

void SnapshotStateCache::Held::put(const Array& state) {
  drop();
  array = state;
}

void SnapshotStateCache::Held::drop() {
  if (holders) --*holders;
  holders = nullptr;
  array.reset();
}

// MR-40
Status SnapshotStateCache::make_missing(std::int64_t batch, DType type) {
  batch = std::max<std::int64_t>(batch, 1);
  const std::array shapes{Shape{batch, sizes_.conv_tail, sizes_.conv_dim},
                          Shape{batch, sizes_.num_v_heads, sizes_.head_v_dim, sizes_.head_k_dim}};
  const std::array states{&conv_, &delta_};
  std::array<bool, 2> fits{};
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!element_count(shapes[i])) return fail(Code::kPrecondition, "batch");
    const auto& array = states[i]->array;
    fits[i] = array && array->view.dtype == type && array->view.shape == shapes[i];
  }
  if (!quirks_.has(Quirk::kStateIsWiped))
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i]->array && !fits[i]) return fail(Code::kBadShape, "batch or type");
  // Both are there before either takes its place.
  std::array<std::optional<Array>, 2> made;
  for (std::size_t i = 0; i < states.size(); ++i)
    if (!fits[i]) made[i] = snapshot::array_of(make_tensor(shapes[i], type));
  for (std::size_t i = 0; i < states.size(); ++i)
    if (made[i]) states[i]->put(*made[i]);
  return {};
}

Result<Array> SnapshotStateCache::conv_state(std::int64_t batch, DType type) {
  if (const Status made = make_missing(batch, type); !made) return made.error();
  return *conv_.array;
}

Result<Array> SnapshotStateCache::delta_state(std::int64_t batch, DType type) {
  if (const Status made = make_missing(batch, type); !made) return made.error();
  return *delta_.array;
}

Status SnapshotStateCache::set_conv_state(const Array& state) {
  const Shape& shape = state.view.shape;
  const bool fits =
      shape.size() == 3 && shape[1] == sizes_.conv_tail && shape[2] == sizes_.conv_dim;
  if (!fits && !quirks_.has(Quirk::kStateUnchecked)) return fail(Code::kBadShape, "state");
  conv_.put(state);
  return {};
}

Status SnapshotStateCache::set_delta_state(const Array& state) {
  const Shape& shape = state.view.shape;
  const bool fits = shape.size() == 4 && shape[1] == sizes_.num_v_heads &&
                    shape[2] == sizes_.head_v_dim && shape[3] == sizes_.head_k_dim;
  if (!fits && !quirks_.has(Quirk::kStateUnchecked)) return fail(Code::kBadShape, "state");
  delta_.put(state);
  return {};
}

Status SnapshotStateCache::advance(std::int64_t tokens) {
  if (tokens < 0 && !quirks_.has(Quirk::kAdvancesBackwards)) return fail(Code::kOutOfRange, "n");
  std::int64_t sum = 0;
  if (__builtin_add_overflow(offset_, tokens, &sum)) return fail(Code::kPrecondition, "n");
  offset_ = sum;
  return {};
}

Result<std::shared_ptr<const snapshot::Pair>> SnapshotStateCache::update(const Array& k,
                                                                         const Array& v) {
  return std::make_shared<const snapshot::Pair>(snapshot::Pair{k, v});
}

std::optional<snapshot::State> SnapshotStateCache::state() const {
  return snapshot::State{conv_.array, delta_.array};
}

void SnapshotStateCache::free() {
  conv_.drop();
  delta_.drop();
  offset_ = 0;
}

Result<SnapshotPtr> SnapshotStateCache::snapshot(std::int64_t /*from*/) {
  if (!conv_.array && !delta_.array) return SnapshotPtr();
  if (!conv_.array || !delta_.array) return fail(Code::kPrecondition, "half a state");
  return std::make_shared<Own>(*conv_.array, *delta_.array, offset_, quirks_);
}

Result<bool> SnapshotStateCache::restore(const SnapshotPtr& snapshot, std::int64_t target) {
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  if (snapshot == nullptr) return target == offset_;
  const auto& own = dynamic_cast<const Own&>(*snapshot);
  if (target != own.offset()) return false;
  auto [conv, delta] = own.shared();
  conv_.drop();
  delta_.drop();
  conv_ = std::move(conv);
  delta_ = std::move(delta);
  offset_ = target;
  return true;
}

Result<SnapshotPtr> SnapshotStateCache::merge(const SnapshotPtr& parent, const SnapshotPtr& child) {
  for (const SnapshotPtr& side : {parent, child})
    if (const Status can = snapshot::usable<Own>(side, quirks_); !can) return can.error();
  return snapshot::merged_states(parent, child, quirks_);
}

Result<std::pair<SnapshotPtr, SnapshotPtr>> SnapshotStateCache::split(const SnapshotPtr& snapshot,
                                                                      std::int64_t /*at*/) {
  if (const Status can = snapshot::usable<Own>(snapshot, quirks_); !can) return can.error();
  return std::pair<SnapshotPtr, SnapshotPtr>(nullptr, snapshot);
}

}  // namespace kvo::optimized
