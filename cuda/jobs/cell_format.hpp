// cuda/jobs/cell_format.hpp: the types in which rows are stored, as kernels convert them.
#pragma once

#include <cstdint>
#include <cstring>

#include "reference/contract/device/half_bits.hpp"
#include "reference/contract/device/job.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::cuda {

// Each rounds the bits of a binary32 to its cells, to nearest, ties to even, NaNs quiet, and widens
// them exactly: the same bits on every device, since no arithmetic of one has a part in it.

struct FloatCell {
  using Cell = std::uint32_t;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) { return bits; }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) { return cell; }
};

struct HalfCell {
  using Cell = std::uint16_t;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) {
    return half_of_float_bits(bits);
  }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) {
    return float_of_half_bits(cell);
  }
};

/// bfloat16: the upper half of binary32.
struct BrainCell {
  using Cell = std::uint16_t;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) {
    const std::uint32_t upper = bits >> 16U;
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<Cell>(upper | 0x40U);
    return static_cast<Cell>((bits + 0x7FFFU + (upper & 1U)) >> 16U);
  }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) {
    return static_cast<std::uint32_t>(cell) << 16U;
  }
};

// std::bit_cast is no function of a device.
[[nodiscard]] KVO_HD inline float float_of(std::uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
[[nodiscard]] KVO_HD inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Cells that are loaded or stored at once.
template <class Cell, int kLanes>
struct alignas(sizeof(Cell) * kLanes) Pack {
  Cell lanes[kLanes];  // NOLINT(modernize-avoid-c-arrays): a kernel cannot call std::array
};

/// What make(format) returns for the format of a dtype. Requires one of f32, f16, bf16.
template <class Make>
[[nodiscard]] Job in_format(DType dtype, const Make& make) {
  if (dtype == DType::kF16) return make(HalfCell());
  if (dtype == DType::kBF16) return make(BrainCell());
  return make(FloatCell());
}

}  // namespace kvo::cuda
