#include "optimized/memory/convert.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

// This file is compiled once for each target: on x86 plain loops, SSE4, AVX2 and AVX-512.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming): its name is Highway's
#define HWY_TARGET_INCLUDE "optimized/memory/convert.cpp"
#include <hwy/foreach_target.h>  // includes this file again; must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvo::optimized::HWY_NAMESPACE {
namespace {

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

/// A float of 8 bits, whose cells are `Type`'s; what is above kMost, the bits of a float, is
/// limited.
template <class Type, std::int32_t kMost>
struct SmallFloat {
  using Cell = std::uint8_t;
  static HWY_INLINE IntLanes narrow(IntLanes bits) {
    const IntLanes magnitude = hn::And(bits, ints(kMagnitude));
    const IntLanes sign = hn::And(logical_right<24>(bits), ints(0x80));
    const IntLanes cell = hn::Or(Type::narrow(magnitude, kMost), sign);
    return hn::IfThenElse(hn::Gt(magnitude, ints(kInfinity)), ints(0x7F), cell);
  }
};

struct E4m3 : SmallFloat<Narrow<3, 7>, 0x43E00000> {  // 448
  static HWY_INLINE IntLanes widen(IntLanes cells) {
    const IntLanes magnitude = hn::And(cells, ints(0x7F));
    const IntLanes sign = hn::ShiftLeft<24>(hn::And(cells, ints(0x80)));
    const IntLanes value = hn::IfThenElse(hn::Eq(magnitude, ints(0x7F)), ints(0x7FC00000),
                                          Narrow<3, 7>::widen(magnitude));
    return hn::Or(value, sign);
  }
};

struct E5m2 : SmallFloat<Narrow<2, 15>, 0x47600000> {  // 57344
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

// ---- Rows of floats ----

/// Stores the cells of floats.
template <class Type>
HWY_INLINE void store_narrow(FloatLanes values, typename Type::Cell* to) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // One instruction, which rounds and keeps NaNs in the same way.
  if constexpr (std::is_same_v<Type, Half>) {
    const hn::Rebind<hwy::float16_t, Floats> halves;
    const hn::Rebind<std::uint16_t, Floats> bits;
    return hn::StoreU(hn::BitCast(bits, hn::DemoteTo(halves, values)), bits, to);
  }
#endif
  store_cells(Type::narrow(as_ints(values)), to);
}

template <class Type>
void narrow_all(const float* HWY_RESTRICT from, std::size_t count, std::byte* HWY_RESTRICT to) {
  using Cell = typename Type::Cell;
  const Floats tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  auto* cells = reinterpret_cast<Cell*>(to);
  for (; i + lanes <= count; i += lanes) store_narrow<Type>(hn::LoadU(tag, from + i), cells + i);
  if (i == count) return;
  HWY_ALIGN std::array<float, hn::MaxLanes(tag)> rest{};
  HWY_ALIGN std::array<Cell, hn::MaxLanes(tag)> made{};
  std::copy(from + i, from + count, rest.begin());
  store_narrow<Type>(hn::LoadU(tag, rest.data()), made.data());
  std::memcpy(cells + i, made.data(), (count - i) * sizeof(Cell));
}

template <class Type>
HWY_INLINE FloatLanes load_cells(const typename Type::Cell* from) {
  const hn::Rebind<typename Type::Cell, Floats> tag;
  return as_floats(Type::widen(hn::PromoteTo(Ints(), hn::LoadU(tag, from))));
}

template <class Type>
void widen_all(const std::byte* HWY_RESTRICT from, std::size_t count, float* HWY_RESTRICT to) {
  using Cell = typename Type::Cell;
  const Floats tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  const auto* cells = reinterpret_cast<const Cell*>(from);
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_cells<Type>(cells + i), tag, to + i);
  if (i == count) return;
  HWY_ALIGN std::array<float, hn::MaxLanes(tag)> made{};
  HWY_ALIGN std::array<Cell, hn::MaxLanes(tag)> rest{};
  std::memcpy(rest.data(), cells + i, (count - i) * sizeof(Cell));
  hn::StoreU(load_cells<Type>(rest.data()), tag, made.data());
  std::copy_n(made.begin(), count - i, to + i);
}

