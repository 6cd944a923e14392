#include "reference/contract/describe/json.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reference/contract/describe/difference.hpp"
#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/utf8.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo {
namespace {

namespace json = boost::json;

constexpr std::size_t kShownValue = 60;

// Whole numbers below this are written without a fraction and are exact in a double.
constexpr double kExactIntegers = 9007199254740992.0;

std::optional<double> number_of(const json::value& in) {
  if (in.is_int64()) return static_cast<double>(in.get_int64());
  if (in.is_uint64()) return static_cast<double>(in.get_uint64());
  if (in.is_double()) return in.get_double();
  if (in.is_string()) {
    const std::string_view text = in.get_string();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

// The NaN of "nan", and how another one is written: "nan:2143289345", a float by its bits.
constexpr std::uint32_t kUsualNan = 0x7FC00000U;
constexpr std::string_view kNanOfBits = "nan:";

bool read_nan(const json::value& in, float& out) {
  if (!in.is_string()) return false;
  std::string_view text = in.get_string();
  if (!text.starts_with(kNanOfBits)) return false;
  text.remove_prefix(kNanOfBits.size());
  std::uint32_t bits = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (failed != std::errc() || end != text.data() + text.size()) return false;
  out = std::bit_cast<float>(bits);
  return std::isnan(out);
}

void store(DType dtype, double value, std::byte* at) {
  if (!is_whole(dtype)) return store_element(dtype, static_cast<float>(value), at);
  const auto whole = static_cast<std::int64_t>(value);
  std::memcpy(at, &whole, dtype_bytes(dtype));
}

// The value of one element, and whether writing it as a number keeps every bit.
struct Shown {
  json::value number;
  bool exact;
};
Shown shown(const Tensor& tensor, std::size_t index) {
  const double value = element_value(tensor, index);
  // Read as a number, an infinity is the largest finite value of f8.
  const bool limited = tensor.dtype == DType::kF8E5M2 && std::isinf(value);
  return {number_to_json(value), !std::isnan(value) && !limited};
}

}  // namespace

std::string JsonFault::text() const {
  return (field.empty() ? "" : field + ": ") + value + ": " + problem;
}

json::value number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const bool minus_zero = value == 0 && std::signbit(value);
  if (value == std::trunc(value) && std::abs(value) < kExactIntegers && !minus_zero)
    return static_cast<std::int64_t>(value);
  return value;
}

json::value float_to_json(float value) {
  // A float that is another NaN than the usual one, in the place of a tensor's "bits".
  if (std::isnan(value) && std::bit_cast<std::uint32_t>(value) != kUsualNan)
    return json::string(std::string(kNanOfBits) +
                        std::to_string(std::bit_cast<std::uint32_t>(value)));
  return number_to_json(static_cast<double>(value));
}

bool detail::fault_at(JsonFault& fault, const json::value& in, std::string_view problem) {
  std::string shown_value = json::serialize(in);
  if (shown_value.size() > kShownValue) shown_value = shown_value.substr(0, kShownValue) + "...";
  fault = {.field = {}, .value = std::move(shown_value), .problem = std::string(problem)};
  return false;
}

bool detail::fault_inside(JsonFault& fault, std::string_view name) {
  fault.field = std::string(name) + (fault.field.empty() ? "" : "." + fault.field);
  return false;
}

namespace {

bool no_unknown_member(const json::object& in, const std::vector<std::string_view>& known,
                       JsonFault& fault) {
  for (const auto& member : in) {
    if (std::ranges::find(known, std::string_view(member.key())) != known.end()) continue;
    detail::fault_at(fault, member.value(), "is a field that this record does not have");
    return detail::fault_inside(fault, member.key());
  }
  return true;
}

// ---- Reading ----

std::string_view bits_text(const Type& type) {
  if (type.size == sizeof(std::int64_t))
    return type.is_signed ? "is not a 64-bit integer" : "is not an unsigned 64-bit integer";
  return type.is_signed ? "is not a 32-bit integer" : "is not an unsigned 32-bit integer";
}

bool read_integer(const json::value& in, const Type& type, void* out, JsonFault& fault) {
  if (in.is_uint64() && !type.is_signed && type.size == sizeof(std::uint64_t)) {
    detail::to<std::uint64_t>(out) = in.get_uint64();
    return true;
  }
  if (!in.is_int64() || (!type.is_signed && in.get_int64() < 0))
    return detail::fault_at(fault, in, bits_text(type));
  set_integer(type, out, in.get_int64());
  return integer_at(type, out) == in.get_int64() || detail::fault_at(fault, in, bits_text(type));
}

bool read_enumerator(const json::value& in, const Type& type, void* out, JsonFault& fault) {
  std::string words;
  for (const Enumerator& one : type.enumerators) {
    words += (words.empty() ? "" : ", ") + one.word;
    if (!in.is_string() || std::string_view(in.get_string()) != one.word) continue;
    set_integer(type, out, one.value);
    return true;
  }
  return detail::fault_at(fault, in, "is none of " + words);
}

bool read_fields(const json::value& in, const Type& type, void* out, JsonFault& fault) {
  if (!in.is_object()) return detail::fault_at(fault, in, "is not an object");
  const json::object& object = in.get_object();
  std::vector<std::string_view> known;
  if (type.lean) type.assign(out, type.made().get());
  for (const Field& field : type.fields) {
    known.push_back(field.name);
    const json::value* found = object.if_contains(field.name);
    if (found == nullptr && type.lean) continue;
    if (found == nullptr && field.has_default) {
      field.type->assign(field.of(out), field.of(type.made().get()));
      continue;
    }
    if (found == nullptr && field.type->is_optional()) {
      field.type->reset(field.of(out));
      continue;
    }
    if (found == nullptr)
      return detail::fault_at(fault, in, "has no field \"" + std::string(field.name) + "\"");
    if (!read_json(*found, *field.type, field.of(out), fault))
      return detail::fault_inside(fault, field.name);
  }
  return no_unknown_member(object, known, fault);
}

bool read_elements(const json::value& in, const Type& type, void* out, JsonFault& fault) {
  if (!in.is_array()) return detail::fault_at(fault, in, "is not a list");
  const json::array& array = in.get_array();
  type.resize(out, 0);
  type.resize(out, array.size());
  for (std::size_t i = 0; i < array.size(); ++i)
    if (!read_json(array[i], *type.element, type.at(out, i), fault))
      return detail::fault_inside(fault, std::to_string(i));
  return true;
}

bool read_bits(const json::array& in, Tensor& out, JsonFault& fault) {
  const std::size_t width = dtype_bytes(out.dtype);
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::uint64_t bits = 0;
    if (!read_json(in[i], bits, fault)) return detail::fault_inside(fault, "bits");
    if (width < sizeof bits && (bits >> (8 * width)) != 0)
      return detail::fault_at(fault, in[i], "has more bits than the dtype");
    std::memcpy(out.bytes.data() + i * width, &bits, width);
  }
  return true;
}

// Whether a number is one of a dtype without fractions.
bool is_in_range(DType dtype, double value) {
  const double least =
      dtype == DType::kI32 ? double{std::numeric_limits<std::int32_t>::min()} : 0.0;
  const double most = dtype == DType::kBool  ? 1.0
                      : dtype == DType::kI32 ? double{std::numeric_limits<std::int32_t>::max()}
                                             : double{std::numeric_limits<std::uint32_t>::max()};
  return value >= least && value <= most && value == std::trunc(value);
}

bool read_data(const json::array& in, Tensor& out, JsonFault& fault) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto value = number_of(in[i]);
    if (!value) return detail::fault_at(fault, in[i], "is not a number");
    if (is_whole(out.dtype) && !is_in_range(out.dtype, *value))
      return detail::fault_at(fault, in[i],
                              out.dtype == DType::kBool  ? "is neither 0 nor 1"
                              : out.dtype == DType::kI32 ? "is not a 32-bit integer"
                                                         : "is not an unsigned 32-bit integer");
    store(out.dtype, *value, out.bytes.data() + i * dtype_bytes(out.dtype));
  }
  return true;
}

