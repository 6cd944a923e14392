#include "reference/contract/describe/difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/json.hpp"

namespace kvo {
namespace {

// How many of `count` elements of `width` bytes differ.
std::uint64_t differing_elements(const void* want, const void* got, std::size_t count,
                                 std::size_t width) {
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < count; ++i)
    differing += std::memcmp(static_cast<const std::byte*>(want) + i * width,
                             static_cast<const std::byte*>(got) + i * width, width) != 0
                     ? 1
                     : 0;
  return differing;
}

// The elements of a row that are too far off for its group, by their index.
template <class Found>
void visit_too_far(const StorageFormat& format, std::span<const float> want,
                   std::span<const float> got, const Found& found) {
  const std::size_t unit = in_groups(format.type) ? static_cast<std::size_t>(format.group) : 1;
  std::vector<std::byte> stored(stored_bytes(format, unit));
  std::vector<float> shown(unit);
  for (std::size_t begin = 0; begin < want.size(); begin += unit) {
    const auto group = want.subspan(begin, std::min(unit, want.size() - begin));
    const double bound = error_bound(format, group);
    if (!std::isfinite(bound)) {
      encode(format, group, stored.data());
      decode(format, stored.data(), std::span(shown).first(group.size()));
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      const float seen = got[begin + i];
      const bool agrees = std::isfinite(bound)
                              ? std::abs(double{seen} - double{group[i]}) <= bound
                              : seen == shown[i] || (std::isnan(seen) && std::isnan(shown[i]));
      if (!agrees) found(begin + i);
    }
  }
}

// As tensor_difference, for f32 tensors of one shape.
std::optional<Difference> stored_difference(std::string_view place, const Tensor& want,
                                            const Tensor& got, AxisNames axes,
                                            const StorageFormat& format) {
  const std::size_t row = want.shape.empty() ? 1 : static_cast<std::size_t>(want.shape.back());
  std::optional<std::size_t> first;
  std::uint64_t differing = 0;
  for (std::size_t begin = 0; begin < want.floats().size(); begin += row)
    visit_too_far(format, want.floats().subspan(begin, row), got.floats().subspan(begin, row),
                  [&](std::size_t at) {
                    if (!first) first = begin + at;
                    ++differing;
                  });
  if (!first) return std::nullopt;
  return Difference{std::string(place) + coordinates(want.shape, *first, axes),
                    element_text(want, *first), element_text(got, *first), differing,
                    want.floats().size()};
}

std::optional<Difference> tensor_difference(std::string_view place, const Tensor& want,
                                            const Tensor& got, AxisNames axes,
                                            const StorageFormat* stored) {
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
  if (stored != nullptr && want.dtype == DType::kF32)
    return stored_difference(place, want, got, axes, *stored);
  const auto apart = std::mismatch(want.bytes.begin(), want.bytes.end(), got.bytes.begin());
  const std::size_t width = dtype_bytes(want.dtype);
  const auto index = static_cast<std::size_t>(apart.first - want.bytes.begin()) / width;
  Difference found = differ(coordinates(want.shape, index, axes), element_text(want, index),
                            element_text(got, index));
  found.elements = want.bytes.size() / width;
  found.differing = differing_elements(want.bytes.data(), got.bytes.data(), found.elements, width);
  return found;
}

// Whether two values are the same bit by bit. It runs after every operation: what a difference
// needs costs several times as much.
bool are_same(const Type& type, const void* want, const void* got) {
  switch (type.type_class) {
    case TypeClass::kTensor: {
      const auto& one = detail::to<Tensor>(want);
      const auto& other = detail::to<Tensor>(got);
      return one.dtype == other.dtype && one.shape == other.shape &&
             (one.bytes.empty() ||
              std::memcmp(one.bytes.data(), other.bytes.data(), one.bytes.size()) == 0);
    }
    case TypeClass::kRecord:
      for (const Field& field : type.fields)
        if (!are_same(*field.type, field.of(want), field.of(got))) return false;
      return true;
    case TypeClass::kList: {
      const std::size_t length = type.length(want);
      if (length != type.length(got)) return false;
      if (length > 0 && type.element->is_number())
        return std::memcmp(type.element_at(want, 0), type.element_at(got, 0),
                           length * type.element->size) == 0;
      for (std::size_t i = 0; i < length; ++i)
        if (!are_same(*type.element, type.element_at(want, i), type.element_at(got, i)))
          return false;
      return true;
    }
    case TypeClass::kOptional:
    case TypeClass::kNullable: {
      const void* wanted = type.held_by(want);
      const void* there = type.held_by(got);
      if (wanted == nullptr || there == nullptr) return wanted == there;
      return are_same(*type.element, wanted, there);
    }
    case TypeClass::kString:
      return detail::to<std::string>(want) == detail::to<std::string>(got);
    case TypeClass::kCustom:
      return type.equal(want, got);
    default:  // values without padding
      return std::memcmp(want, got, type.size) == 0;
  }
}

std::string inside(std::string_view place, std::string_view name) {
  return place.empty() ? std::string(name) : std::string(place) + "." + std::string(name);
}

// What a record says of the values in its members.
struct Terms {
  Exactness exactness = {};
  AxisNames axes = {};
  double tolerance = 0;
};

std::optional<Difference> difference_at(std::string_view place, const Type& type, const void* want,
                                        const void* got, const Terms& terms);

std::string shown(const Type& type, const void* value) {
  if (type.type_class == TypeClass::kFloat) return float_text(detail::to<float>(value));
  if (type.type_class == TypeClass::kDouble) return double_text(detail::to<double>(value));
  return json_text(type, value);
}

Difference whole(std::string_view place, const Type& type, const void* want, const void* got) {
  return {std::string(place), shown(type, want), shown(type, got)};
}

std::optional<Difference> field_difference(std::string_view place, const Type& type,
                                           const void* want, const void* got,
                                           const Exactness& exactness) {
  const double tolerance = exactness.wanted == Wanted::kRecorded ? type.recorded_tolerance : 0;
  for (const Field& field : type.fields) {
    if (field.compared_if_shown && (field.type->held_by(field.of(want)) == nullptr ||
                                    field.type->held_by(field.of(got)) == nullptr))
      continue;
    auto found = difference_at(field.name, *field.type, field.of(want), field.of(got),
                               {exactness, field.axes, tolerance});
    if (!found) continue;
    if (!place.empty()) found->place = inside(place, found->place);
    return found;
  }
  return std::nullopt;
}

// NaN and infinities are close to nothing; they agree by their bits.
bool is_close(const Type& type, const void* want, const void* got, double tolerance) {
  if (type.type_class != TypeClass::kDouble || tolerance == 0) return false;
  const double wanted = detail::to<double>(want);
  const double apart = std::abs(wanted - detail::to<double>(got));
  return std::isfinite(apart) && apart <= tolerance * std::abs(wanted);
}

std::optional<Difference> element_difference(std::string_view place, const Type& type,
                                             const void* want, const void* got,
                                             const Terms& terms) {
  const std::size_t length = type.length(want);
  if (length != type.length(got))
    return Difference{inside(place, "size"), std::to_string(length),
                      std::to_string(type.length(got))};
  const bool plain = type.element->is_number();
  if (length == 0 || (plain && std::memcmp(type.element_at(want, 0), type.element_at(got, 0),
                                           length * type.element->size) == 0))
    return std::nullopt;
  for (std::size_t i = 0; i < length; ++i) {
    auto found =
        difference_at({}, *type.element, type.element_at(want, i), type.element_at(got, i), terms);
    if (!found) continue;
    found->place = std::string(place) + "[" + std::to_string(i) + "]" +
                   (found->place.empty() ? "" : "." + found->place);
    if (plain) {
      found->elements = length;
      found->differing = differing_elements(type.element_at(want, 0), type.element_at(got, 0),
                                            length, type.element->size);
    }
    return found;
  }
  return std::nullopt;
}

std::optional<Difference> held_difference(std::string_view place, const Type& type,
                                          const void* want, const void* got, const Terms& terms) {
  const void* wanted = type.held_by(want);
  const void* there = type.held_by(got);
  if (wanted != nullptr && there != nullptr)
    return difference_at(place, *type.element, wanted, there, terms);
  if (wanted == there) return std::nullopt;
  const auto held_text = [&](const void* held) {
    if (held != nullptr) return shown(*type.element, held);
    return std::string(type.is_optional() ? "absent" : "null");
  };
  return Difference{std::string(place), held_text(wanted), held_text(there)};
}

// The first member or element in which two values of a custom type differ.
Difference json_difference(std::string_view place, const boost::json::value& want,
                           const boost::json::value& got) {
  if (want.is_object() && got.is_object())
    for (const auto& member : want.get_object())
      if (const auto* other = got.get_object().if_contains(member.key());
          other != nullptr && *other != member.value())
        return json_difference(inside(place, member.key()), member.value(), *other);
  if (want.is_array() && got.is_array() && want.get_array().size() == got.get_array().size())
    for (std::size_t i = 0; i < want.get_array().size(); ++i)
      if (want.get_array()[i] != got.get_array()[i])
        return json_difference(std::string(place) + "[" + std::to_string(i) + "]",
                               want.get_array()[i], got.get_array()[i]);
  return {std::string(place), boost::json::serialize(want), boost::json::serialize(got)};
}

std::optional<Difference> difference_at(std::string_view place, const Type& type, const void* want,
                                        const void* got, const Terms& terms) {
  switch (type.type_class) {
    case TypeClass::kTensor:
      return tensor_difference(place, detail::to<Tensor>(want), detail::to<Tensor>(got), terms.axes,
                               terms.exactness.stored);
    case TypeClass::kRecord:
      return field_difference(place, type, want, got, terms.exactness);
    case TypeClass::kList:
      return element_difference(place, type, want, got, terms);
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      return held_difference(place, type, want, got, terms);
    case TypeClass::kString:
      if (detail::to<std::string>(want) == detail::to<std::string>(got)) return std::nullopt;
      return whole(place, type, want, got);
    case TypeClass::kCustom:
      if (type.equal(want, got)) return std::nullopt;
      return json_difference(place, type.to_json(want), type.to_json(got));
    default:  // values without padding
      if (std::memcmp(want, got, type.size) == 0 || is_close(type, want, got, terms.tolerance))
        return std::nullopt;
      return whole(place, type, want, got);
  }
}

}  // namespace

std::string Difference::text() const {
  const std::string extent = elements > 1 ? " (" + std::to_string(differing) + " of " +
                                                std::to_string(elements) + " elements differ)"
                                          : "";
  if (varied) return place + ": original script: " + want + "; " + *varied + ": " + got + extent;
  return place + ": want " + want + ", got " + got + extent;
}

std::optional<Difference> first_difference(const Type& type, const void* want, const void* got,
                                           const Exactness& exactness) {
  if (are_same(type, want, got)) return std::nullopt;
  return difference_at({}, type, want, got, {.exactness = exactness});
}

}  // namespace kvo
