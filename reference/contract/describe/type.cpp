#include "reference/contract/describe/type.hpp"

#include <bit>
#include <cctype>
#include <cstring>

namespace kvo {

template const Type& type_of<bool>();
template const Type& type_of<std::int32_t>();
template const Type& type_of<std::int64_t>();
template const Type& type_of<std::uint64_t>();
template const Type& type_of<float>();
template const Type& type_of<std::string>();
template const Type& type_of<Tensor>();
template const Type& type_of<Nothing>();
template const Type& type_of<Nullable<Tensor>>();
template const Type& type_of<Nullable<std::int64_t>>();
template const Type& type_of<std::optional<bool>>();
template const Type& type_of<std::optional<std::int64_t>>();
template const Type& type_of<std::optional<Tensor>>();
template const Type& type_of<std::optional<std::string>>();
template const Type& type_of<std::vector<std::int64_t>>();
template const Type& type_of<std::vector<float>>();

std::string enumerator_word(std::string_view enumerator) {
  if (enumerator.starts_with('k')) enumerator.remove_prefix(1);
  std::string word;
  for (const char c : enumerator) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !word.empty()) word += '_';
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

namespace {
bool may_hold_payload(const Type& type) {
  switch (type.type_class) {
    case TypeClass::kTensor:
    case TypeClass::kList:
      return true;
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      return may_hold_payload(*type.element);
    default:
      return type.holds_payload;
  }
}
}  // namespace

void detail::add_field(Type& type, const Field& field) {
  type.fields.push_back(field);
  type.holds_payload |= may_hold_payload(*field.type);
  if (field.name.ends_with('_')) type.fields.back().name.remove_suffix(1);
  const TypeClass held = field.type->value_type().type_class;
  if (held != TypeClass::kTensor && held != TypeClass::kList) type.fields.back().axes = {};
}

void detail::add_inline(Type& type, const Type& member, std::size_t offset) {
  for (Field field : member.fields) {
    field.offset += offset;
    type.fields.push_back(field);
  }
  type.holds_payload |= member.holds_payload;
}

std::shared_ptr<void> Type::owned(void* value) const {
  return {value, destroy};
}

std::string_view Type::word() const {
  switch (type_class) {
    case TypeClass::kBool:
      return "boolean";
    case TypeClass::kInteger:
      return "integer";
    case TypeClass::kFloat:
    case TypeClass::kDouble:
      return "number";
    case TypeClass::kString:
    case TypeClass::kEnum:
      return "word";
    case TypeClass::kTensor:
      return "tensor";
    case TypeClass::kList:
      return "list";
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      return element->word();
    case TypeClass::kRecord:
    case TypeClass::kCustom:
      return "record";
  }
  return "record";
}

std::int64_t integer_at(const Type& type, const void* value) {
  const auto read = [&]<class T>(T /*as*/) {
    T number{};
    std::memcpy(&number, value, sizeof number);
    return static_cast<std::int64_t>(number);
  };
  // An enumerator is as wide as its type, and never negative.
  switch (type.size) {
    case 1:
      return type.is_signed ? read(std::int8_t{}) : read(std::uint8_t{});
    case 2:
      return type.is_signed ? read(std::int16_t{}) : read(std::uint16_t{});
    case 4:
      return type.is_signed ? read(std::int32_t{}) : read(std::uint32_t{});
    default:
      return read(std::int64_t{});
  }
}

void set_integer(const Type& type, void* value, std::int64_t to) {
  static_assert(std::endian::native == std::endian::little, "the low bytes come first");
  std::memcpy(value, &to, type.size);
}

std::size_t payload_bytes(const Type& type, const void* value) {
  switch (type.type_class) {
    case TypeClass::kTensor:
      return detail::to<Tensor>(value).bytes.size();
    case TypeClass::kRecord: {
      std::size_t sum = 0;
      if (!type.holds_payload) return sum;
      for (const Field& field : type.fields) sum += payload_bytes(*field.type, field.of(value));
      return sum;
    }
    case TypeClass::kOptional:
    case TypeClass::kNullable: {
      const void* held = type.held_by(value);
      return held != nullptr ? payload_bytes(*type.element, held) : 0;
    }
    case TypeClass::kList:
      return type.element->is_number() && type.element->type_class != TypeClass::kInteger
                 ? type.length(value) * type.element->size
                 : 0;
    default:
      return 0;
  }
}

}  // namespace kvo