// ---- Rows of codes that share scales ----

constexpr std::size_t kMostInGroup = 128;
constexpr float kMostF16 = 65504.0F;
constexpr std::uint16_t kNoNumber = 0x7E00;

/// Groups whose scales are found together: what is done once a group costs as much as the rest.
/// Each has elements in a whole number of vectors.
struct Batch {
  static constexpr std::size_t kMost = 32;
  std::size_t size = 0;
  std::array<const float*, kMost> groups;  ///< the elements
  std::array<std::byte*, kMost> to;
  std::array<std::uint32_t, kMost> counts;  ///< of elements, those that only fill vectors included
  std::array<std::uint32_t, kMost> used;    ///< of elements that are stored
  std::array<bool, kMost> finite;
  HWY_ALIGN std::array<float, kMost> steps;     ///< before they are limited
  HWY_ALIGN std::array<float, kMost> offsets;   ///< the same
  HWY_ALIGN std::array<float, kMost> inverses;  ///< 1 / step; 0: all codes are those of zero
  HWY_ALIGN std::array<std::uint16_t, kMost> step_cells;
  HWY_ALIGN std::array<std::uint16_t, kMost> offset_cells;
};

/// Whether the first element of the largest magnitude is negative.
HWY_INLINE bool extreme_is_negative(const float* group, std::size_t count, float magnitude) {
  const Floats tag;
  const std::size_t lanes = hn::Lanes(tag);
  for (std::size_t i = 0; i < count; i += lanes) {
    const FloatLanes values = hn::LoadU(tag, group + i);
    const std::intptr_t first = hn::FindFirstTrue(tag, hn::Eq(hn::Abs(values), floats(magnitude)));
    if (first >= 0) return std::signbit(group[i + static_cast<std::size_t>(first)]);
  }
  return false;
}

/// Adds a group to a batch: finds its step and offset.
template <bool kFour, bool kOffset>
HWY_INLINE void add_group(Batch& batch, const float* group, std::size_t count, std::size_t used,
                          std::byte* to) {
  const Floats tag;
  const std::size_t lanes = hn::Lanes(tag);
  IntLanes magnitudes = hn::Zero(Ints());
  FloatLanes low = hn::LoadU(tag, group);
  FloatLanes high = low;
  for (std::size_t i = 0; i < count; i += lanes) {
    const FloatLanes values = hn::LoadU(tag, group + i);
    magnitudes = hn::Max(magnitudes, hn::And(as_ints(values), ints(kMagnitude)));
    if (kOffset) low = hn::Min(low, values);
    if (kOffset) high = hn::Max(high, values);
  }
  const std::int32_t largest = hn::GetLane(hn::MaxOfLanes(Ints(), magnitudes));
  const std::size_t at = batch.size++;
  batch.groups[at] = group;
  batch.to[at] = to;
  batch.counts[at] = static_cast<std::uint32_t>(count);
  batch.used[at] = static_cast<std::uint32_t>(used);
  batch.finite[at] = largest < kInfinity;
  const auto magnitude = std::bit_cast<float>(largest);
  if constexpr (kOffset) {
    batch.offsets[at] = hn::GetLane(hn::MinOfLanes(tag, low));
    batch.steps[at] = hn::GetLane(hn::MaxOfLanes(tag, high)) - batch.offsets[at];
  } else {
    batch.offsets[at] = 0;
    batch.steps[at] =
        kFour && !extreme_is_negative(group, count, magnitude) ? -magnitude : magnitude;
  }
}

