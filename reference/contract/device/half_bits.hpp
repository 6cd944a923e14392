// reference/contract/device/half_bits.hpp: binary16 from and to binary32 in integer arithmetic, the
// same on the host and on a device.
//
// Written apart from values/numeric.hpp on purpose: a shared helper would be a shared bug.
// Source   IEEE 754-2019, binary16; rule ZF-67.
#pragma once

#include <cstdint>

#include "reference/contract/device/portable.hpp"

namespace kvo {

/// The bits of the nearest binary16, ties to even; overflow is infinity, subnormals are kept.
/// NaNs become quiet and keep their upper payload bits.
KVO_HD constexpr std::uint16_t half_of_float_bits(std::uint32_t bits) {
  const auto sign = static_cast<std::uint32_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | ((magnitude >> 13U) & 0x3FFU);
  } else if (magnitude >= 0x477FF000U) {  // 65520 and above round to infinity
    half = 0x7C00U;
  } else if (magnitude >= 0x38800000U) {  // 2^-14: normal in binary16
    const std::uint32_t rebased = magnitude - 0x38000000U;
    half = (rebased + 0xFFFU + ((rebased >> 13U) & 1U)) >> 13U;
  } else if (magnitude >= 0x33000000U) {  // 2^-25: what may round to a subnormal
    const std::uint32_t exponent = magnitude >> 23U;
    const std::uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t shift = 126U - exponent;  // 14 to 24
    const std::uint32_t kept = significand >> shift;
    const std::uint32_t rest = significand & ((1U << shift) - 1U);
    const std::uint32_t tie = 1U << (shift - 1U);
    half = kept + ((rest > tie || (rest == tie && (kept & 1U) != 0)) ? 1U : 0U);
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// The bits of the binary32 of the same value.
KVO_HD constexpr std::uint32_t float_of_half_bits(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  std::uint32_t exponent = (half >> 10U) & 0x1FU;
  std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1FU) return sign | 0x7F800000U | (fraction << 13U);
  if (exponent == 0 && fraction == 0) return sign;
  if (exponent == 0) {
    ++exponent;
    while ((fraction & 0x400U) == 0) {
      fraction <<= 1U;
      --exponent;  // wraps below zero and comes back when rebased
    }
    fraction &= 0x3FFU;
  }
  return sign | ((exponent + 112U) << 23U) | (fraction << 13U);
}

}  // namespace kvo
