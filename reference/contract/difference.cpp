#include "reference/contract/difference.hpp"

#include <algorithm>
#include <cstring>

namespace kvo {
namespace {

std::string element_text(const Tensor& tensor, std::size_t index) {
  const std::size_t width = dtype_bytes(tensor.dtype);
  Tensor one{.shape = {1}, .dtype = tensor.dtype, .bytes = {}};
  const auto at = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(index * width);
  one.bytes.assign(at, at + static_cast<std::ptrdiff_t>(width));
  const boost::json::value written = write_json(one);
  const boost::json::object& object = written.get_object();
  if (const auto* data = object.if_contains("data"))
    return boost::json::serialize(data->get_array().at(0));
  return "bits " + boost::json::serialize(object.at("bits").get_array().at(0));
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

}  // namespace

std::string Difference::text() const {
  return place + ": want " + want + ", got " + got;
}

std::optional<Difference> tensor_difference(std::string_view place, const Tensor& want,
                                            const Tensor& got, AxisNames axes) {
  const auto differ = [&](std::string_view what, std::string w, std::string g) {
    return Difference{std::string(place) + std::string(what), std::move(w), std::move(g)};
  };
  if (want.shape != got.shape)
    return differ(".shape",
                  boost::json::serialize(boost::json::array(want.shape.begin(), want.shape.end())),
                  boost::json::serialize(boost::json::array(got.shape.begin(), got.shape.end())));
  if (want.dtype != got.dtype)
    return differ(".dtype", std::string(dtype_name(want.dtype)),
                  std::string(dtype_name(got.dtype)));
  if (want.bytes.empty() ||
      std::memcmp(want.bytes.data(), got.bytes.data(), want.bytes.size()) == 0)
    return std::nullopt;
  const auto apart = std::mismatch(want.bytes.begin(), want.bytes.end(), got.bytes.begin());
  const auto index =
      static_cast<std::size_t>(apart.first - want.bytes.begin()) / dtype_bytes(want.dtype);
  return differ(coordinates(want.shape, index, axes), element_text(want, index),
                element_text(got, index));
}

}  // namespace kvo
