// reference/contract/describe/element.hpp: elements of tensors as people read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "reference/contract/describe/type.hpp"

namespace kvo {

/// The shortest decimal that is this float and no other: "0.1", "-0", "inf"; a NaN with its bits,
/// "nan (bits 0x7fc00001)".
[[nodiscard]] std::string float_text(float value);
[[nodiscard]] std::string double_text(double value);

/// "0x7fc00001"
[[nodiscard]] std::string hexadecimal(std::uint64_t bits);

/// Element `index` of a tensor, counted in memory order: its bits, its value, and that as text. @{
[[nodiscard]] std::uint32_t element_bits(const Tensor& tensor, std::size_t index);
[[nodiscard]] double element_value(const Tensor& tensor, std::size_t index);
[[nodiscard]] std::string element_text(const Tensor& tensor, std::size_t index);
/// @}

/// "[batch 0, position 3, dim 1]": the coordinates of element `index` of a tensor.
[[nodiscard]] std::string coordinates(const Shape& shape, std::size_t index, AxisNames axes);

/// Calls visit(place, tensor, axes) for each tensor in a value; `place` is its path of fields.
void for_each_tensor(
    const Type& type, const void* value,
    const std::function<void(std::string_view place, const Tensor& tensor, AxisNames axes)>& visit);

}  // namespace kvo
