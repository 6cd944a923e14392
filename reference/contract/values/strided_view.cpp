#include "reference/contract/values/strided_view.hpp"

#include <bit>
#include <cstring>

#include "reference/contract/values/check.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo {
namespace {

void copy_axes(const StridedView& view, std::size_t axis, const std::byte* from, std::byte*& to) {
  const std::size_t bytes = dtype_bytes(view.dtype);
  const auto step = view.strides[axis] * static_cast<std::int64_t>(bytes);
  const bool last = axis + 1 == view.shape.size();
  if (last && view.strides[axis] == 1) {
    const auto run = static_cast<std::size_t>(view.shape[axis]) * bytes;
    if (run > 0) std::memcpy(to, from, run);
    to += run;
    return;
  }
  for (std::int64_t i = 0; i < view.shape[axis]; ++i, from += step) {
    if (last) {
      std::memcpy(to, from, bytes);
      to += bytes;
    } else {
      copy_axes(view, axis + 1, from, to);
    }
  }
}

}  // namespace

StridedView view_of(const Tensor& tensor) {
  StridedView view{tensor.shape, tensor.shape, tensor.dtype, tensor.bytes.data()};
  std::int64_t stride = 1;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    view.strides[axis] = stride;
    stride *= view.shape[axis];
  }
  return view;
}

Tensor materialize(const StridedView& view) {
  KVO_CHECK(view.shape.size() == view.strides.size() && !view.shape.empty());
  Tensor copy = make_tensor(view.shape, view.dtype);
  std::byte* to = copy.bytes.data();
  if (!copy.bytes.empty()) copy_axes(view, 0, view.data, to);
  return copy;
}

float load_element(DType dtype, const std::byte* from) {
  std::uint8_t byte = 0;
  std::uint16_t half = 0;
  float value = 0;
  switch (dtype) {
    case DType::kF32:
      std::memcpy(&value, from, sizeof(value));
      return value;
    case DType::kF16:
      std::memcpy(&half, from, sizeof(half));
      return f32_of_f16(half);
    case DType::kBF16:
      std::memcpy(&half, from, sizeof(half));
      return f32_of_bf16(half);
    case DType::kF8E4M3:
      std::memcpy(&byte, from, sizeof(byte));
      return f32_of_f8_e4m3(byte);
    case DType::kF8E5M2:
      std::memcpy(&byte, from, sizeof(byte));
      return f32_of_f8_e5m2(byte);
    case DType::kI32:
    case DType::kU32:
    case DType::kBool:
      break;
  }
  KVO_CHECK(!is_whole(dtype));
  return 0;
}

void store_element(DType dtype, float value, std::byte* to) {
  const auto store = [to](auto cell) { std::memcpy(to, &cell, sizeof(cell)); };
  switch (dtype) {
    case DType::kF32:
      return store(value);
    case DType::kF16:
      return store(f16_of(value));
    case DType::kBF16:
      return store(bf16_of(value));
    case DType::kF8E4M3:
      return store(f8_e4m3_of(value));
    case DType::kF8E5M2:
      return store(f8_e5m2_of(value));
    case DType::kI32:
    case DType::kU32:
    case DType::kBool:
      break;
  }
  KVO_CHECK(!is_whole(dtype));
}

}  // namespace kvo