/// From ranges to scales and their cells.
template <bool kFour, bool kOffset>
HWY_INLINE void finish_scales(Batch& batch) {
  const Floats tag;
  const FloatLanes levels = floats(kOffset ? (kFour ? 15.0F : 255.0F) : (kFour ? 8.0F : 127.0F));
  const FloatLanes most = floats(kMostF16);
  for (std::size_t i = batch.size; i % hn::Lanes(tag) != 0; ++i)
    batch.steps[i] = batch.offsets[i] = 0;
  for (std::size_t i = 0; i < batch.size; i += hn::Lanes(tag)) {
    FloatLanes step = hn::Div(hn::Load(tag, &batch.steps[i]), levels);
    step = hn::Min(hn::Max(step, hn::Neg(most)), most);
    FloatLanes offset = hn::Load(tag, &batch.offsets[i]);
    // The sum makes +0 of -0.
    offset = hn::Add(hn::Min(hn::Max(offset, hn::Neg(most)), most), hn::Zero(tag));
    const IntLanes cell = Half::narrow(as_ints(step));
    const auto flat = hn::Eq(hn::And(cell, ints(0x7FFF)), hn::Zero(Ints()));
    store_cells(hn::IfThenZeroElse(flat, cell), &batch.step_cells[i]);
    store_cells(Half::narrow(as_ints(offset)), &batch.offset_cells[i]);
    hn::Store(offset, tag, &batch.offsets[i]);
    const FloatLanes inverse = hn::Div(floats(1.0F), step);
    hn::Store(hn::IfThenZeroElse(hn::RebindMask(tag, flat), inverse), tag, &batch.inverses[i]);
  }
}

/// Codes of `count` elements, a whole number of vectors, one byte each.
template <bool kFour, bool kOffset>
HWY_INLINE void code_all(const float* HWY_RESTRICT group, std::size_t count, float base,
                         float inverse_step, std::uint8_t* HWY_RESTRICT codes) {
  const Floats tag;
  const std::size_t lanes = hn::Lanes(tag);
  const FloatLanes inverse = floats(inverse_step);
  const FloatLanes most = floats(kFour ? 15.0F : 255.0F);
  for (std::size_t i = 0; i < count; i += lanes) {
    FloatLanes value = hn::LoadU(tag, group + i);
    if constexpr (!kFour && !kOffset) {
      // Truncated behind a sum with the largest float below a half: rounds ties away from zero.
      const FloatLanes limit = floats(127.0F);
      value = hn::Min(hn::Max(hn::Mul(value, inverse), hn::Neg(limit)), limit);
      const FloatLanes half = hn::CopySign(floats(0x1.FFFFFEp-2F), value);
      const IntLanes code = hn::ConvertTo(Ints(), hn::Add(value, half));
      store_cells(code, codes + i);
    } else {
      if (kOffset) value = hn::Sub(value, floats(base));
      value = hn::Add(hn::Mul(value, inverse), floats(kOffset ? 0.5F : 8.5F));
      value = hn::Min(hn::Max(value, hn::Zero(tag)), most);
      store_cells(hn::ConvertTo(Ints(), value), codes + i);
    }
  }
}

/// Two codes to a byte: of the first and of the second half.
HWY_INLINE void pack_codes(std::uint8_t* HWY_RESTRICT codes, std::size_t count,
                           std::byte* HWY_RESTRICT to) {
  constexpr std::size_t kPiece = 16;  // which compilers make a vector of
  const std::size_t half = (count + 1) / 2;
  if (count % 2 != 0) codes[count] = 0;
  const std::uint8_t* const upper = codes + half;
  std::size_t i = 0;
  for (; i + kPiece <= half; i += kPiece)
    for (std::size_t j = i; j < i + kPiece; ++j)
      to[j] = static_cast<std::byte>(codes[j] | upper[j] << 4U);
  for (; i < half; ++i) to[i] = static_cast<std::byte>(codes[i] | upper[i] << 4U);
}

