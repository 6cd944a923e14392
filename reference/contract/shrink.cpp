#include "reference/contract/shrink.hpp"

#include "reference/contract/check.hpp"

namespace kvo {

Tensor cut_axis(const Tensor& tensor, std::size_t axis, std::int64_t size) {
  KVO_CHECK(axis < tensor.shape.size() && size >= 0 && size <= tensor.shape[axis]);
  std::size_t outer = 1;
  std::size_t inner = dtype_bytes(tensor.dtype);
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(tensor.shape[i]);
  for (std::size_t i = axis + 1; i < tensor.shape.size(); ++i)
    inner *= static_cast<std::size_t>(tensor.shape[i]);
  const std::size_t old_stride = static_cast<std::size_t>(tensor.shape[axis]) * inner;
  const std::size_t kept = static_cast<std::size_t>(size) * inner;
  Tensor cut{.shape = tensor.shape, .dtype = tensor.dtype, .bytes = {}};
  cut.shape[axis] = size;
  cut.bytes.reserve(outer * kept);
  for (std::size_t row = 0; row < outer; ++row) {
    const auto from = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(row * old_stride);
    cut.bytes.insert(cut.bytes.end(), from, from + static_cast<std::ptrdiff_t>(kept));
  }
  return cut;
}

}  // namespace kvo
