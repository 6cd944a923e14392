// reference/contract/describe/type.hpp: described types as tables, and values behind one pointer.
//
// A Type says of values of one C++ type what reading, writing, comparing, sizing and shrinking need
// to know: for a record its fields with name, meaning and offset. Those walks are ordinary code
// over the table (json.cpp, difference.cpp, shrink.cpp), compiled once for all records of all
// contracts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/json/fwd.hpp>

#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

struct Type;

/// One member of a record.
struct Field {
  std::string_view name;
  std::string_view meaning;  ///< and unit: "layer, counted from 0"; empty where nobody said
  const Type* type;
  std::size_t offset;   ///< bytes from the beginning of the record
  AxisNames axes = {};  ///< of its tensors; empty when the record does not say
  /// Of an optional flag among arguments: the member of what was returned that tells it where a log
  /// leaves it out. Empty: absent is absent.
  std::string_view told_by = {};
  /// Of an optional member: absent on one side is no difference.
  bool compared_if_shown = false;
  const Domain* domain = nullptr;  ///< null: any value of the type
  bool has_default = false;        ///< JSON leaves out a value that equals that of a new record

  /// Whether JSON may leave it out.
  [[nodiscard]] bool may_be_absent() const;
  [[nodiscard]] const void* of(const void* record) const {
    return static_cast<const std::byte*>(record) + offset;
  }
  [[nodiscard]] void* of(void* record) const { return static_cast<std::byte*>(record) + offset; }
};

enum class TypeClass : std::uint8_t {
  kBool,
  kInteger,
  kFloat,   ///< 32 bits
  kDouble,  ///< 64 bits
  kString,
  kTensor,
  kEnum,
  kRecord,
  kList,
  kOptional,  ///< absent when empty
  kNullable,  ///< null when empty
  kCustom,    ///< has a text form of its own
};

struct Enumerator {
  std::string word;  ///< as written in logs
  std::int64_t value;
};

/// What is known of a type. Members that do not belong to its class are empty.
struct Type {
  TypeClass type_class;
  std::size_t size = 0;           ///< bytes of a value
  bool is_signed = false;         ///< of kInteger
  const Type* element = nullptr;  ///< of kList, kOptional, kNullable
  std::vector<Field> fields = {};
  std::vector<Enumerator> enumerators = {};
  /// Of kRecord: how far its doubles may be from recorded ones, relative to these. Other systems
  /// compute with other libraries; subjects among themselves agree bit by bit.
  double recorded_tolerance = 0;
  /// Of kRecord: JSON leaves out members whose value is that of a new record.
  bool lean = false;
  /// Of kRecord: whether payload_bytes may be more than 0.
  bool holds_payload = false;

  void* (*make)() = nullptr;  ///< a default value, for `destroy`
  void* (*copy)(const void*) = nullptr;
  void (*destroy)(void*) = nullptr;
  void (*assign)(void* to, const void* from) = nullptr;

  // kList
  std::size_t (*length)(const void*) = nullptr;
  void* (*at)(void*, std::size_t) = nullptr;
  void (*resize)(void*, std::size_t) = nullptr;
  void (*erase)(void*, std::size_t begin, std::size_t end) = nullptr;
  // kOptional, kNullable
  void* (*held)(void*) = nullptr;     ///< null when empty
  void* (*emplace)(void*) = nullptr;  ///< a default value in the place of what was held
  void (*reset)(void*) = nullptr;
  // kCustom
  boost::json::value (*to_json)(const void*) = nullptr;
  bool (*from_json)(const boost::json::value&, void*) = nullptr;
  bool (*equal)(const void*, const void*) = nullptr;

  [[nodiscard]] const void* element_at(const void* list, std::size_t i) const {
    return at(const_cast<void*>(list),
              i);  // NOLINT(cppcoreguidelines-pro-type-const-cast): given back const
  }
  [[nodiscard]] const void* held_by(const void* optional) const {
    return held(const_cast<void*>(optional));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  /// A default value.
  [[nodiscard]] std::shared_ptr<void> made() const { return owned(make()); }
  [[nodiscard]] std::shared_ptr<void> copy_of(const void* value) const {
    return owned(copy(value));
  }
  /// Takes a value that `make`, `copy` or new gave.
  [[nodiscard]] std::shared_ptr<void> owned(void* value) const;
  /// The type of the value itself, without the layers that let it be absent or null.
  [[nodiscard]] const Type& value_type() const {
    return type_class == TypeClass::kOptional || type_class == TypeClass::kNullable
               ? element->value_type()
               : *this;
  }
  /// "tensor", "integer", "list": for people.
  [[nodiscard]] std::string_view word() const;
  [[nodiscard]] bool is_optional() const { return type_class == TypeClass::kOptional; }
  /// Lists of these are one piece of memory, and they agree when their bytes do.
  [[nodiscard]] bool is_number() const {
    return type_class == TypeClass::kInteger || type_class == TypeClass::kFloat ||
           type_class == TypeClass::kDouble;
  }
  [[nodiscard]] bool is_nullable() const { return type_class == TypeClass::kNullable; }
};

inline bool Field::may_be_absent() const {
  return has_default || type->is_optional();
}

/// An integer or enumerator of any width, and back; the value must fit.
[[nodiscard]] std::int64_t integer_at(const Type& type, const void* value);
void set_integer(const Type& type, void* value, std::int64_t to);

/// The table of T; one object for the whole program, so types compare by address.
template <class T>
const Type& type_of();

/// A described value whose type is known at run time; immutable and cheap to copy.
class Record {
 public:
  Record() = default;  ///< no value
  Record(const Type& type, std::shared_ptr<const void> value)
      : type_(&type), value_(std::move(value)) {}
  template <class T>
  [[nodiscard]] static Record of(T value) {
    return {type_of<T>(), std::make_shared<T>(std::move(value))};
  }

