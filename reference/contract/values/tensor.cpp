#include "reference/contract/values/tensor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "reference/contract/values/check.hpp"

namespace kvo {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<DTypeRow, 8> kDTypes{{{DType::kF32, "f32", 4},
                                           {DType::kF16, "f16", 2},
                                           {DType::kBF16, "bf16", 2},
                                           {DType::kI32, "i32", 4},
                                           {DType::kF8E4M3, "f8_e4m3", 1},
                                           {DType::kF8E5M2, "f8_e5m2", 1},
                                           {DType::kU32, "u32", 4},
                                           {DType::kBool, "bool", 1}}};

const DTypeRow& row(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::size_t dtype_bytes(DType dtype) {
  return row(dtype).bytes;
}

bool is_whole(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kU32 || dtype == DType::kBool;
}

std::string_view dtype_name(DType dtype) {
  return row(dtype).name;
}

std::optional<DType> dtype_of_name(std::string_view name) {
  for (const DTypeRow& known : kDTypes)
    if (known.name == name) return known.dtype;
  return std::nullopt;
}

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  return product;
}

std::span<const float> Tensor::floats() const {
  KVO_CHECK(dtype == DType::kF32);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<float> Tensor::floats() {
  KVO_CHECK(dtype == DType::kF32);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Tensor make_tensor(Shape shape, DType dtype) {
  const auto count = element_count(shape);
  KVO_CHECK(count.has_value());
  return {std::move(shape), dtype,
          TensorBytes(static_cast<std::size_t>(*count) * dtype_bytes(dtype))};
}

Tensor tensor_of(Shape shape, std::span<const float> values) {
  const auto count = element_count(shape);
  KVO_CHECK(count == static_cast<std::int64_t>(values.size()));
  const auto bytes = std::as_bytes(values);
  return {std::move(shape), DType::kF32, TensorBytes(bytes.begin(), bytes.end())};
}

void HostStorage::read(std::int64_t offset, std::span<float> out) const {
  KVO_CHECK(offset >= 0 && static_cast<std::size_t>(offset) + out.size() <= cells.size());
  std::copy_n(cells.begin() + offset, out.size(), out.begin());
}

void HostStorage::write(std::int64_t offset, float value) {
  KVO_CHECK(offset >= 0 && static_cast<std::size_t>(offset) < cells.size());
  cells[static_cast<std::size_t>(offset)] = value;
}

Tensor materialize(const TensorView& view) {
  KVO_CHECK(!view.dangling());
  Tensor copy = make_tensor(view.shape);
  view.storage->read(view.offset, copy.floats());
  return copy;
}

}  // namespace kvo