/// Writes the groups of a batch and empties it.
template <bool kFour, bool kOffset>
void write_batch(Batch& batch) {
  finish_scales<kFour, kOffset>(batch);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written as far as it is read
  HWY_ALIGN std::array<std::uint8_t, 2 * kMostInGroup> codes;
  for (std::size_t at = 0; at < batch.size; ++at) {
    std::byte* to = batch.to[at];
    const std::size_t used = batch.used[at];
    const bool finite = batch.finite[at];
    std::memcpy(to, finite ? &batch.step_cells[at] : &kNoNumber, sizeof(kNoNumber));
    if (kOffset) {
      const std::uint16_t offset = finite ? batch.offset_cells[at] : std::uint16_t{0};
      std::memcpy(to + sizeof(kNoNumber), &offset, sizeof(offset));
    }
    to += kOffset ? 4 : 2;
    const bool direct = !kFour && used == batch.counts[at];
    auto* const made = direct ? reinterpret_cast<std::uint8_t*>(to) : codes.data();
    if (finite)
      code_all<kFour, kOffset>(batch.groups[at], batch.counts[at], batch.offsets[at],
                               batch.inverses[at], made);
    else
      std::fill_n(made, used, kFour && !kOffset ? std::uint8_t{8} : std::uint8_t{0});
    if (kFour)
      pack_codes(codes.data(), used, to);
    else if (!direct)
      std::memcpy(to, made, used);
  }
  batch.size = 0;
}

float float_of(std::uint16_t half) {
  return hn::GetLane(as_floats(Half::widen(ints(half))));
}

/// Reads a group, moving `from` behind it.
template <bool kFour, bool kOffset>
void decode_group(const std::byte*& from, std::size_t count, float* to) {
  const Floats tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::array<std::uint16_t, 2> told{};
  std::memcpy(told.data(), from, kOffset ? 4 : 2);
  from += kOffset ? 4 : 2;
  const FloatLanes step = floats(float_of(told[0]));
  const FloatLanes offset = floats(float_of(told[1]));
  HWY_ALIGN std::array<std::uint8_t, 2 * kMostInGroup> codes;  // NOLINT: as it is read
  HWY_ALIGN std::array<float, hn::MaxLanes(tag)> rest;         // NOLINT: written before it is read
  const std::size_t half = kFour ? (count + 1) / 2 : count;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  if (kFour) {
    for (std::size_t i = 0; i < half; ++i) {
      codes[i] = bytes[i] & 0xFU;
      codes[half + i] = bytes[i] >> 4U;
    }
    bytes = codes.data();
  } else if (count % lanes != 0) {
    std::memcpy(codes.data(), bytes, count);
    bytes = codes.data();
  }
  from += half;
  for (std::size_t i = 0; i < count; i += lanes) {
    IntLanes code = hn::Zero(Ints());
    if constexpr (kFour || kOffset) {
      const hn::Rebind<std::uint8_t, Floats> cells;
      code = hn::PromoteTo(Ints(), hn::LoadU(cells, bytes + i));
      if (!kOffset) code = hn::Sub(code, ints(8));
    } else {
      const hn::Rebind<std::int8_t, Floats> cells;
      code =
          hn::PromoteTo(Ints(), hn::LoadU(cells, reinterpret_cast<const std::int8_t*>(bytes + i)));
    }
    const FloatLanes value = hn::Add(hn::Mul(hn::ConvertTo(tag, code), step), offset);
    if (i + lanes <= count) {
      hn::StoreU(value, tag, to + i);
    } else {
      hn::StoreU(value, tag, rest.data());
      std::copy_n(rest.begin(), count - i, to + i);
    }
  }
}

template <bool kFour, bool kOffset>
void encode_groups(std::size_t most, std::size_t dim, std::span<const float> rows, std::byte* to) {
  const std::size_t lanes = hn::Lanes(Floats());
  Batch batch;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the same
  HWY_ALIGN std::array<float, kMostInGroup> padded;
  for (std::size_t row = 0; row < rows.size(); row += dim)
    for (std::size_t first = 0; first < dim; first += most) {
      const float* group = rows.data() + row + first;
      const std::size_t used = std::min(most, dim - first);
      const std::size_t count = (used + lanes - 1) / lanes * lanes;
      if (count > used) {
        // Repetitions of the first element change no scale.
        std::fill(std::copy_n(group, used, padded.begin()),
                  padded.begin() + static_cast<std::ptrdiff_t>(count), group[0]);
        group = padded.data();
      }
      add_group<kFour, kOffset>(batch, group, count, used, to);
      to += (kOffset ? 4 : 2) + (kFour ? (used + 1) / 2 : used);
      if (count > used || batch.size == Batch::kMost) write_batch<kFour, kOffset>(batch);
    }
  write_batch<kFour, kOffset>(batch);
}

