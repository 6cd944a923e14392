// reference/contract/values/strided_view.hpp: rows that a cache shows where they lie, in any
// storage type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/contract/values/tensor.hpp"

namespace kvo {

/// Elements of a shape in memory that somebody else owns. Valid as long as its owner says.
struct StridedView {  // NOLINT(bugprone-exception-escape): as Tensor
  Shape shape = {0};
  Shape strides = {0};  ///< from one index of an axis to the next, in elements; one an axis
  DType dtype = DType::kF32;
  const std::byte* data = nullptr;  ///< the element at index 0 of every axis
};

/// A view of a whole tensor, which must outlive it.
[[nodiscard]] StridedView view_of(const Tensor& tensor);

/// The elements in the order of the shape, bit by bit.
[[nodiscard]] Tensor materialize(const StridedView& view);

/// Reads one element of a tensor of floats; exact.
[[nodiscard]] float load_element(DType dtype, const std::byte* from);
/// Writes one element, rounded to the type (values/numeric.hpp).
void store_element(DType dtype, float value, std::byte* to);

}  // namespace kvo
