// optimized/memory/lanes.hpp: cells of floats narrower than f32, from and to a vector of floats.
//
// Included once for each target of Highway, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE of
// its own, so that it has no guard of the usual kind.
#if defined(KVO_OPTIMIZED_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef KVO_OPTIMIZED_LANES
#undef KVO_OPTIMIZED_LANES
#else
#define KVO_OPTIMIZED_LANES
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvo::optimized::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
using FloatLanes = hn::Vec<Floats>;
using IntLanes = hn::Vec<Ints>;

constexpr std::int32_t kMagnitude = 0x7FFFFFFF;
constexpr std::int32_t kInfinity = 0x7F800000;

HWY_INLINE IntLanes ints(std::int32_t value) {
  return hn::Set(Ints(), value);
}

HWY_INLINE FloatLanes floats(float value) {
  return hn::Set(Floats(), value);
}

HWY_INLINE FloatLanes as_floats(IntLanes bits) {
  return hn::BitCast(Floats(), bits);
}

HWY_INLINE IntLanes as_ints(FloatLanes values) {
  return hn::BitCast(Ints(), values);
}

template <int kBits>
HWY_INLINE IntLanes logical_right(IntLanes bits) {
  const hn::RebindToUnsigned<Floats> unsigned_tag;
  return hn::BitCast(Ints(), hn::ShiftRight<kBits>(hn::BitCast(unsigned_tag, bits)));
}

// ---- Floats ----

// Each has cells as wide as Cell, the cell of each lane from its bits, and bits from cells.

/// A float whose cells have fewer bits of exponent and fraction than f32.
/// Least  the smallest normal value; Grid  2^23 times the distance between subnormals, so that a
/// sum with it is rounded to them. Rounding to nearest, ties to even.
template <int kFractionBits, int kBias>
struct Narrow {
  static constexpr int kDropped = 23 - kFractionBits;
  static constexpr std::int32_t kRebase = (127 - kBias) << 23;
  static constexpr std::int32_t kLeast = (127 - kBias + 1) << 23;
  static constexpr std::int32_t kGrid = (127 - kBias + 1 - kFractionBits + 23) << 23;

  /// Of a magnitude that is no NaN; what is above `most`, the bits of a float, is taken for it.
  static HWY_INLINE IntLanes narrow(IntLanes magnitude, std::int32_t most) {
    constexpr std::int32_t kHalf = (1 << (kDropped - 1)) - 1;
    const IntLanes limited = hn::Min(magnitude, ints(most));
    const IntLanes odd = hn::And(hn::ShiftRight<kDropped>(limited), ints(1));
    const IntLanes sum = hn::Add(hn::Add(limited, ints(kHalf - kRebase)), odd);
    const IntLanes grid = ints(kGrid);
    const IntLanes subnormal = hn::Sub(as_ints(hn::Add(as_floats(limited), as_floats(grid))), grid);
    return hn::IfThenElse(hn::Lt(limited, ints(kLeast)), subnormal, hn::ShiftRight<kDropped>(sum));
  }
  /// Of a magnitude that is finite in the cells' type: the product moves its exponent, exactly.
  static HWY_INLINE IntLanes widen(IntLanes magnitude) {
    const FloatLanes moved = as_floats(hn::ShiftLeft<kDropped>(magnitude));
    return as_ints(hn::Mul(moved, as_floats(ints((254 - kBias) << 23))));
  }
};

struct Brain {
  using Cell = std::uint16_t;
  static HWY_INLINE IntLanes narrow(IntLanes bits) {
    const IntLanes upper = logical_right<16>(bits);
    const IntLanes odd = hn::And(upper, ints(1));
    const IntLanes sum = hn::Add(hn::Add(bits, ints(0x7FFF)), odd);
    const IntLanes quiet = hn::Or(upper, ints(0x40));
    const auto is_nan = hn::Gt(hn::And(bits, ints(kMagnitude)), ints(kInfinity));
    return hn::IfThenElse(is_nan, quiet, logical_right<16>(sum));
  }
  static HWY_INLINE IntLanes widen(IntLanes cells) { return hn::ShiftLeft<16>(cells); }
};

