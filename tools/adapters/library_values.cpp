#include "tools/adapters/library_values.hpp"

#include <algorithm>
#include <cstring>

#include <boost/json.hpp>

#include "reference/contract/values/tensor.hpp"

namespace kvo::tools {
namespace {

kvoracle_value tensor(const Tensor& from) {
  kvoracle_value out{};
  out.type = KVORACLE_TENSOR;
  out.as.tensor = {from.shape.data(), from.shape.size(), from.bytes.data(),
                   static_cast<kvoracle_dtype>(from.dtype)};
  return out;
}

}  // namespace

const kvoracle_value* LibraryValues::of_members(const Type& type, const void* record) {
  auto* values = made<kvoracle_value>(type.fields.size());
  for (std::size_t i = 0; i < type.fields.size(); ++i)
    values[i] = of(*type.fields[i].type, type.fields[i].of(record));
  return values;
}

kvoracle_value LibraryValues::of(const Type& type, const void* value) {
  kvoracle_value out{};
  switch (type.type_class) {
    case TypeClass::kBool:
      out.type = KVORACLE_BOOLEAN;
      out.as.integer = kvo::detail::to<bool>(value) ? 1 : 0;
      break;
    case TypeClass::kInteger:
      out.type = KVORACLE_INTEGER;
      out.as.integer = integer_at(type, value);
      break;
    case TypeClass::kEnum:
      out.type = KVORACLE_INTEGER;
      out.as.integer =
          std::ranges::find(type.enumerators, integer_at(type, value), &Enumerator::value) -
          type.enumerators.begin();
      break;
    case TypeClass::kFloat:
      out.type = KVORACLE_NUMBER;
      out.as.number = static_cast<double>(kvo::detail::to<float>(value));
      break;
    case TypeClass::kDouble:
      out.type = KVORACLE_NUMBER;
      out.as.number = kvo::detail::to<double>(value);
      break;
    case TypeClass::kString:
      return text(kvo::detail::to<std::string>(value));
    case TypeClass::kCustom:
      return text(boost::json::serialize(type.to_json(value)));
    case TypeClass::kTensor:
      return tensor(kvo::detail::to<Tensor>(value));
    case TypeClass::kRecord:
      out.type = KVORACLE_RECORD;
      out.as.list = {of_members(type, value), type.fields.size()};
      break;
    case TypeClass::kList:
      return list(type, value);
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      if (const void* held = type.held_by(value)) return of(*type.element, held);
      break;
  }
  return out;
}

kvoracle_value LibraryValues::text(const std::string& words) {
  char* copy = made<char>(words.size() + 1);
  std::memcpy(copy, words.c_str(), words.size() + 1);
  kvoracle_value out{};
  out.type = KVORACLE_TEXT;
  out.as.text = {copy, words.size()};
  return out;
}

kvoracle_value LibraryValues::list(const Type& type, const void* value) {
  kvoracle_value out{};
  const std::size_t size = type.length(value);
  if (type.element->type_class == TypeClass::kInteger) {
    auto* integers = made<std::int64_t>(size);
    for (std::size_t i = 0; i < size; ++i)
      integers[i] = integer_at(*type.element, type.element_at(value, i));
    out.type = KVORACLE_INTEGERS;
    out.as.integers = {integers, size};
    return out;
  }
  auto* values = made<kvoracle_value>(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = of(*type.element, type.element_at(value, i));
  out.type = KVORACLE_LIST;
  out.as.list = {values, size};
  return out;
}

}  // namespace kvo::tools