// ---- Whole groups, one behind the other ----
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// As many groups as a vector has lanes are encoded together: lane i is about group i. What is done
// once a group then costs a fraction of an instruction, and the largest of all groups are found by
// as many instructions as a few of them take alone.

constexpr std::size_t kTogether = hn::MaxLanes(Floats());

/// From a vector a group to the largest lanes of all groups, in order.
HWY_INLINE FloatLanes largest_of_each(std::array<FloatLanes, kTogether>& groups) {
  const Floats tag;
  for (std::size_t left = kTogether / 2; left > 0; left /= 2)
    for (std::size_t i = 0; i < left; ++i) {
      const FloatLanes low = groups[2 * i];
      const FloatLanes high = groups[2 * i + 1];
      groups[i] = hn::Max(hn::ConcatEven(tag, high, low), hn::ConcatOdd(tag, high, low));
    }
  return groups[0];
}

/// What the groups' elements are told by.
struct Scales {
  HWY_ALIGN std::array<float, kTogether> inverses;
  HWY_ALIGN std::array<float, kTogether> offsets;
  HWY_ALIGN std::array<std::uint16_t, kTogether> step_cells;
  HWY_ALIGN std::array<std::uint16_t, kTogether> offset_cells;
};

/// Finds the scales of groups of kGroup elements.
/// Returns  false where one of them is limited, or has what is no number, or both signs of its
///          largest magnitude where that matters: these are told by their elements one by one.
template <bool kFour, bool kOffset, std::size_t kGroup>
HWY_INLINE bool find_scales(const float* HWY_RESTRICT rows, Scales& scales) {
  constexpr bool kBothEnds = kFour || kOffset;
  const Floats tag;
  std::array<FloatLanes, kTogether> tops;
  std::array<FloatLanes, kTogether> bottoms;  // with the other sign
  IntLanes magnitudes = hn::Zero(Ints());
  for (std::size_t g = 0; g < kTogether; ++g) {
    const float* const group = rows + g * kGroup;
    FloatLanes top = hn::LoadU(tag, group);
    FloatLanes bottom = top;
    IntLanes magnitude = as_ints(hn::Abs(top));
    for (std::size_t i = kTogether; i < kGroup; i += kTogether) {
      const FloatLanes values = hn::LoadU(tag, group + i);
      magnitude = hn::Max(magnitude, as_ints(hn::Abs(values)));
      if (kBothEnds) top = hn::Max(top, values);
      if (kBothEnds) bottom = hn::Min(bottom, values);
    }
    magnitudes = hn::Max(magnitudes, magnitude);
    tops[g] = kBothEnds ? top : as_floats(magnitude);
    bottoms[g] = hn::Neg(bottom);
  }
  if (!hn::AllTrue(Ints(), hn::Lt(magnitudes, ints(kInfinity)))) return false;

  const FloatLanes most = floats(kMostF16);
  const FloatLanes top = largest_of_each(tops);
  FloatLanes step = top;
  FloatLanes offset = hn::Zero(tag);
  if constexpr (kOffset) {
    // The sum makes +0 of -0.
    offset = hn::Add(hn::Neg(largest_of_each(bottoms)), hn::Zero(tag));
    step = hn::Sub(top, offset);
    if (!hn::AllTrue(tag, hn::Le(hn::Abs(offset), most))) return false;
  } else if constexpr (kFour) {
    const FloatLanes bottom = largest_of_each(bottoms);
    const auto same = hn::And(hn::Eq(top, bottom), hn::Ne(top, hn::Zero(tag)));
    if (!hn::AllFalse(tag, same)) return false;
    step = hn::IfThenElse(hn::Gt(top, bottom), hn::Neg(top), bottom);
  }
  step = hn::Div(step, floats(kOffset ? (kFour ? 15.0F : 255.0F) : (kFour ? 8.0F : 127.0F)));
  if (!hn::AllTrue(tag, hn::Le(hn::Abs(step), most))) return false;
  const IntLanes cell = Half::narrow(as_ints(step));
  const auto flat = hn::Eq(hn::And(cell, ints(0x7FFF)), hn::Zero(Ints()));
  store_cells(hn::IfThenZeroElse(flat, cell), scales.step_cells.data());
  const FloatLanes inverse = hn::Div(floats(1.0F), step);
  hn::Store(hn::IfThenZeroElse(hn::RebindMask(tag, flat), inverse), tag, scales.inverses.data());
  if constexpr (kOffset) {
    store_cells(Half::narrow(as_ints(offset)), scales.offset_cells.data());
    hn::Store(offset, tag, scales.offsets.data());
  }
  return true;
}