  [[nodiscard]] explicit operator bool() const { return value_ != nullptr; }
  [[nodiscard]] const Type& type() const { return *type_; }
  [[nodiscard]] const void* get() const { return value_.get(); }
  /// The value; asking for another type than it has is a broken invariant.
  template <class T>
  [[nodiscard]] const T& as() const {
    KVO_CHECK(type_ == &type_of<T>() && value_ != nullptr);
    return *static_cast<const T*>(value_.get());
  }
  /// The value if it is a T; else null.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return type_ == &type_of<T>() ? static_cast<const T*>(value_.get()) : nullptr;
  }

 private:
  const Type* type_ = nullptr;
  std::shared_ptr<const void> value_ = nullptr;
};

/// For operations that return nothing, and kinds without config.
struct Nothing {
  friend bool operator==(const Nothing&, const Nothing&) = default;
};
KVO_DESCRIBE(Nothing)

/// Bytes of all tensors and lists of numbers with a fraction in a value.
[[nodiscard]] std::size_t payload_bytes(const Type& type, const void* value);

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
constexpr std::string_view told_by(std::string_view name) {
  if constexpr (requires { T::kToldBy; }) {
    return name == T::kToldBy.first ? T::kToldBy.second : std::string_view();
  } else {
    return {};
  }
}

template <class T>
constexpr bool compared_if_shown(std::string_view name) {
  if constexpr (requires { T::kComparedIfShown; })
    for (const std::string_view one : T::kComparedIfShown)
      if (one == name) return true;
  return false;
}

template <class T>
constexpr std::string_view meaning_of(std::size_t index) {
  if constexpr (requires { T::kRows; }) {
    return T::kRows[index].meaning;
  } else if constexpr (requires { kvo_meanings(static_cast<const T*>(nullptr)); }) {
    return kvo_meanings(static_cast<const T*>(nullptr))[index];
  } else {
    return {};
  }
}

template <class T>
constexpr MemberRow row_of(std::size_t index) {
  if constexpr (requires { T::kRows; }) {
    return T::kRows[index];
  } else {
    return {};
  }
}

/// Adds a row to the table. Ordinary code, for a template costs every file that names a record.
void add_field(Type& type, const Field& field);
/// Adds the rows of a member whose own members are written in its place (kInline).
void add_inline(Type& type, const Type& member, std::size_t offset);

template <class T, class Member>
void describe_field(Type& type, const T& sample, std::size_t index) {
  const auto& there = sample.*Member::pointer;
  using Value = std::remove_cvref_t<decltype(there)>;
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&there) -
                                               reinterpret_cast<const std::byte*>(&sample));
  if constexpr (requires { Value::kInline; }) return add_inline(type, type_of<Value>(), offset);
  const MemberRow row = row_of<T>(index);
  const bool has_axes = row.domain != nullptr && !row.domain->axes.empty();
  add_field(type, {.name = Member::name,
                   .meaning = meaning_of<T>(index),
                   .type = &type_of<Value>(),
                   .offset = offset,
                   .axes = has_axes ? row.domain->axes : axes_of<T>(Member::name),
                   .told_by = told_by<T>(Member::name),
                   .compared_if_shown = compared_if_shown<T>(Member::name),
                   .domain = row.domain,
                   .has_default = row.has_default});
}

template <class T, template <class...> class List, class... Members>
void describe_record(Type& type, List<Members...> /*members*/) {
  [[maybe_unused]] const T sample{};  // a record may have no members
  [[maybe_unused]] std::size_t index = 0;
  (describe_field<T, Members>(type, sample, index++), ...);
}

template <class T>
std::vector<Enumerator> enumerators_of() {
  std::vector<Enumerator> all;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto one) {
    all.push_back({enumerator_word(one.name), static_cast<std::int64_t>(one.value)});
  });
  return all;
}

