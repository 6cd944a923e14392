// reference/contract/difference.hpp: the first difference of two described records, with its place.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "reference/contract/json.hpp"

namespace kvo {

/// Where two observations part. `place` is a path of fields; inside a tensor it ends in
/// coordinates: "k[batch 0, position 3, dim 1]".
struct Difference {
  std::string place;
  std::string want;
  std::string got;
  /// "k[batch 0, position 3, dim 1]: want 7, got 9"
  [[nodiscard]] std::string text() const;
};
BOOST_DESCRIBE_STRUCT(Difference, (), (place, want, got))

/// Names of axes, outermost first; missing names are numbered.
using AxisNames = std::span<const std::string_view>;

/// Bit by bit: NaNs with the same bits agree, 0.0 and -0.0 differ.
[[nodiscard]] std::optional<Difference> tensor_difference(std::string_view place,
                                                          const Tensor& want, const Tensor& got,
                                                          AxisNames axes);

namespace detail {
/// Of the tensor in member `name` of a T: those of all its tensors, or what T::axes(name) says.
template <class T>
constexpr AxisNames axes_of(std::string_view name) {
  if constexpr (requires { T::axes(name); }) {
    return T::axes(name);
  } else if constexpr (requires { T::kAxes; }) {
    return T::kAxes;
  } else {
    return {};
  }
}

template <class T>
std::string shown_json(const T& value) {
  return boost::json::serialize(write_json(value));
}
inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
inline std::string inside(std::string_view place, std::string_view name) {
  return place.empty() ? std::string(name) : std::string(place) + "." + std::string(name);
}
}  // namespace detail

/// The first difference in order of declaration; nothing when the values agree.
template <class T>
std::optional<Difference> first_difference(std::string_view place, const T& want, const T& got,
                                           AxisNames axes = {}) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return tensor_difference(place, want, got, axes);
  } else if constexpr (Described<T>) {
    std::optional<Difference> found;
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      if (found) return;
      // The path is only built where the members differ: this runs after every operation.
      const auto& w = want.*member.pointer;
      const auto& g = got.*member.pointer;
      found =
          first_difference(std::string_view(member.name), w, g, detail::axes_of<T>(member.name));
      if (found && !place.empty()) found->place = detail::inside(place, found->place);
    });
    return found;
  } else if constexpr (Optional<T> || NullableType<T>) {
    if (want.has_value() && got.has_value()) return first_difference(place, *want, *got, axes);
    if (!want.has_value() && !got.has_value()) return std::nullopt;
    const std::string_view nothing = Optional<T> ? "absent" : "null";
    return Difference{std::string(place),
                      want.has_value() ? detail::shown_json(*want) : std::string(nothing),
                      got.has_value() ? detail::shown_json(*got) : std::string(nothing)};
  } else if constexpr (Vector<T>) {
    if (want.size() != got.size())
      return Difference{detail::inside(place, "size"), std::to_string(want.size()),
                        std::to_string(got.size())};
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (auto found = first_difference(std::string_view(), want[i], got[i], axes)) {
        found->place = std::string(place) + "[" + std::to_string(i) + "]" +
                       (found->place.empty() ? "" : "." + found->place);
        return found;
      }
    }
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, float>) {
    if (detail::same_bits(want, got)) return std::nullopt;
    return Difference{std::string(place), detail::shown_json(want), detail::shown_json(got)};
  } else {
    if (want == got) return std::nullopt;
    return Difference{std::string(place), detail::shown_json(want), detail::shown_json(got)};
  }
}

}  // namespace kvo
