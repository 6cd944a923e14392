#include "reference/dynamic/static_attention.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/contract/values/mark.hpp"

namespace kvo::dynamic {

// ---- StaticAttention ----

Status StaticAttention::initialize_for(const Tensor& k, const Tensor& v) {
  const Shape& shape = k.shape;
  auto keys = zeros({shape[0], shape[1], slots_, shape[3]});
  if (!keys) return std::move(keys).error();
  auto values = zeros({shape[0], shape[1], slots_, v.shape[3]});
  if (!values) return std::move(values).error();
  k_ = std::make_shared<Tensor>(*std::move(keys));
  v_ = std::make_shared<Tensor>(*std::move(values));
  batch_ = shape[0];
  return {};
}

Status StaticAttention::initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim) {
  if (initialized()) return {};
  const auto none = zeros({batch, heads, 0, dim});
  if (!none) return none.error();
  return initialize_for(*none, *none);
}

// HF-30. Of tokens that cross the end, those of the first row and head are written before the first
// slot that there is not.
Status StaticAttention::write(const std::shared_ptr<Tensor>& buffer, const Tensor& tokens,
                              std::int64_t begin, Writes& writes) {
  Shape fitting = buffer->shape;
  fitting[2] = tokens.shape[2];
  if (tokens.shape != fitting) return fail(Code::kBadShape, "tokens of another shape");
  const std::int64_t slots = buffer->shape[2];
  const std::int64_t count = tokens.shape[2];
  const bool beyond = tokens.elements() > 0 && begin + count > slots;
  const std::int64_t written = beyond ? std::max<std::int64_t>(slots - begin, 0) : count;
  const std::int64_t heads = beyond ? 1 : tokens.shape[0] * tokens.shape[1];
  Tensor content = *buffer;
  if (written > 0 && tokens.elements() > 0)
    for (std::int64_t head = 0; head < heads; ++head)
      std::copy_n(tokens.floats().begin() + head * count * tokens.shape[3],
                  written * tokens.shape[3],
                  content.floats().begin() + (head * slots + begin) * tokens.shape[3]);
  writes.add(buffer, std::move(content));
  if (!beyond) return {};
  return fail(Code::kFull, "slot " + std::to_string(slots) + " of " + std::to_string(slots));
}

Result<KeysValues> StaticAttention::update(const Tensor& k, const Tensor& v, Writes& writes) {
  if (!initialized())
    if (Status made = initialize_for(k, v); !made) return std::move(made).error();
  const std::int64_t begin = count_;
  count_ += size_of(k, kTokenAxis);  // HF-30: a refused update counts
  writes.add(shown_, count_);
  if (Status done = write(k_, k, begin, writes); !done) return std::move(done).error();
  if (Status done = write(v_, v, begin, writes); !done) return std::move(done).error();
  if (count_ == slots_) KVO_MARK("dynamic.static", "filled to the last slot");
  return KeysValues{k_, v_};
}

std::shared_ptr<const std::int64_t> StaticAttention::shown_length() const {
  if (!initialized() || !has(Quirk::kLengthIsLive)) return Attention::shown_length();
  return shown_;
}

MaskSizes StaticAttention::mask_sizes(std::int64_t /*query_length*/) const {
  return {slots_, 0};  // HF-33
}

// HF-34
Status StaticAttention::crop(std::int64_t /*tokens_to_remove*/) {
  return fail(Code::kNotSupported, "a static layer has no crop");
}
Status StaticAttention::repeat(std::int64_t /*repeats*/) {
  return fail(Code::kNotSupported, "a static layer has no batch_repeat_interleave");
}
Status StaticAttention::select(std::span<const std::int64_t> /*indices*/) {
  return fail(Code::kNotSupported, "a static layer has no batch_select_indices");
}

Status StaticAttention::reorder(std::span<const std::int64_t> beams) {  // HF-35
  if (!initialized() || (count_ <= 0 && has(Quirk::kEmptySkipsBatch))) return {};
  auto k = select_rows(*k_, beams);
  if (!k) return std::move(k).error();
  auto v = select_rows(*v_, beams);
  if (!v) return std::move(v).error();
  k_ = std::make_shared<Tensor>(*std::move(k));  // HF-31: older returns show it no more
  v_ = std::make_shared<Tensor>(*std::move(v));
  return {};
}