// Work on an empty tensor may still go round its other axes: they are bounded, too.
constexpr std::int64_t kMostEmptyRows = std::int64_t{1} << 24U;

// Of a tensor whose bytes are in shared memory.
bool read_shared(const json::value& offset, const std::vector<std::int64_t>& sizes, Tensor& out,
                 JsonFault& fault) {
  const auto at = json::try_value_to<std::size_t>(offset);
  const auto count = element_count(sizes);
  const std::size_t width = dtype_bytes(out.dtype);
  constexpr auto kMost = static_cast<std::int64_t>(std::size_t{1} << 40U);
  if (!at || !count || *count > kMost) return detail::fault_at(fault, offset, "is no offset");
  const auto bytes = tensor_memory->at(*at, static_cast<std::size_t>(*count) * width);
  if (bytes.empty()) return detail::fault_at(fault, offset, "is outside of the memory");
  out.shape.assign(sizes.begin(), sizes.end());
  out.bytes = tensor_memory->lends() ? TensorBytes::borrowed(bytes)
                                     : TensorBytes(bytes.begin(), bytes.end());
  return true;
}

bool read_tensor(const json::value& in, Tensor& out, JsonFault& fault) {
  if (!in.is_object()) return detail::fault_at(fault, in, "is not a tensor");
  const json::object& object = in.get_object();
  if (!no_unknown_member(object, {"shape", "data", "bits", "dtype", "at"}, fault)) return false;
  out.dtype = DType::kF32;
  if (const json::value* dtype = object.if_contains("dtype")) {
    const auto known = dtype->is_string() ? dtype_of_name(dtype->get_string()) : std::nullopt;
    if (!known)
      return detail::fault_at(fault, *dtype,
                              "is no dtype: f32, f16, bf16, i32, f8_e4m3, f8_e5m2, u32, bool");
    out.dtype = *known;
  }
  std::vector<std::int64_t> sizes;
  const json::value* shape = object.if_contains("shape");
  if (shape == nullptr) return detail::fault_at(fault, in, "has no field \"shape\"");
  if (!read_json(*shape, sizes, fault)) return detail::fault_inside(fault, "shape");
  if (const json::value* offset = object.if_contains("at"); offset && tensor_memory)
    return read_shared(*offset, sizes, out, fault) || detail::fault_inside(fault, "at");
  const json::value* bits = object.if_contains("bits");
  const json::value* data = bits != nullptr ? bits : object.if_contains("data");
  if (data == nullptr || !data->is_array())
    return detail::fault_at(fault, in, "has no list \"data\"");
  // The elements are there already, so a huge shape is refused before anything is allocated for it.
  const auto count = element_count(sizes);
  if (!count || static_cast<std::uint64_t>(*count) != data->get_array().size()) {
    detail::fault_at(fault, *shape,
                     "does not fit " + std::to_string(data->get_array().size()) + " elements");
    return detail::fault_inside(fault, "shape");
  }
  std::vector<std::int64_t> others;
  std::ranges::copy_if(sizes, std::back_inserter(others),
                       [](std::int64_t size) { return size > 0; });
  if (count == 0 && element_count(others).value_or(kMostEmptyRows + 1) > kMostEmptyRows) {
    detail::fault_at(fault, *shape,
                     "has more than " + std::to_string(kMostEmptyRows) + " empty rows");
    return detail::fault_inside(fault, "shape");
  }
  out.shape.assign(sizes.begin(), sizes.end());
  out.bytes = TensorBytes(data->get_array().size() * dtype_bytes(out.dtype));
  return bits != nullptr ? read_bits(data->get_array(), out, fault)
                         : read_data(data->get_array(), out, fault);
}