template <class T>
constexpr TypeClass class_of() {
  if constexpr (std::is_same_v<T, bool>)
    return TypeClass::kBool;
  else if constexpr (std::is_integral_v<T>)
    return TypeClass::kInteger;
  else if constexpr (std::is_same_v<T, float>)
    return TypeClass::kFloat;
  else if constexpr (std::is_same_v<T, double>)
    return TypeClass::kDouble;
  else if constexpr (std::is_same_v<T, std::string>)
    return TypeClass::kString;
  else if constexpr (std::is_same_v<T, Tensor>)
    return TypeClass::kTensor;
  else if constexpr (DescribedEnum<T>)
    return TypeClass::kEnum;
  else if constexpr (Optional<T>)
    return TypeClass::kOptional;
  else if constexpr (NullableType<T>)
    return TypeClass::kNullable;
  else if constexpr (Vector<T>)
    return TypeClass::kList;
  else if constexpr (Described<T>)
    return TypeClass::kRecord;
  else
    return TypeClass::kCustom;
}

template <class T>
T& to(void* value) {
  return *static_cast<T*>(value);
}
template <class T>
const T& to(const void* value) {
  return *static_cast<const T*>(value);
}

template <class T>
void describe_list(Type& type) {
  type.element = &type_of<typename T::value_type>();
  type.length = [](const void* list) { return to<T>(list).size(); };
  type.at = [](void* list, std::size_t i) -> void* { return &to<T>(list)[i]; };
  type.resize = [](void* list, std::size_t size) { to<T>(list).resize(size); };
  type.erase = [](void* list, std::size_t begin, std::size_t end) {
    auto& all = to<T>(list);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(begin),
              all.begin() + static_cast<std::ptrdiff_t>(end));
  };
}

template <class T>
std::optional<T>& optional_in(void* value, const std::optional<T>* /*tag*/) {
  return to<std::optional<T>>(value);
}
template <class T>
std::optional<T>& optional_in(void* value, const Nullable<T>* /*tag*/) {
  return to<Nullable<T>>(value).value;
}

template <class T>
void describe_optional(Type& type) {
  using Held = std::remove_cvref_t<decltype(*std::declval<const T&>())>;
  constexpr const T* kTag = nullptr;
  type.element = &type_of<Held>();
  type.held = [](void* value) -> void* {
    auto& optional = optional_in(value, kTag);
    return optional ? &*optional : nullptr;
  };
  type.emplace = [](void* value) -> void* { return &optional_in(value, kTag).emplace(); };
  type.reset = [](void* value) { optional_in(value, kTag).reset(); };
}

template <class T>
Type make_type() {
  constexpr TypeClass kClass = class_of<T>();
  Type type{.type_class = kClass, .size = sizeof(T)};
  type.make = []() -> void* { return new T(); };
  type.copy = [](const void* from) -> void* { return new T(to<T>(from)); };
  type.destroy = [](void* value) { delete static_cast<T*>(value); };
  type.assign = [](void* into, const void* from) { to<T>(into) = to<T>(from); };
  if constexpr (kClass == TypeClass::kInteger) {
    type.is_signed = std::is_signed_v<T>;
  } else if constexpr (kClass == TypeClass::kEnum) {
    type.enumerators = enumerators_of<T>();
  } else if constexpr (kClass == TypeClass::kRecord) {
    describe_record<T>(type, Members<T>());
    if constexpr (requires { T::kRecordedTolerance; })
      type.recorded_tolerance = T::kRecordedTolerance;
    type.lean = requires {
      T::kLean;
    };
  } else if constexpr (kClass == TypeClass::kList) {
    describe_list<T>(type);
  } else if constexpr (kClass == TypeClass::kOptional || kClass == TypeClass::kNullable) {
    describe_optional<T>(type);
  } else if constexpr (kClass == TypeClass::kCustom) {
    type.to_json = [](const void* value) { return to<T>(value).to_json(); };
    type.from_json = [](const boost::json::value& in, void* value) {
      return to<T>(value).from_json(in);
    };
    type.equal = [](const void* a, const void* b) { return to<T>(a) == to<T>(b); };
  }
  return type;
}

}  // namespace detail

template <class T>
const Type& type_of() {
  static const Type kType = detail::make_type<T>();
  return kType;
}

// The types that nearly every record has are made once, in type.cpp.
extern template const Type& type_of<bool>();
extern template const Type& type_of<std::int32_t>();
extern template const Type& type_of<std::int64_t>();
extern template const Type& type_of<std::uint64_t>();
extern template const Type& type_of<float>();
extern template const Type& type_of<std::string>();
extern template const Type& type_of<Tensor>();
extern template const Type& type_of<Nothing>();
extern template const Type& type_of<Nullable<Tensor>>();
extern template const Type& type_of<Nullable<std::int64_t>>();
extern template const Type& type_of<std::optional<bool>>();
extern template const Type& type_of<std::optional<std::int64_t>>();
extern template const Type& type_of<std::optional<Tensor>>();
extern template const Type& type_of<std::optional<std::string>>();
extern template const Type& type_of<std::vector<std::int64_t>>();
extern template const Type& type_of<std::vector<float>>();

}  // namespace kvo
