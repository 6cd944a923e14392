// reference/contract/values/half.hpp: exact conversions between f32 and the 16-bit float types.
// Source   IEEE 754-2019, binary16; bfloat16 is the upper half of binary32.
#pragma once

#include <cstdint>

namespace kvo {

/// Rounds to binary16: nearest, ties to even, overflow to infinity, subnormals kept, NaN quiet.
[[nodiscard]] std::uint16_t f16_of(float value);
[[nodiscard]] float f32_of_f16(std::uint16_t bits);
/// Rounds to bfloat16: nearest, ties to even, overflow to infinity, NaN quiet.
[[nodiscard]] std::uint16_t bf16_of(float value);
[[nodiscard]] float f32_of_bf16(std::uint16_t bits);

}  // namespace kvo
