#include "reference/contract/describe/element.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "reference/contract/values/strided_view.hpp"

namespace kvo {
namespace {

// `bits` are those of the type that the value is stored in.
template <class Number>
std::string value_text(Number value, std::uint64_t bits) {
  if (std::isnan(value)) return "nan (bits " + hexadecimal(bits) + ")";
  constexpr std::size_t kLongest = 32;
  std::array<char, kLongest> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

using Visit = std::function<void(std::string_view, const Tensor&, AxisNames)>;

void visit_tensors(std::string_view place, const Type& type, const void* value, AxisNames axes,
                   const Visit& visit) {
  switch (type.type_class) {
    case TypeClass::kTensor:
      return visit(place, detail::to<Tensor>(value), axes);
    case TypeClass::kRecord:
      for (const Field& field : type.fields)
        visit_tensors((place.empty() ? "" : std::string(place) + ".") + std::string(field.name),
                      *field.type, field.of(value), field.axes, visit);
      return;
    case TypeClass::kList:
      if (type.element->is_number()) return;
      for (std::size_t i = 0; i < type.length(value); ++i)
        visit_tensors(std::string(place) + "[" + std::to_string(i) + "]", *type.element,
                      type.element_at(value, i), axes, visit);
      return;
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      if (const void* held = type.held_by(value))
        visit_tensors(place, *type.element, held, axes, visit);
      return;
    default:
      return;
  }
}

}  // namespace

std::string float_text(float value) {
  return value_text(value, std::bit_cast<std::uint32_t>(value));
}

std::string double_text(double value) {
  return value_text(value, std::bit_cast<std::uint64_t>(value));
}

std::string hexadecimal(std::uint64_t bits) {
  constexpr int kBase = 16;
  std::array<char, sizeof bits * 2> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), bits, kBase);
  return "0x" + std::string(text.data(), end.ptr);
}

std::uint32_t element_bits(const Tensor& tensor, std::size_t index) {
  std::uint32_t bits = 0;
  const std::size_t width = dtype_bytes(tensor.dtype);
  std::memcpy(&bits, tensor.bytes.data() + index * width, width);
  return bits;
}

double element_value(const Tensor& tensor, std::size_t index) {
  const std::byte* at = tensor.bytes.data() + index * dtype_bytes(tensor.dtype);
  if (!is_whole(tensor.dtype)) return double{load_element(tensor.dtype, at)};
  const std::uint32_t bits = element_bits(tensor, index);
  return tensor.dtype == DType::kI32 ? static_cast<double>(std::bit_cast<std::int32_t>(bits))
                                     : static_cast<double>(bits);
}

std::string element_text(const Tensor& tensor, std::size_t index) {
  const double value = element_value(tensor, index);
  if (is_whole(tensor.dtype)) return std::to_string(static_cast<std::int64_t>(value));
  return value_text(static_cast<float>(value), element_bits(tensor, index));
}

std::string coordinates(const Shape& shape, std::size_t index, AxisNames axes) {
  std::vector<std::string> parts(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[axis]);
    const std::string name =
        axis < axes.size() ? std::string(axes[axis]) : "axis" + std::to_string(axis);
    parts[axis] = name + " " + std::to_string(index % size);
    index /= size;
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return "[" + text + "]";
}

void for_each_tensor(const Type& type, const void* value, const Visit& visit) {
  visit_tensors({}, type, value, {}, visit);
}

}  // namespace kvo