/// Codes of a vector of elements. Where no scale is limited, only those of q4 can be too large.
template <bool kFour, bool kOffset>
HWY_INLINE IntLanes codes_of(FloatLanes values, FloatLanes inverse, FloatLanes offset) {
  if (kOffset) values = hn::Sub(values, offset);
  values = hn::Mul(values, inverse);
  if constexpr (!kFour && !kOffset) {
    values = hn::Add(values, hn::CopySign(floats(0x1.FFFFFEp-2F), values));  // as in code_all
  } else {
    values = hn::Add(values, floats(kOffset ? 0.5F : 8.5F));
    if (kFour) values = hn::Min(values, floats(15.0F));
  }
  return truncated(values);
}

/// Writes the codes of groups behind their scales.
template <bool kFour, bool kOffset, std::size_t kGroup>
HWY_INLINE void write_groups(const float* HWY_RESTRICT rows, const Scales& scales,
                             std::byte* HWY_RESTRICT to) {
  const Floats tag;
  for (std::size_t g = 0; g < kTogether; ++g, rows += kGroup) {
    std::memcpy(to, &scales.step_cells[g], 2);
    if (kOffset) std::memcpy(to + 2, &scales.offset_cells[g], 2);
    to += kOffset ? 4 : 2;
    const FloatLanes inverse = floats(scales.inverses[g]);
    const FloatLanes offset = kOffset ? floats(scales.offsets[g]) : hn::Zero(tag);
    const auto codes = [&](std::size_t i) {
      return codes_of<kFour, kOffset>(hn::LoadU(tag, rows + i), inverse, offset);
    };
    constexpr std::size_t kBytes = kFour ? kGroup / 2 : kGroup;
    auto* const cells = reinterpret_cast<std::uint8_t*>(to);
    for (std::size_t i = 0; i < kBytes; i += kTogether)
      store_cells(kFour ? hn::Or(codes(i), hn::ShiftLeft<4>(codes(i + kBytes))) : codes(i),
                  cells + i);
    to += kBytes;
  }
}

/// Encodes rows of whole groups. Returns  how many elements; what is left is less than kTogether
/// groups.
template <bool kFour, bool kOffset, std::size_t kGroup>
std::size_t encode_whole(std::span<const float> rows, std::byte* to) {
  constexpr std::size_t kElements = kTogether * kGroup;
  constexpr std::size_t kBytes = kTogether * ((kOffset ? 4 : 2) + (kFour ? kGroup / 2 : kGroup));
  Scales scales;
  std::size_t done = 0;
  for (; done + kElements <= rows.size(); done += kElements, to += kBytes) {
    const std::span<const float> part = rows.subspan(done, kElements);
    if (find_scales<kFour, kOffset, kGroup>(part.data(), scales))
      write_groups<kFour, kOffset, kGroup>(part.data(), scales, to);
    else
      encode_groups<kFour, kOffset>(kGroup, kGroup, part, to);
  }
  return done;
}