// ---- Writing ----

// A difference has its values as text: of long ones it is enough that there are more.
bool differs(const Type& type, const void* fresh, const void* value) {
  if ((type.is_optional() || type.is_nullable()) &&
      (type.held_by(fresh) == nullptr) != (type.held_by(value) == nullptr))
    return true;
  if (type.type_class == TypeClass::kList && type.length(fresh) != type.length(value)) return true;
  return first_difference(type, fresh, value).has_value();
}

json::value write_fields(const Type& type, const void* value) {
  if (type.lean) return write_changed(type, value);
  json::object out;
  std::shared_ptr<void> fresh;
  for (const Field& field : type.fields) {
    const void* member = field.of(value);
    if (field.type->is_optional() && field.type->held_by(member) == nullptr) continue;
    if (field.has_default) {
      if (!fresh) fresh = type.made();
      if (!differs(*field.type, field.of(fresh.get()), member)) continue;
    }
    out[field.name] = write_json(*field.type, member);
  }
  return out;
}

json::value write_elements(const Type& type, const void* value) {
  json::array out;
  const std::size_t length = type.length(value);
  out.reserve(length);
  for (std::size_t i = 0; i < length; ++i)
    out.push_back(write_json(*type.element, type.element_at(value, i)));
  return out;
}

json::value write_enumerator(const Type& type, const void* value) {
  const std::int64_t number = integer_at(type, value);
  for (const Enumerator& one : type.enumerators)
    if (one.value == number) return json::value(one.word);
  return "unknown";
}

json::value write_integer(const Type& type, const void* value) {
  const std::int64_t number = integer_at(type, value);
  if (type.is_signed || number >= 0) return number;
  return static_cast<std::uint64_t>(number);
}

