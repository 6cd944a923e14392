// reference/dynamic/linear.hpp: the convolution and recurrent state of one layer (HF-52, HF-53).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reference/dynamic/attention.hpp"

namespace kvo::dynamic {

/// Methods do what the followed system does, as those of Attention.
class LinearState {
 public:
  explicit LinearState(QuirkSet<Quirk> quirks) : quirks_(quirks) {}

  /// Errors  kBadShape.
  Result<Rows> update_conv(const Tensor& state, std::optional<std::int64_t> kernel_size);
  Result<Rows> update_recurrent(const Tensor& state);
  /// Null before the first update of the convolution state.
  [[nodiscard]] Rows conv() const { return has_previous_ ? conv_ : nullptr; }
  [[nodiscard]] Rows recurrent() const { return has_previous_ ? recurrent_ : nullptr; }
  [[nodiscard]] bool has_previous() const { return has_previous_; }

  /// Errors  kNotSupported, kOther.
  Status crop(std::int64_t tokens_to_remove);
  Status reorder(std::span<const std::int64_t> beams);
  void reset();
  void record_past() { recording_ = true; }
  [[nodiscard]] bool is_croppable() const { return conv_ && !recurrent_; }
  [[nodiscard]] std::optional<std::int64_t> stored_batch() const;

 private:
  /// The state in a shape, as fit of a static sliding layer.
  [[nodiscard]] Result<Tensor> fit(const Tensor& state, const Shape& shape) const;

  QuirkSet<Quirk> quirks_;
  std::int64_t kernel_size_ = 0;
  Rows conv_;       ///< [batch, ..., kernel_size_], longer while recording
  Rows recurrent_;  ///< [batch, ...]
  bool has_previous_ = false;
  bool recording_ = false;
};

}  // namespace kvo::dynamic
