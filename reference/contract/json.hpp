// reference/contract/json.hpp: described records to and from JSON, as in operation logs.
//
// Tensors are {"shape":[..],"data":[..],"dtype":".."} with dtype left out for f32; a NaN whose
// payload JSON cannot hold makes the writer use "bits" (the raw bit patterns) instead of "data".
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <boost/json.hpp>

#include "reference/contract/describe.hpp"
#include "reference/contract/tensor.hpp"

namespace kvo {

/// Why a JSON value could not be read: the field's path, the offending value, and what was wanted.
struct JsonFault {
  std::string field;
  std::string value;
  std::string problem;
  /// "k.shape: [1,-2]: is negative"
  [[nodiscard]] std::string text() const;
};

/// A number as logs write it: integers plain, others in the shortest form that reads back, and
/// "inf", "-inf", "nan" as strings.
[[nodiscard]] boost::json::value number_to_json(double value);
[[nodiscard]] boost::json::value float_to_json(float value);

// Readers return true, or false with the fault filled in and `out` unspecified.
bool read_json(const boost::json::value& in, bool& out, JsonFault& fault);
bool read_json(const boost::json::value& in, std::int64_t& out, JsonFault& fault);
bool read_json(const boost::json::value& in, std::uint64_t& out, JsonFault& fault);
bool read_json(const boost::json::value& in, std::int32_t& out, JsonFault& fault);
bool read_json(const boost::json::value& in, float& out, JsonFault& fault);
bool read_json(const boost::json::value& in, std::string& out, JsonFault& fault);
bool read_json(const boost::json::value& in, Tensor& out, JsonFault& fault);

[[nodiscard]] inline boost::json::value write_json(bool value) {
  return value;
}
[[nodiscard]] inline boost::json::value write_json(std::int64_t value) {
  return value;
}
[[nodiscard]] inline boost::json::value write_json(std::uint64_t value) {
  return value;
}
[[nodiscard]] inline boost::json::value write_json(std::int32_t value) {
  return value;
}
[[nodiscard]] inline boost::json::value write_json(float value) {
  return float_to_json(value);
}
[[nodiscard]] inline boost::json::value write_json(double value) {
  return number_to_json(value);
}
[[nodiscard]] inline boost::json::value write_json(const std::string& value) {
  return boost::json::string(value);
}
[[nodiscard]] boost::json::value write_json(const Tensor& tensor);

namespace detail {
bool fault_at(JsonFault& fault, const boost::json::value& in, std::string_view problem);
/// Puts `name` in front of the fault's path.
bool fault_inside(JsonFault& fault, std::string_view name);
bool no_unknown_member(const boost::json::object& in, const std::vector<std::string_view>& known,
                       JsonFault& fault);
}  // namespace detail

template <class T>
[[nodiscard]] boost::json::value write_json(const T& value) {
  if constexpr (Described<T>) {
    boost::json::object out;
    for_each_member(value, [&](std::string_view name, const auto& member) {
      using Member = std::remove_cvref_t<decltype(member)>;
      if constexpr (Optional<Member>) {
        if (member) out[name] = write_json(*member);
      } else {
        out[name] = write_json(member);
      }
    });
    return out;
  } else if constexpr (NullableType<T>) {
    return value.has_value() ? write_json(*value) : boost::json::value(nullptr);
  } else if constexpr (Vector<T>) {
    boost::json::array out;
    out.reserve(value.size());
    for (const auto& element : value) out.push_back(write_json(element));
    return out;
  } else if constexpr (DescribedEnum<T>) {
    return boost::json::value(enumerator_word(boost::describe::enum_to_string(value, "unknown")));
  } else {
    return value.to_json();
  }
}

template <class T>
bool read_json(const boost::json::value& in, T& out, JsonFault& fault);

namespace detail {

template <class T>
bool read_record(const boost::json::value& in, T& out, JsonFault& fault) {
  if (!in.is_object()) return fault_at(fault, in, "is not an object");
  const boost::json::object& object = in.get_object();
  std::vector<std::string_view> known;
  bool good = true;
  for_each_member(out, [&](std::string_view name, auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    known.push_back(name);
    if (!good) return;
    const boost::json::value* found = object.if_contains(name);
    if constexpr (Optional<Member>) {
      if (found == nullptr) {
        member.reset();
        return;
      }
      good = read_json(*found, member.emplace(), fault) || fault_inside(fault, name);
    } else {
      good = found != nullptr ? read_json(*found, member, fault) || fault_inside(fault, name)
                              : fault_at(fault, in, "has no field \"" + std::string(name) + "\"");
    }
  });
  return good && no_unknown_member(object, known, fault);
}

template <class T>
bool read_list(const boost::json::value& in, std::vector<T>& out, JsonFault& fault) {
  if (!in.is_array()) return fault_at(fault, in, "is not a list");
  out.clear();
  for (const boost::json::value& element : in.get_array()) {
    T read{};
    if (!read_json(element, read, fault)) return fault_inside(fault, std::to_string(out.size()));
    out.push_back(std::move(read));
  }
  return true;
}

template <class T>
bool read_enum(const boost::json::value& in, T& out, JsonFault& fault) {
  std::string words;
  bool found = false;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto e) {
    const std::string word = enumerator_word(e.name);
    words += (words.empty() ? "" : ", ") + word;
    if (in.is_string() && std::string_view(in.get_string()) == word) {
      out = e.value;
      found = true;
    }
  });
  return found || fault_at(fault, in, "is none of " + words);
}

}  // namespace detail

template <class T>
bool read_json(const boost::json::value& in, T& out, JsonFault& fault) {
  if constexpr (Described<T>) {
    return detail::read_record(in, out, fault);
  } else if constexpr (NullableType<T>) {
    out.value.reset();
    return in.is_null() || read_json(in, out.value.emplace(), fault);
  } else if constexpr (Vector<T>) {
    return detail::read_list(in, out, fault);
  } else if constexpr (DescribedEnum<T>) {
    return detail::read_enum(in, out, fault);
  } else {
    return out.from_json(in) || detail::fault_at(fault, in, "is not understood");
  }
}

}  // namespace kvo
