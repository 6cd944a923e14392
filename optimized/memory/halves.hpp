// optimized/memory/halves.hpp: f32 to the 16-bit float types without a branch, so that the compiler
// makes vectors of a loop over it.
//
// Bit for bit what reference/contract/values/numeric.hpp gives (halves_test).
#pragma once

#include <bit>
#include <cstdint>

namespace kvo::optimized {

namespace detail {
inline constexpr std::uint32_t kMagnitude = 0x7FFFFFFFU;
inline constexpr std::uint32_t kInfinity = 0x7F800000U;
}  // namespace detail

/// As bf16_of.
[[nodiscard]] inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet = (bits >> 16U) | 0x40U;
  const bool is_nan = (bits & detail::kMagnitude) > detail::kInfinity;
  return static_cast<std::uint16_t>(is_nan ? quiet : rounded);
}

/// As f16_of.
[[nodiscard]] inline std::uint16_t to_f16(float value) {
  constexpr std::uint32_t kOverflow = 0x477FF000U;   // 65520
  constexpr std::uint32_t kSubnormal = 0x38800000U;  // below 2^-14
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & detail::kMagnitude;
  const std::uint32_t lifted = magnitude - ((127U - 15U) << 23U);
  const std::uint32_t normal = (lifted + 0xFFFU + ((lifted >> 13U) & 1U)) >> 13U;
  // Adding 0.5 lets the hardware round to the grid of subnormals, to even.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
      std::bit_cast<std::uint32_t>(0.5F);
  const std::uint32_t nan = 0x7E00U | ((bits >> 13U) & 0x3FFU);
  std::uint32_t half = magnitude < kSubnormal ? subnormal : normal;
  half = magnitude >= kOverflow ? 0x7C00U : half;
  half = magnitude > detail::kInfinity ? nan : half;
  return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | half);
}

}  // namespace kvo::optimized
