// Rows of floats.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "optimized/memory/convert.hpp"

// This file is compiled once for each target: on x86 plain loops, SSE4, AVX2 and AVX-512.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming): its name is Highway's
#define HWY_TARGET_INCLUDE "optimized/memory/convert_floats.cpp"
#include <hwy/foreach_target.h>  // includes this file again; must come before highway.h
#include <hwy/highway.h>

#include "optimized/memory/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace kvo::optimized::HWY_NAMESPACE {
namespace {

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

void encode_here(StorageType type, std::span<const float> from, std::byte* to) {
  switch (type) {
    case StorageType::kF16:
      return narrow_all<Half>(from.data(), from.size(), to);
    case StorageType::kBf16:
      return narrow_all<Brain>(from.data(), from.size(), to);
    case StorageType::kF8E4m3:
      return narrow_all<E4m3>(from.data(), from.size(), to);
    case StorageType::kF8E5m2:
      return narrow_all<E5m2>(from.data(), from.size(), to);
    default:
      if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
  }
}

void decode_here(StorageType type, const std::byte* from, std::span<float> to) {
  switch (type) {
    case StorageType::kF16:
      return widen_all<Half>(from, to.size(), to.data());
    case StorageType::kBf16:
      return widen_all<Brain>(from, to.size(), to.data());
    case StorageType::kF8E4m3:
      return widen_all<E4m3>(from, to.size(), to.data());
    case StorageType::kF8E5m2:
      return widen_all<E5m2>(from, to.size(), to.data());
    default:
      if (!to.empty()) std::memcpy(to.data(), from, to.size_bytes());
  }
}

}  // namespace
}  // namespace kvo::optimized::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvo::optimized {

HWY_EXPORT(encode_here);
HWY_EXPORT(decode_here);

void detail::encode_floats(StorageType type, std::span<const float> from, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(encode_here)(type, from, to);
}

void detail::decode_floats(StorageType type, const std::byte* from, std::span<float> to) {
  HWY_DYNAMIC_DISPATCH(decode_here)(type, from, to);
}

}  // namespace kvo::optimized
#endif
