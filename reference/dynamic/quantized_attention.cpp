#include "reference/dynamic/quantized_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/contract/values/mark.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo::dynamic {
namespace {

constexpr float kMostFp8 = 448;

float scale_of(const Tensor& tensor) {
  float most = 0;
  for (const float value : tensor.floats())
    most = std::isnan(value) || std::isnan(most) ? std::numeric_limits<float>::quiet_NaN()
                                                 : std::max(most, std::abs(value));
  const float scale = most / kMostFp8;
  return scale < std::numeric_limits<float>::min() ? std::numeric_limits<float>::min() : scale;
}

/// The values that codes stand for, before they are scaled.
Tensor codes_of(Tensor tensor, float scale) {
  for (float& value : tensor.floats()) value = f32_of_f8_e4m3(f8_e4m3_of(value / scale));
  return tensor;
}

Tensor scaled(Tensor codes, float scale) {
  for (float& value : codes.floats()) value *= scale;
  return codes;
}

std::vector<std::int64_t> composed(std::span<const std::int64_t> earlier,
                                   std::span<const std::int64_t> beams) {
  std::vector<std::int64_t> all;
  for (const std::int64_t beam : beams) all.push_back(earlier[static_cast<std::size_t>(beam)]);
  return all;
}

bool all_within(std::span<const std::int64_t> beams, std::int64_t rows) {
  return std::ranges::all_of(beams, [rows](std::int64_t beam) { return beam >= 0 && beam < rows; });
}

Error no_such_beam() {
  return fail(Code::kOutOfRange, "beam_idx: no such row");
}

}  // namespace

// ---- QuantizedAttention ----

Result<KeysValues> QuantizedAttention::update(const Tensor& k, const Tensor& v,
                                              Writes& /*writes*/) {
  const std::int64_t added = size_of(k, kTokenAxis);
  count_ += added;
  if (!initialized()) {
    make_empty();
    quantized_k_ = shared(k);
    quantized_v_ = shared(v);
    return KeysValues{quantized_k_, quantized_v_};
  }
  // Beams that are no rows are found in K and in V before anything is joined (HF-62).
  const auto old = [this](const Rows& quantized) -> Result<Tensor> {
    return pending_ ? select_rows(*quantized, *pending_) : *quantized;
  };
  const auto joined = [](const Tensor& first, const Rows& residual,
                         const Tensor& more) -> Result<Tensor> {
    auto before = concat(first, *residual, kTokenAxis);
    return before ? concat(*before, more, kTokenAxis) : before;
  };
  const auto old_k = old(quantized_k_);
  if (!old_k) return old_k.error();
  const auto old_v = old(quantized_v_);
  if (!old_v) return old_v.error();
  auto all_k = joined(*old_k, k_, k);
  if (!all_k) return std::move(all_k).error();
  auto all_v = joined(*old_v, v_, v);
  if (!all_v) return std::move(all_v).error();
  KeysValues all{shared(*std::move(all_k)), shared(*std::move(all_v))};
  if ((has_tokens(k_) ? tokens_of(k_) : 0) + added >= residual_length_) {
    if (pending_) KVO_MARK("dynamic.quantized_identity", "flushed in another order");
    quantized_k_ = all.k;
    quantized_v_ = all.v;
    make_empty();
    pending_.reset();
    return all;
  }
  if (Status done = assign(k_, concat(*k_, k, kTokenAxis)); !done) return std::move(done).error();
  if (Status done = assign(v_, concat(*v_, v, kTokenAxis)); !done) return std::move(done).error();
  return all;
}

Status QuantizedAttention::apply_pending() {
  if (!pending_) return {};
  if (Status done = change_rows(quantized_k_, quantized_v_, select_rows, *pending_); !done)
    return done;
  pending_.reset();
  return {};
}

