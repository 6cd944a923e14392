#include "reference/contract/describe/element.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "reference/contract/values/strided_view.hpp"

namespace kvo {
namespace {

template <class Bits>
Bits bits_at(const Tensor& tensor, std::size_t index) {
  Bits bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + index * sizeof bits, sizeof bits);
  return bits;
}

template <class Bits>
std::string hexadecimal(Bits bits) {
  constexpr int kBase = 16;
  std::array<char, sizeof bits * 2> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), bits, kBase);
  return "0x" + std::string(text.data(), end.ptr);
}

// `bits` are those of the type that the value is stored in.
template <class Number, class Bits>
std::string value_text(Number value, Bits bits) {
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

std::string element_text(const Tensor& tensor, std::size_t index) {
  if (tensor.dtype == DType::kI32)
    return std::to_string(std::bit_cast<std::int32_t>(bits_at<std::uint32_t>(tensor, index)));
  const float value =
      load_element(tensor.dtype, tensor.bytes.data() + index * dtype_bytes(tensor.dtype));
  switch (tensor.dtype) {
    case DType::kI32:
    case DType::kF32:
      return float_text(value);
    case DType::kF16:
    case DType::kBF16:
      return value_text(value, bits_at<std::uint16_t>(tensor, index));
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return value_text(value, bits_at<std::uint8_t>(tensor, index));
  }
  return {};
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