void StaticAttention::reset(Writes& writes) {  // HF-35
  if (initialized()) {
    writes.add(k_, make_tensor(k_->shape));
    writes.add(v_, make_tensor(v_->shape));
  }
  count_ = 0;
  writes.add(shown_, 0);
}

std::optional<std::int64_t> StaticAttention::stored_batch() const {
  if (!initialized()) return std::nullopt;
  return k_->shape[0];
}

// ---- StaticSlidingAttention ----

Result<Tensor> StaticSlidingAttention::fit(const Tensor& tokens, const Shape& shape) const {
  if (tokens.shape != shape && !has(Quirk::kRowsBroadcast))
    return fail(Code::kBadShape, "tokens of another shape");
  return broadcast(tokens, shape);
}

Result<KeysValues> StaticSlidingAttention::roll(const Tensor& k, const Tensor& v, Writes& writes) {
  const auto rolled = [this](const Tensor& buffer, const Tensor& token) -> Result<Tensor> {
    Shape shape = buffer.shape;
    shape[2] = 1;
    const auto fitting = fit(token, shape);
    if (!fitting) return fitting.error();
    return concat(slice(buffer, kTokenAxis, 1), *fitting, kTokenAxis);
  };
  auto keys = rolled(*k_, k);
  if (!keys) return std::move(keys).error();
  auto values = rolled(*v_, v);
  if (!values) return std::move(values).error();
  if (k.shape[0] != k_->shape[0])
    KVO_MARK_IN(Profile::kOriginal, "dynamic.static", "one row for all of the batch");
  writes.add(k_, *std::move(keys));
  writes.add(v_, *std::move(values));
  return KeysValues{k_, v_};
}

Result<Tensor> StaticSlidingAttention::joined(const Tensor& buffer, std::int64_t before,
                                              const Tensor& tokens) const {
  if (before == 0) return tokens;
  return concat(
      before >= slots_ ? slice(buffer, kTokenAxis, 1) : slice(buffer, kTokenAxis, 0, before),
      tokens, kTokenAxis);
}

Result<KeysValues> StaticSlidingAttention::update(const Tensor& k, const Tensor& v,
                                                  Writes& writes) {
  if (!initialized())
    if (Status made = initialize_for(k, v); !made) return std::move(made).error();
  const std::int64_t added = size_of(k, kTokenAxis);
  const std::int64_t before = count_;
  count_ += added;  // HF-37: a refused update counts
  if (short_ && count_ > slots_) {
    if (!has(Quirk::kSlidesShort)) return fail(Code::kFull, "max_cache_len is below the window");
    KVO_MARK_IN(Profile::kOriginal, "dynamic.static", "evicted a token of the window");
  }
  if (before >= slots_ && added == 1) return roll(k, v, writes);
  if (before < slots_ && count_ <= slots_) {  // HF-37c
    if (Status done = write(k_, k, position_, writes); !done) return std::move(done).error();
    if (Status done = write(v_, v, position_, writes); !done) return std::move(done).error();
    position_ += added;
    return KeysValues{k_, v_};
  }
  auto full_k = joined(*k_, before, k);
  if (!full_k) return std::move(full_k).error();
  auto full_v = joined(*v_, before, v);
  if (!full_v) return std::move(full_v).error();
  for (const auto& [buffer, full] : {std::pair{k_, &*full_k}, std::pair{v_, &*full_v}}) {
    auto fitting = fit(slice(*full, kTokenAxis, -slots_), buffer->shape);
    if (!fitting) return std::move(fitting).error();
    writes.add(buffer, *std::move(fitting));
  }
  return KeysValues{shared(*std::move(full_k)), shared(*std::move(full_v))};
}

MaskSizes StaticSlidingAttention::mask_sizes(std::int64_t query_length) const {  // HF-38
  const std::int64_t offset = std::max<std::int64_t>(count_ - slots_ + 1, 0);
  if (count_ >= slots_) return {slots_ + query_length - 1, offset};
  return {std::max(count_ + query_length, slots_), offset};
}

void StaticSlidingAttention::reset(Writes& writes) {  // HF-40
  StaticAttention::reset(writes);
  position_ = 0;
}

}  // namespace kvo::dynamic
