#include "reference/dynamic/linear.hpp"

#include "reference/contract/values/mark.hpp"

namespace kvo::dynamic {

Result<Tensor> LinearState::fit(const Tensor& state, const Shape& shape) const {
  if (state.shape != shape && !quirks_.has(Quirk::kRowsBroadcast))
    return fail(Code::kBadShape, "state of another shape");
  return broadcast(state, shape);
}

Result<Rows> LinearState::update_conv(const Tensor& state,
                                      std::optional<std::int64_t> kernel_size) {
  if (!conv_) {
    kernel_size_ = kernel_size.value_or(size_of(state, kLastAxis));
    Shape shape = state.shape;
    shape.back() = kernel_size_;
    if (Status done = assign(conv_, zeros(shape)); !done) return std::move(done).error();
  }
  Tensor full = state;
  if (has_previous_) {
    auto joined = concat(*conv_, state, kLastAxis);
    if (!joined) return std::move(joined).error();
    full = *std::move(joined);
  } else {
    has_previous_ = true;
    const std::int64_t missing = kernel_size_ - size_of(full, kLastAxis);
    if (!recording_ && missing > 0) {  // padded in front
      Shape shape = full.shape;
      shape.back() = missing;
      auto padding = zeros(shape);
      if (!padding) return std::move(padding).error();
      auto padded = concat(*padding, full, kLastAxis);
      if (!padded) return std::move(padded).error();
      full = *std::move(padded);
    }
  }
  if (recording_) {
    conv_ = shared(std::move(full));
    return conv_;
  }
  auto kept = fit(slice(full, kLastAxis, -kernel_size_), conv_->shape);
  if (Status done = assign(conv_, std::move(kept)); !done) return std::move(done).error();
  return shared(std::move(full));
}

Result<Rows> LinearState::update_recurrent(const Tensor& state) {
  auto kept = recurrent_ ? fit(state, recurrent_->shape) : Result<Tensor>(state);
  if (Status done = assign(recurrent_, std::move(kept)); !done) return std::move(done).error();
  return recurrent_;
}

Status LinearState::crop(std::int64_t tokens_to_remove) {  // HF-53
  if (!recording_ && (tokens_to_remove != 0 || quirks_.has(Quirk::kEmptyCropRefused)))
    return fail(Code::kNotSupported, "the past is not recorded");
  if (tokens_to_remove > 0) return positive_crop();
  if (tokens_to_remove < 0 && recurrent_) {
    if (!quirks_.has(Quirk::kRecurrentStays))
      return fail(Code::kNotSupported, "a recurrent state has no past");
    KVO_MARK_IN(Profile::kOriginal, "dynamic.dynamic", "recurrent state beyond a crop");
  }
  if (!conv_) {
    if (!quirks_.has(Quirk::kCropNeedsData)) return {};
    return fail_other(tokens_to_remove == 0
                          ? "bad operand type for unary -: 'NoneType'"
                          : "unsupported operand type(s) for -: 'int' and 'NoneType'");
  }
  if (tokens_to_remove == 0)
    conv_ = shared(slice(*conv_, kLastAxis, -kernel_size_));
  else
    conv_ = shared(slice(*conv_, kLastAxis, tokens_to_remove - kernel_size_, tokens_to_remove));
  return {};
}

Status LinearState::reorder(std::span<const std::int64_t> beams) {
  if (conv_)
    if (Status done = assign(conv_, select_rows(*conv_, beams)); !done) return done;
  return recurrent_ ? assign(recurrent_, select_rows(*recurrent_, beams)) : Status();
}

void LinearState::reset() {
  for (Rows* rows : {&conv_, &recurrent_})
    if (*rows) *rows = shared(make_tensor((*rows)->shape));
  has_previous_ = false;
}

std::optional<std::int64_t> LinearState::stored_batch() const {
  if (!conv_) return std::nullopt;
  return conv_->shape[0];
}

}  // namespace kvo::dynamic
