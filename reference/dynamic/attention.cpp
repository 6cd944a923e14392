#include "reference/dynamic/attention.hpp"

#include "reference/contract/values/mark.hpp"

namespace kvo::dynamic {

// ---- DynamicAttention ----

void DynamicAttention::make_empty() {
  k_ = shared(empty());
  v_ = shared(empty());
}

Result<KeysValues> DynamicAttention::update(const Tensor& k, const Tensor& v, Writes& /*writes*/) {
  if (!initialized()) make_empty();
  // HF-10: K is replaced before V is tried.
  if (Status done = assign(k_, concat(*k_, k, kTokenAxis)); !done) return std::move(done).error();
  if (Status done = assign(v_, concat(*v_, v, kTokenAxis)); !done) {
    KVO_MARK_IN(Profile::kOriginal, "dynamic.dynamic", "keys grew without values");
    return std::move(done).error();
  }
  return KeysValues{k_, v_};
}

std::int64_t DynamicAttention::length() const {  // HF-12
  return !initialized() || k_->elements() == 0 ? 0 : tokens_of(k_);
}

Status DynamicAttention::crop(std::int64_t tokens_to_remove) {  // HF-13
  if (tokens_to_remove > 0) return positive_crop();
  if (tokens_to_remove == 0 || !initialized()) return {};
  if (!has_tokens(k_)) {
    if (has(Quirk::kCropNeedsData)) return too_many_indices();
    return {};
  }
  k_ = shared(slice(*k_, kTokenAxis, 0, tokens_to_remove));
  v_ = shared(slice(*v_, kTokenAxis, 0, tokens_to_remove));
  if (tokens_of(k_) == 0) KVO_MARK("dynamic.dynamic", "cropped to no tokens");
  return {};
}

Status DynamicAttention::reorder(std::span<const std::int64_t> beams) {  // HF-14
  return takes_batch() ? change_rows(k_, v_, select_rows, beams) : Status();
}

Status DynamicAttention::repeat(std::int64_t repeats) {  // HF-15
  return takes_batch() ? repeat_both(k_, v_, repeats) : Status();
}

Status DynamicAttention::select(std::span<const std::int64_t> indices) {  // HF-16
  const RowChange pick = has(Quirk::kEmptySkipsBatch) ? index_rows_unless_empty : index_rows;
  return takes_batch() ? change_rows(k_, v_, pick, indices) : Status();
}

void DynamicAttention::reset(Writes& /*writes*/) {  // HF-18
  k_ = v_ = nullptr;
}

Status DynamicAttention::initialize(std::int64_t /*batch*/, std::int64_t /*heads*/,
                                    std::int64_t /*dim*/) {
  if (!initialized()) make_empty();  // HF-36
  return {};
}

std::optional<std::int64_t> DynamicAttention::stored_batch() const {
  if (!has_tokens(k_)) return std::nullopt;
  return k_->shape[0];
}

// ---- SlidingAttention ----

Tensor SlidingAttention::last(const Tensor& all, std::int64_t tokens) const {
  if (tokens == 0 && !has(Quirk::kWindowOneKeepsAll))
    return slice(all, kTokenAxis, size_of(all, kTokenAxis));
  return slice(all, kTokenAxis, -tokens);  // of 0 tokens: -0 is the begin
}

Result<KeysValues> SlidingAttention::update(const Tensor& k, const Tensor& v, Writes& /*writes*/) {
  if (!initialized()) make_empty();
  const std::int64_t added = size_of(k, kTokenAxis);
  count_ += added;  // HF-20: a refused update counts
  auto full_k = concat(*k_, k, kTokenAxis);
  if (!full_k) return std::move(full_k).error();
  auto full_v = concat(*v_, v, kTokenAxis);
  if (!full_v) return std::move(full_v).error();
  if (recording_) {  // HF-21
    k_ = shared(*std::move(full_k));
    v_ = shared(*std::move(full_v));
    const std::int64_t visible = window_ - 1 + added;
    if (visible < tokens_of(k_)) KVO_MARK("dynamic.dynamic", "recorded more than is visible");
    return KeysValues{shared(last(*k_, visible)), shared(last(*v_, visible))};
  }
  k_ = shared(last(*full_k, window_ - 1));
  v_ = shared(last(*full_v, window_ - 1));
  return KeysValues{shared(*std::move(full_k)), shared(*std::move(full_v))};
}

MaskSizes SlidingAttention::mask_sizes(std::int64_t query_length) const {  // HF-22
  const bool full = count_ >= window_;
  return {.kv_length = (full ? window_ - 1 : count_) + query_length,
          .kv_offset = std::max<std::int64_t>(count_ - window_ + 1, 0)};
}

Status SlidingAttention::crop(std::int64_t tokens_to_remove) {
  if (count_ >= window_) return crop_window(tokens_to_remove);
  if (tokens_to_remove > 0) return positive_crop();
  if (!has_tokens(k_) && has(Quirk::kCropNeedsData)) {  // HF-24
    if (!initialized()) return fail_other("'NoneType' object has no attribute 'shape'");
    return tokens_to_remove < 0 ? too_many_indices() : fail_other("tuple index out of range");
  }
  if (!has_tokens(k_)) return {};
  if (Status done = DynamicAttention::crop(tokens_to_remove); !done) return done;
  if (tokens_of(k_) != count_ && tokens_to_remove == 0)
    KVO_MARK_IN(Profile::kOriginal, "dynamic.dynamic", "the length jumped to what is stored");
  count_ = tokens_of(k_);
  return {};
}

// HF-23. Once the window is full, tokens before it are stored only if they were recorded.
Status SlidingAttention::crop_window(std::int64_t tokens_to_remove) {
  if (!recording_ && (tokens_to_remove != 0 || has(Quirk::kEmptyCropRefused)))
    return fail(Code::kNotSupported, "the past is not recorded");
  if (tokens_to_remove > 0) return positive_crop();
  std::int64_t removed = -tokens_to_remove;
  if (removed == 0) {
    k_ = shared(last(*k_, window_ - 1));
    v_ = shared(last(*v_, window_ - 1));
    return {};
  }
  const std::int64_t stored = std::max<std::int64_t>(tokens_of(k_) - removed, 0);
  const std::int64_t needed = std::min(window_ - 1, std::max<std::int64_t>(count_ - removed, 0));
  if (stored < needed) {
    if (!has(Quirk::kLostPastUnnoticed))
      return fail(Code::kNotSupported, "tokens of the window are evicted");
    KVO_MARK_IN(Profile::kOriginal, "dynamic.dynamic", "a crop found too few tokens");
  }
  k_ = shared(slice(*k_, kTokenAxis, 1 - window_ - removed, -removed));
  v_ = shared(slice(*v_, kTokenAxis, 1 - window_ - removed, -removed));
  if (!has(Quirk::kNegativeLength)) removed = std::min(removed, count_);
  count_ -= removed;
  if (count_ < 0) KVO_MARK_IN(Profile::kOriginal, "dynamic.dynamic", "length below zero");
  return {};
}

void SlidingAttention::reset(Writes& writes) {  // HF-26
  DynamicAttention::reset(writes);
  count_ = 0;
}

}  // namespace kvo::dynamic
