// cuda/jobs/cell_format.hpp: the types in which rows are stored, as kernels convert them.
#pragma once

#include <cstdint>
#include <cstring>

#include "reference/contract/device/cell_bits.hpp"
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

struct BrainCell {
  using Cell = std::uint16_t;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) {
    return brain_of_float_bits(bits);
  }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) {
    return float_of_brain_bits(cell);
  }
};

/// What is too large becomes the largest finite value.
struct E4m3Cell {
  using Cell = std::uint8_t;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) {
    return e4m3_of_float_bits(bits);
  }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) {
    return float_of_e4m3_bits(cell);
  }
};

/// The same.
struct E5m2Cell {
  using Cell = std::uint8_t;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) {
    return e5m2_of_float_bits(bits);
  }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) {
    return float_of_e5m2_bits(cell);
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

/// What make(format) returns for the format of a dtype. Requires a float.
template <class Make>
[[nodiscard]] Job in_format(DType dtype, const Make& make) {
  if (dtype == DType::kF16) return make(HalfCell());
  if (dtype == DType::kBF16) return make(BrainCell());
  if (dtype == DType::kF8E4M3) return make(E4m3Cell());
  if (dtype == DType::kF8E5M2) return make(E5m2Cell());
  return make(FloatCell());
}

}  // namespace kvo::cuda
