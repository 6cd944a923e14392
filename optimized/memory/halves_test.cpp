#include "optimized/memory/halves.hpp"

#include <bit>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/values/numeric.hpp"

namespace kvo::optimized {
namespace {

// Every upper half with the lower halves where a rounding changes, and some between.
std::vector<std::uint32_t> floats() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper)
    for (const std::uint32_t lower :
         {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU, 0x2000U, 0x3000U, 0x5A5AU, 0x7FFFU,
          0x8000U, 0x8001U, 0xB000U, 0xF000U, 0xFFFFU})
      all.push_back(upper << 16U | lower);
  return all;
}

TEST(Halves, AreThoseOfTheReference) {
  for (const std::uint32_t bits : floats()) {
    const auto value = std::bit_cast<float>(bits);
    ASSERT_EQ(to_f16(value), f16_of(value)) << std::hex << bits;
    ASSERT_EQ(to_bf16(value), bf16_of(value)) << std::hex << bits;
  }
}

}  // namespace
}  // namespace kvo::optimized
