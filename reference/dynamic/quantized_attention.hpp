// reference/dynamic/quantized_attention.hpp: keys and values of one layer, stored in fewer bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/dynamic/attention.hpp"

namespace kvo::dynamic {

/// HF-61 to HF-63: a quantized part, here of an exact quantizer, and a residual part, which are K
/// and V of the class above.
class QuantizedAttention : public DynamicAttention {
 public:
  QuantizedAttention(QuirkSet<Quirk> quirks, std::int64_t residual_length)
      : DynamicAttention(quirks), residual_length_(residual_length) {}
  [[nodiscard]] std::unique_ptr<Attention> clone() const override {
    return std::make_unique<QuantizedAttention>(*this);
  }

  Result<KeysValues> update(const Tensor& k, const Tensor& v, Writes& writes) override;
  [[nodiscard]] std::int64_t length() const override { return count_; }
  Status crop(std::int64_t tokens_to_remove) override;
  Status reorder(std::span<const std::int64_t> beams) override;
  Status repeat(std::int64_t repeats) override;
  Status select(std::span<const std::int64_t> indices) override;
  void reset(Writes& writes) override;
  [[nodiscard]] bool is_croppable() const override {
    return has(Quirk::kAlwaysCroppable) || !has(Quirk::kHalfCropped);
  }
  [[nodiscard]] std::optional<std::int64_t> stored_batch() const override;

 protected:
  /// A change of the batch concerns the residual part wherever there are tokens (HF-63).
  [[nodiscard]] bool takes_batch() const override { return count_ > 0; }

  std::int64_t count_ = 0;
  Rows quantized_k_;
  Rows quantized_v_;

 private:
  /// Reorders what is quantized by the beams that are remembered.
  Status apply_pending();

  std::int64_t residual_length_;
  std::optional<std::vector<std::int64_t>> pending_;  ///< beams of the quantized part (HF-62)
};

/// HF-64: codes of 8 bits with one scale, which the first update decides. There is no residual
/// part: K and V of the classes above stay empty.
class Fp8Attention final : public QuantizedAttention {
 public:
  explicit Fp8Attention(QuirkSet<Quirk> quirks) : QuantizedAttention(quirks, 0) {}
  [[nodiscard]] std::unique_ptr<Attention> clone() const override {
    return std::make_unique<Fp8Attention>(*this);
  }

  Result<KeysValues> update(const Tensor& k, const Tensor& v, Writes& writes) override;
  Status reorder(std::span<const std::int64_t> beams) override;

 private:
  float scale_k_ = 0;
  float scale_v_ = 0;
};

}  // namespace kvo::dynamic
