#include "reference/contract/values/half.hpp"

#include <bit>
#include <cmath>

namespace kvo {

std::uint16_t f16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  if (std::isnan(value))
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((bits >> 13U) & 0x3FFU));
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < 0x1p-14F) {
    // Subnormal: the spacing is 2^-24, and adding 0.5 lets the hardware round to that grid, to
    // even.
    const auto grid =
        std::bit_cast<std::uint32_t>(magnitude + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    return static_cast<std::uint16_t>(sign | grid);
  }
  const std::uint32_t lifted = (bits & 0x7FFFFFFFU) - ((127U - 15U) << 23U);
  const std::uint32_t odd = (lifted >> 13U) & 1U;
  return static_cast<std::uint16_t>(sign | ((lifted + 0xFFFU + odd) >> 13U));
}

float f32_of_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13U));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 127U - 15U) << 23U) | (fraction << 13U));
}

std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float f32_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

}  // namespace kvo