Status QuantizedAttention::crop(std::int64_t tokens_to_remove) {
  if (has(Quirk::kHalfCropped)) return DynamicAttention::crop(tokens_to_remove);  // HF-63
  if (tokens_to_remove > 0) return positive_crop();
  if (!initialized()) return {};
  const std::int64_t residual = has_tokens(k_) ? tokens_of(k_) : 0;
  const std::int64_t removed = std::min(-tokens_to_remove, count_);
  const std::int64_t cut = std::min(removed, residual);
  if (cut > 0) {
    k_ = shared(slice(*k_, kTokenAxis, 0, residual - cut));
    v_ = shared(slice(*v_, kTokenAxis, 0, residual - cut));
  }
  if (removed > cut) {
    quantized_k_ = shared(slice(*quantized_k_, kTokenAxis, 0, cut - removed));
    quantized_v_ = shared(slice(*quantized_v_, kTokenAxis, 0, cut - removed));
  }
  count_ -= removed;
  return {};
}

Status QuantizedAttention::reorder(std::span<const std::int64_t> beams) {  // HF-62
  if (!initialized()) return {};
  if (!has(Quirk::kBadBeamsRemembered) && !all_within(beams, *stored_batch()))
    return no_such_beam();
  if (!pending_) {
    pending_.emplace(beams.begin(), beams.end());
  } else {
    if (!all_within(beams, std::ssize(*pending_))) return no_such_beam();
    pending_ = composed(*pending_, beams);
    KVO_MARK("dynamic.quantized_identity", "reordered twice before an update");
  }
  const bool concerned = has(Quirk::kEmptySkipsBatch) ? k_->elements() > 0 : has_tokens(k_);
  return concerned ? change_rows(k_, v_, select_rows, beams) : Status();
}

Status QuantizedAttention::repeat(std::int64_t repeats) {
  if (has(Quirk::kHalfBatched)) return DynamicAttention::repeat(repeats);  // HF-63
  if (!initialized()) return {};
  if (Status done = apply_pending(); !done) return done;
  if (Status done = repeat_both(quantized_k_, quantized_v_, repeats); !done) return done;
  return has_tokens(k_) ? repeat_both(k_, v_, repeats) : Status();
}

Status QuantizedAttention::select(std::span<const std::int64_t> indices) {
  if (has(Quirk::kHalfBatched)) return DynamicAttention::select(indices);  // HF-63
  if (!initialized()) return {};
  if (Status done = apply_pending(); !done) return done;
  if (Status done = change_rows(quantized_k_, quantized_v_, index_rows, indices); !done)
    return done;
  return has_tokens(k_) ? change_rows(k_, v_, index_rows, indices) : Status();
}

void QuantizedAttention::reset(Writes& writes) {
  DynamicAttention::reset(writes);
  quantized_k_ = quantized_v_ = nullptr;
  count_ = 0;
  pending_.reset();
}

std::optional<std::int64_t> QuantizedAttention::stored_batch() const {
  if (!initialized()) return std::nullopt;
  return pending_ ? std::ssize(*pending_) : quantized_k_->shape[0];
}

// ---- Fp8Attention ----

Result<KeysValues> Fp8Attention::update(const Tensor& k, const Tensor& v, Writes& /*writes*/) {
  if (!initialized() && (k.elements() == 0 || v.elements() == 0))
    return fail(Code::kPrecondition, "k, v: without elements there is no scale");
  count_ += size_of(k, kTokenAxis);
  if (!initialized()) {
    make_empty();
    scale_k_ = scale_of(k);
    scale_v_ = scale_of(v);
    quantized_k_ = shared(codes_of(k, scale_k_));
    quantized_v_ = shared(codes_of(v, scale_v_));
    return KeysValues{shared(k), shared(v)};
  }
  if (Status done = assign(quantized_k_, concat(*quantized_k_, codes_of(k, scale_k_), kTokenAxis));
      !done)
    return std::move(done).error();
  if (Status done = assign(quantized_v_, concat(*quantized_v_, codes_of(v, scale_v_), kTokenAxis));
      !done)
    return std::move(done).error();
  return KeysValues{shared(scaled(*quantized_k_, scale_k_)),
                    shared(scaled(*quantized_v_, scale_v_))};
}

Status Fp8Attention::reorder(std::span<const std::int64_t> beams) {
  return initialized() ? change_rows(quantized_k_, quantized_v_, select_rows, beams) : Status();
}

}  // namespace kvo::dynamic