json::value write_tensor(const Tensor& tensor) {
  json::object out;
  out["shape"] = json::array(tensor.shape.begin(), tensor.shape.end());
  if (tensor.dtype != DType::kF32) out["dtype"] = dtype_name(tensor.dtype);
  if (tensor_memory != nullptr)
    if (const auto offset = tensor_memory->put(tensor.bytes)) {
      out["at"] = *offset;
      return out;
    }
  const auto count = static_cast<std::size_t>(tensor.elements());
  json::array data;
  data.reserve(count);
  bool exact = true;
  for (std::size_t i = 0; i < count; ++i) {
    Shown element = shown(tensor, i);
    exact = exact && element.exact;
    data.push_back(std::move(element.number));
  }
  if (exact) {
    out["data"] = std::move(data);
    return out;
  }
  data.clear();
  for (std::size_t i = 0; i < count; ++i) data.push_back(element_bits(tensor, i));
  out["bits"] = std::move(data);
  return out;
}

}  // namespace

bool read_json(const json::value& in, const Type& type, void* out, JsonFault& fault) {
  switch (type.type_class) {
    case TypeClass::kBool:
      if (!in.is_bool()) return detail::fault_at(fault, in, "is neither true nor false");
      detail::to<bool>(out) = in.get_bool();
      return true;
    case TypeClass::kInteger:
      return read_integer(in, type, out, fault);
    case TypeClass::kFloat:
    case TypeClass::kDouble: {
      if (type.type_class == TypeClass::kFloat && read_nan(in, detail::to<float>(out))) return true;
      const auto number = number_of(in);
      if (!number) return detail::fault_at(fault, in, "is not a number");
      if (type.type_class == TypeClass::kDouble) detail::to<double>(out) = *number;
      if (type.type_class == TypeClass::kFloat)
        detail::to<float>(out) = static_cast<float>(*number);
      return true;
    }
    case TypeClass::kString:
      if (!in.is_string()) return detail::fault_at(fault, in, "is not a string");
      detail::to<std::string>(out) = std::string_view(in.get_string());
      return true;
    case TypeClass::kTensor:
      return read_tensor(in, detail::to<Tensor>(out), fault);
    case TypeClass::kEnum:
      return read_enumerator(in, type, out, fault);
    case TypeClass::kRecord:
      return read_fields(in, type, out, fault);
    case TypeClass::kList:
      return read_elements(in, type, out, fault);
    case TypeClass::kNullable:
      type.reset(out);
      return in.is_null() || read_json(in, *type.element, type.emplace(out), fault);
    case TypeClass::kOptional:
      return read_json(in, *type.element, type.emplace(out), fault);
    case TypeClass::kCustom:
      return type.from_json(in, out) || detail::fault_at(fault, in, "is not understood");
  }
  return false;
}

json::value write_json(const Type& type, const void* value) {
  switch (type.type_class) {
    case TypeClass::kBool:
      return detail::to<bool>(value);
    case TypeClass::kInteger:
      return write_integer(type, value);
    case TypeClass::kFloat:
      return float_to_json(detail::to<float>(value));
    case TypeClass::kDouble:
      return number_to_json(detail::to<double>(value));
    case TypeClass::kString:
      return json::string(valid_utf8(detail::to<std::string>(value)));
    case TypeClass::kTensor:
      return write_tensor(detail::to<Tensor>(value));
    case TypeClass::kEnum:
      return write_enumerator(type, value);
    case TypeClass::kRecord:
      return write_fields(type, value);
    case TypeClass::kList:
      return write_elements(type, value);
    case TypeClass::kOptional:
    case TypeClass::kNullable: {
      const void* held = type.held_by(value);
      return held != nullptr ? write_json(*type.element, held) : json::value(nullptr);
    }
    case TypeClass::kCustom:
      return type.to_json(value);
  }
  return nullptr;
}

Record read_record(const json::value& in, const Type& type, JsonFault& fault) {
  const std::shared_ptr<void> value = type.made();
  if (!read_json(in, type, value.get(), fault)) return {};
  return {type, value};
}

json::object write_changed(const Type& type, const void* value) {
  const auto fresh = type.made();
  json::object out;
  for (const Field& field : type.fields)
    if (differs(*field.type, field.of(fresh.get()), field.of(value)))
      out[field.name] = write_json(*field.type, field.of(value));
  return out;
}

json::object write_record(const Record& record) {
  return write_json(record.type(), record.get()).as_object();
}

std::string json_text(const Type& type, const void* value) {
  return json::serialize(write_json(type, value));
}

}  // namespace kvo
