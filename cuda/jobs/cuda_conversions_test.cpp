// CUDA's own conversions, which run on the host as well, beside those of values/numeric.hpp and of
// kernels.
#include <bit>
#include <cmath>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include "reference/contract/device/cell_bits.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo::cuda {
namespace {

// Every upper half with the lower halves where a rounding changes.
template <class Check>
void for_floats_of_all_kinds(Check&& check) {
  for (std::uint32_t upper = 0; upper <= 0xFFFFU; ++upper)
    for (const std::uint32_t lower :
         {0U, 1U, 0x0FFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      const std::uint32_t bits = upper << 16U | lower;
      check(bits, std::bit_cast<float>(bits));
    }
}

TEST(CudaConversions, OfEightBitsAreOurs) {
  for_floats_of_all_kinds([](std::uint32_t bits, float value) {
    const auto e4m3 = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    const auto e5m2 = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
    // Which NaN it is CUDA does not say.
    ASSERT_EQ(std::isnan(value) ? 0x7F : e4m3, f8_e4m3_of(value)) << std::hex << bits;
    ASSERT_EQ(std::isnan(value) ? 0x7F : e5m2, f8_e5m2_of(value)) << std::hex << bits;
    ASSERT_EQ(f8_e4m3_of(value), e4m3_of_float_bits(bits)) << std::hex << bits;
    ASSERT_EQ(f8_e5m2_of(value), e5m2_of_float_bits(bits)) << std::hex << bits;
  });
}

TEST(CudaConversions, OfSixteenBitsAreOurs) {
  for_floats_of_all_kinds([](std::uint32_t bits, float value) {
    if (std::isnan(value)) return;  // CUDA keeps no payload
    ASSERT_EQ(__half_as_ushort(__float2half_rn(value)), f16_of(value)) << std::hex << bits;
    ASSERT_EQ(__bfloat16_as_ushort(__float2bfloat16_rn(value)), bf16_of(value)) << std::hex << bits;
    ASSERT_EQ(f16_of(value), half_of_float_bits(bits)) << std::hex << bits;
    ASSERT_EQ(bf16_of(value), brain_of_float_bits(bits)) << std::hex << bits;
  });
}

TEST(CudaConversions, OfCellsAreOurs) {
  for (std::uint32_t cell = 0; cell <= 0xFFFFU; ++cell) {
    const auto bits = static_cast<std::uint16_t>(cell);
    if (!std::isnan(f32_of_f16(bits))) {
      ASSERT_EQ(__half2float(__ushort_as_half(bits)), f32_of_f16(bits)) << std::hex << cell;
    }
    if (!std::isnan(f32_of_bf16(bits))) {
      ASSERT_EQ(__bfloat162float(__ushort_as_bfloat16(bits)), f32_of_bf16(bits))
          << std::hex << cell;
    }
    const auto small = static_cast<std::uint8_t>(cell);
    const auto widened = [small](__nv_fp8_interpretation_t type) {
      return __half2float(__half(__nv_cvt_fp8_to_halfraw(small, type)));
    };
    if (cell > 0xFFU) continue;
    if (!std::isnan(f32_of_f8_e4m3(small))) {
      ASSERT_EQ(widened(__NV_E4M3), f32_of_f8_e4m3(small)) << std::hex << cell;
    }
    if (!std::isnan(f32_of_f8_e5m2(small))) {
      ASSERT_EQ(widened(__NV_E5M2), f32_of_f8_e5m2(small)) << std::hex << cell;
    }
  }
}

}  // namespace
}  // namespace kvo::cuda