struct Half {
  using Cell = std::uint16_t;
  using Type = Narrow<10, 15>;
  static HWY_INLINE IntLanes narrow(IntLanes bits) {
    constexpr std::int32_t kInfinite = 0x47800000;  // 65536, which becomes infinity
    const IntLanes magnitude = hn::And(bits, ints(kMagnitude));
    const IntLanes sign = hn::And(logical_right<16>(bits), ints(0x8000));
    const IntLanes payload = hn::And(logical_right<13>(bits), ints(0x3FF));
    const IntLanes cell =
        hn::IfThenElse(hn::Gt(magnitude, ints(kInfinity)), hn::Or(payload, ints(0x7E00)),
                       Type::narrow(magnitude, kInfinite));
    return hn::Or(cell, sign);
  }
  static HWY_INLINE IntLanes widen(IntLanes cells) {
    const IntLanes magnitude = hn::And(cells, ints(0x7FFF));
    const IntLanes sign = hn::ShiftLeft<16>(hn::And(cells, ints(0x8000)));
    const IntLanes special = hn::Or(hn::ShiftLeft<13>(magnitude), ints(kInfinity));
    const IntLanes value =
        hn::IfThenElse(hn::Gt(magnitude, ints(0x7BFF)), special, Type::widen(magnitude));
    return hn::Or(value, sign);
  }
};

struct E4m3 {
  using Cell = std::uint8_t;
  using Type = Narrow<3, 7>;
  static HWY_INLINE IntLanes narrow(IntLanes bits) {
    constexpr std::int32_t kMost = 0x43E00000;  // 448
    const IntLanes magnitude = hn::And(bits, ints(kMagnitude));
    const IntLanes sign = hn::And(logical_right<24>(bits), ints(0x80));
    const IntLanes cell = hn::Or(Type::narrow(magnitude, kMost), sign);
    return hn::IfThenElse(hn::Gt(magnitude, ints(kInfinity)), ints(0x7F), cell);
  }
  static HWY_INLINE IntLanes widen(IntLanes cells) {
    const IntLanes magnitude = hn::And(cells, ints(0x7F));
    const IntLanes sign = hn::ShiftLeft<24>(hn::And(cells, ints(0x80)));
    const IntLanes value =
        hn::IfThenElse(hn::Eq(magnitude, ints(0x7F)), ints(0x7FC00000), Type::widen(magnitude));
    return hn::Or(value, sign);
  }
};

struct E5m2 {
  using Cell = std::uint8_t;
  using Type = Narrow<2, 15>;
  static HWY_INLINE IntLanes narrow(IntLanes bits) {
    constexpr std::int32_t kMost = 0x47600000;  // 57344
    const IntLanes magnitude = hn::And(bits, ints(kMagnitude));
    const IntLanes sign = hn::And(logical_right<24>(bits), ints(0x80));
    const IntLanes cell = hn::Or(Type::narrow(magnitude, kMost), sign);
    return hn::IfThenElse(hn::Gt(magnitude, ints(kInfinity)), ints(0x7F), cell);
  }
  static HWY_INLINE IntLanes widen(IntLanes cells) { return Half::widen(hn::ShiftLeft<8>(cells)); }
};

/// Rounds towards zero what is within the range of integers, which Highway would see to.
HWY_INLINE IntLanes truncated(FloatLanes values) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return IntLanes{_mm512_cvttps_epi32(values.raw)};
#elif HWY_TARGET == HWY_AVX2
  return IntLanes{_mm256_cvttps_epi32(values.raw)};
#else
  return hn::ConvertTo(Ints(), values);
#endif
}

/// Stores the lower bits of each lane.
template <class Cell>
HWY_INLINE void store_cells(IntLanes cells, Cell* to) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // One instruction where Highway has two or three.
  if constexpr (sizeof(Cell) == 1)
    return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(cells.raw));
  else
    return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(cells.raw));
#endif
  const hn::Rebind<Cell, Floats> tag;
  const hn::RebindToUnsigned<Floats> unsigned_tag;
  hn::StoreU(hn::TruncateTo(tag, hn::BitCast(unsigned_tag, cells)), tag, to);
}

}  // namespace kvo::optimized::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
