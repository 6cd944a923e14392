// reference/contract/device/cell_bits.hpp: floats narrower than binary32, from and to it in integer
// arithmetic, the same on the host and on a device: binary16, bfloat16, and two of 8 bits.
//
// Written apart from values/numeric.hpp on purpose: a shared helper would be a shared bug.
// Source   IEEE 754-2019, binary16; rule ZF-67; bfloat16 is the upper half of binary32; OCP 8-bit
//          Floating Point Specification 1.0.
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

/// The bits of the nearest bfloat16, ties to even. NaNs become quiet and keep their upper payload
/// bits.
KVO_HD constexpr std::uint16_t brain_of_float_bits(std::uint32_t bits) {
  const std::uint32_t upper = bits >> 16U;
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>(upper | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (upper & 1U)) >> 16U);
}

KVO_HD constexpr std::uint32_t float_of_brain_bits(std::uint16_t brain) {
  return static_cast<std::uint32_t>(brain) << 16U;
}

/// A float of 8 bits: S, then kExponentBits, then the fraction; what is larger than the largest
/// finite value becomes that, whose code is kMost. NaNs become 0x7F.
template <std::uint32_t kExponentBits, std::uint8_t kMost>
struct SmallBits {
  static constexpr std::uint32_t kFractionBits = 7 - kExponentBits;
  static constexpr std::uint32_t kDropped = 23 - kFractionBits;
  static constexpr std::uint32_t kBias = (1U << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kRebase = (127 - kBias) << 23U;

  /// Ties to even; subnormals and the sign of zero are kept.
  static KVO_HD constexpr std::uint8_t narrow(std::uint32_t bits) {
    constexpr std::uint32_t kLeast = (128 - kBias) << 23U;  // the smallest normal value
    constexpr std::uint32_t kLargest = kRebase + (std::uint32_t{kMost} << kDropped);
    const std::uint32_t sign = (bits >> 24U) & 0x80U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    std::uint32_t small = 0;
    if (magnitude > 0x7F800000U) return 0x7F;
    if (magnitude >= kLargest) {
      small = kMost;
    } else if (magnitude >= kLeast) {
      const std::uint32_t rebased = magnitude - kRebase;
      const std::uint32_t half = (1U << (kDropped - 1U)) - 1U;
      small = (rebased + half + ((rebased >> kDropped) & 1U)) >> kDropped;
    } else {
      // In steps of the smallest subnormal.
      const std::uint32_t shift = 151U - kBias - kFractionBits - (magnitude >> 23U);
      if (shift > 24U) return static_cast<std::uint8_t>(sign);
      const std::uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
      const std::uint32_t kept = significand >> shift;
      const std::uint32_t rest = significand & ((1U << shift) - 1U);
      const std::uint32_t tie = 1U << (shift - 1U);
      small = kept + ((rest > tie || (rest == tie && (kept & 1U) != 0)) ? 1U : 0U);
    }
    return static_cast<std::uint8_t>(sign | small);
  }

  /// The bits of the binary32 of a finite value.
  static KVO_HD constexpr std::uint32_t widen(std::uint8_t small) {
    const std::uint32_t sign = (small & 0x80U) << 24U;
    std::uint32_t magnitude = small & 0x7FU;
    if (magnitude == 0) return sign;
    std::uint32_t exponents = 0;
    // A subnormal is moved until it has the leading bit of a normal value.
    while ((magnitude >> kFractionBits) == 0) {
      magnitude <<= 1U;
      ++exponents;
    }
    return sign | (kRebase + (magnitude << kDropped) - (exponents << 23U));
  }
};

/// e4m3, bias 7, without infinities: 0x7F is NaN, 0x7E is 448.
KVO_HD constexpr std::uint8_t e4m3_of_float_bits(std::uint32_t bits) {
  return SmallBits<4, 0x7E>::narrow(bits);
}
KVO_HD constexpr std::uint32_t float_of_e4m3_bits(std::uint8_t small) {
  if ((small & 0x7FU) == 0x7FU) return ((small & 0x80U) << 24U) | 0x7FC00000U;
  return SmallBits<4, 0x7E>::widen(small);
}

/// e5m2, bias 15: the upper half of binary16; 0x7B is 57344.
KVO_HD constexpr std::uint8_t e5m2_of_float_bits(std::uint32_t bits) {
  return SmallBits<5, 0x7B>::narrow(bits);
}
KVO_HD constexpr std::uint32_t float_of_e5m2_bits(std::uint8_t small) {
  return float_of_half_bits(static_cast<std::uint16_t>(small << 8U));
}

}  // namespace kvo