#endif

template <bool kFour, bool kOffset>
void encode_all(std::size_t group, std::size_t dim, std::span<const float> rows, std::byte* to) {
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  if (dim % group == 0) {
    done = group == 32   ? encode_whole<kFour, kOffset, 32>(rows, to)
           : group == 64 ? encode_whole<kFour, kOffset, 64>(rows, to)
                         : encode_whole<kFour, kOffset, 128>(rows, to);
    dim = group;
    to += done / group * ((kOffset ? 4 : 2) + (kFour ? group / 2 : group));
  }
#endif
  encode_groups<kFour, kOffset>(group, dim, rows.subspan(done), to);
}

template <bool kFour, bool kOffset>
void decode_groups(std::size_t most, std::size_t dim, const std::byte* from,
                   std::span<float> rows) {
  for (std::size_t row = 0; row < rows.size(); row += dim)
    for (std::size_t first = 0; first < dim; first += most)
      decode_group<kFour, kOffset>(from, std::min(most, dim - first), rows.data() + row + first);
}

// ---- By type ----

template <bool kIsFour, bool kHasOffset>
struct Codes {
  static constexpr bool kFour = kIsFour;
  static constexpr bool kOffset = kHasOffset;
};

/// Calls visit(Type()) of the type that elements are stored in, unless that is f32.
template <class Visit>
void visit_type(const StorageFormat& format, const Visit& visit) {
  switch (format.type) {
    case StorageType::kF32:
      return;
    case StorageType::kF16:
      return visit(Half());
    case StorageType::kBf16:
      return visit(Brain());
    case StorageType::kF8E4m3:
      return visit(E4m3());
    case StorageType::kF8E5m2:
      return visit(E5m2());
    case StorageType::kQ8:
      return format.offset ? visit(Codes<false, true>()) : visit(Codes<false, false>());
    case StorageType::kQ4:
      return format.offset ? visit(Codes<true, true>()) : visit(Codes<true, false>());
  }
}

void encode_here(const StorageFormat& format, std::size_t dim, std::span<const float> rows,
                 std::byte* to) {
  const auto group = static_cast<std::size_t>(format.group);
  visit_type(format, [&]<class Type>(Type /*type*/) {
    if constexpr (requires { Type::kFour; })
      encode_all<Type::kFour, Type::kOffset>(group, dim, rows, to);
    else
      narrow_all<Type>(rows.data(), rows.size(), to);
  });
}

void decode_here(const StorageFormat& format, std::size_t dim, const std::byte* from,
                 std::span<float> rows) {
  const auto group = static_cast<std::size_t>(format.group);
  visit_type(format, [&]<class Type>(Type /*type*/) {
    if constexpr (requires { Type::kFour; })
      decode_groups<Type::kFour, Type::kOffset>(group, dim, from, rows);
    else
      widen_all<Type>(from, rows.size(), rows.data());
  });
}

}  // namespace
}  // namespace kvo::optimized::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvo::optimized {

HWY_EXPORT(encode_here);
HWY_EXPORT(decode_here);

void encode_rows(const StorageFormat& format, std::size_t dim, std::span<const float> rows,
                 std::byte* to) {
  if (rows.empty()) return;
  if (format.type == StorageType::kF32)
    std::memcpy(to, rows.data(), rows.size_bytes());
  else
    HWY_DYNAMIC_DISPATCH(encode_here)(format, dim, rows, to);
}

void decode_rows(const StorageFormat& format, std::size_t dim, const std::byte* from,
                 std::span<float> rows) {
  if (rows.empty()) return;
  if (format.type == StorageType::kF32)
    std::memcpy(rows.data(), from, rows.size_bytes());
  else
    HWY_DYNAMIC_DISPATCH(decode_here)(format, dim, from, rows);
}

}  // namespace kvo::optimized
#endif
