// reference/contract/describe/json.hpp: described values to and from JSON, as in operation logs.
//
// Tensors are {"shape":[..],"data":[..],"dtype":".."} with dtype left out for f32; a NaN whose
// payload JSON cannot hold makes the writer use "bits" (the raw bit patterns) instead of "data".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "reference/contract/describe/type.hpp"

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

/// Reads a value of `type` into `out`.
/// Returns  true, or false with the fault filled in and `out` unspecified.
bool read_json(const boost::json::value& in, const Type& type, void* out, JsonFault& fault);
[[nodiscard]] boost::json::value write_json(const Type& type, const void* value);

template <class T>
bool read_json(const boost::json::value& in, T& out, JsonFault& fault) {
  return read_json(in, type_of<T>(), &out, fault);
}
template <class T>
[[nodiscard]] boost::json::value write_json(const T& value) {
  return write_json(type_of<T>(), &value);
}

/// The members of a record whose value is not that of a new record of this type.
[[nodiscard]] boost::json::object write_changed(const Type& type, const void* value);

/// Memory that two processes share, for the bytes of tensors in the place of text.
class TensorMemory {
 public:
  TensorMemory() = default;
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;
  virtual ~TensorMemory() = default;
  /// Copies bytes there. Returns  their offset; nothing: they do not fit, or text is as good.
  [[nodiscard]] virtual std::optional<std::size_t> put(std::span<const std::byte> bytes) = 0;
  /// What the other process has put there; empty: it is outside of the memory.
  [[nodiscard]] virtual std::span<const std::byte> at(std::size_t offset,
                                                      std::size_t bytes) const = 0;
  /// Whether that stays as it is while what was read of it is used, so that tensors need no copy.
  [[nodiscard]] virtual bool lends() const = 0;
};
/// That of the JSON that this thread reads and writes: tensors then may have "at", an offset, in
/// the place of "data". Null: none.
inline thread_local TensorMemory* tensor_memory = nullptr;  // NOLINT: of the JSON under way

/// A record of `type`, or none with the fault filled in.
[[nodiscard]] Record read_record(const boost::json::value& in, const Type& type, JsonFault& fault);
[[nodiscard]] boost::json::object write_record(const Record& record);
/// A value on one line, for people.
[[nodiscard]] std::string json_text(const Type& type, const void* value);

namespace detail {
bool fault_at(JsonFault& fault, const boost::json::value& in, std::string_view problem);
/// Puts `name` in front of the fault's path.
bool fault_inside(JsonFault& fault, std::string_view name);
}  // namespace detail

}  // namespace kvo
