// cuda/jobs/convert_cells.hpp: the conversion of two types that are known when it is queued.
#pragma once

#include "cuda/jobs/convert.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::cuda {

/// Cells of type `To` from `count` cells of a type.
template <class To>
[[nodiscard]] Job convert_to(DevicePtr to, DevicePtr from, DType type, std::int64_t count) {
  KVO_CHECK(type != DType::kI32);
  if (type == DType::kF32) return convert<To, FloatCell>(to, from, count);
  if (type == DType::kF16) return convert<To, HalfCell>(to, from, count);
  return convert<To, BrainCell>(to, from, count);
}

/// Cells of a float type from those of binary32, and back.
[[nodiscard]] inline Job narrow_cells(DevicePtr to, DType type, DevicePtr from,
                                      std::int64_t count) {
  return in_format(type, [&]<class Format>(Format /*format*/) -> Job {
    return convert<Format, FloatCell>(to, from, count);
  });
}
[[nodiscard]] inline Job widen_cells(DevicePtr to, DevicePtr from, DType type, std::int64_t count) {
  return in_format(type, [&]<class Format>(Format /*format*/) -> Job {
    return convert<FloatCell, Format>(to, from, count);
  });
}

/// Requires two different types of floating point of more than 8 bits.
[[nodiscard]] inline Job convert_cells(DevicePtr to, DType to_type, DevicePtr from, DType from_type,
                                       std::int64_t count) {
  KVO_CHECK(to_type != DType::kI32 && to_type != from_type);
  if (to_type == DType::kF32) return convert_to<FloatCell>(to, from, from_type, count);
  if (to_type == DType::kF16) return convert_to<HalfCell>(to, from, from_type, count);
  return convert_to<BrainCell>(to, from, from_type, count);
}

}  // namespace kvo::cuda
