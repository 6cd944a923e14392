// reference/contract/operation.hpp: operations and observations of any contract, behind one type.
//
// A contract describes each operation as an aggregate with kName, kDoc and `Returns`, the record of
// what a caller can see. OpKind holds what derives from that description; logs, the differ, the
// shrinker and the command work on Op and Observation and know no contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/difference.hpp"
#include "reference/contract/json.hpp"
#include "reference/contract/result.hpp"
#include "reference/contract/shrink.hpp"

namespace kvo {

/// For operations that return nothing.
struct Nothing {
  friend bool operator==(const Nothing&, const Nothing&) = default;
};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

class Op;

/// Whether a field must be there, may be absent, or may be null.
enum class Presence : std::uint8_t { kRequired, kOptional, kNullable };
BOOST_DESCRIBE_ENUM(Presence, kRequired, kOptional, kNullable)

/// One field of an operation, for people. What it means: reference/contract/fields.hpp.
struct FieldInfo {
  std::string_view name;
  std::string_view type;
  Presence presence = Presence::kRequired;
  AxisNames axes = {};  ///< of a tensor; empty when the record does not say
};

/// What derives from the description of one operation.
struct OpKind {
  std::string_view name;
  std::string_view doc;
  std::vector<FieldInfo> arguments;
  std::vector<FieldInfo> returns;
  boost::json::object (*write_arguments)(const void*);
  std::shared_ptr<const void> (*read_arguments)(const boost::json::value&, JsonFault&);
  boost::json::object (*write_returns)(const void*);
  std::shared_ptr<const void> (*read_returns)(const boost::json::value&, JsonFault&);
  std::optional<Difference> (*difference)(const void* want, const void* got);
  void (*shrink)(const void*, const std::function<void(std::shared_ptr<const void>)>&);
  /// Bytes of all tensors in the arguments, and in the returns.
  std::size_t (*argument_bytes)(const void*);
  std::size_t (*return_bytes)(const void*);
};

/// The kind of T; one object for the whole program, so kinds compare by address.
template <class T>
const OpKind& op_kind();

/// One operation with its arguments; immutable and cheap to copy.
class Op {
 public:
  template <class T>
  static Op of(T arguments) {
    return {op_kind<T>(), std::make_shared<const T>(std::move(arguments))};
  }
  Op(const OpKind& kind, std::shared_ptr<const void> arguments)
      : kind_(&kind), arguments_(std::move(arguments)) {}

  [[nodiscard]] const OpKind& kind() const { return *kind_; }
  [[nodiscard]] const void* arguments() const { return arguments_.get(); }
  /// The arguments, if this is a T; else null.
  template <class T>
  [[nodiscard]] const T* as() const {
    return kind_ == &op_kind<T>() ? static_cast<const T*>(arguments_.get()) : nullptr;
  }

 private:
  const OpKind* kind_;
  std::shared_ptr<const void> arguments_;
};

/// Everything a caller can see of one operation. On an error some operations still return values
/// (the calls that a device saw): then both members are set.
struct Observation {
  std::optional<Error> error = std::nullopt;
  std::shared_ptr<const void> returns = nullptr;

  template <class R>
  [[nodiscard]] const R& as() const {
    return *static_cast<const R*>(returns.get());
  }
  [[nodiscard]] bool failed_with(Code code) const { return error && error->code == code; }
};

/// Errors by code, values bit by bit. Values beside an error count when both sides have them.
[[nodiscard]] std::optional<Difference> observation_difference(const OpKind& kind,
                                                               const Observation& want,
                                                               const Observation& got);

/// The "ret" object of a log line.
[[nodiscard]] boost::json::object write_observation(const OpKind& kind, const Observation& seen);
/// Reads a "ret" object; a "panic" becomes the error `precondition`.
[[nodiscard]] std::optional<Observation> read_observation(const OpKind& kind,
                                                          const boost::json::value& in,
                                                          JsonFault& fault);
/// {"op":..,"args":..} as one line, for people and for logs.
[[nodiscard]] std::string op_text(const Op& op);

namespace detail {

template <class T>
constexpr std::string_view type_word() {
  if constexpr (Optional<T>) {
    return type_word<typename T::value_type>();
  } else if constexpr (NullableType<T>) {
    return type_word<std::remove_cvref_t<decltype(*std::declval<const T&>())>>();
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return "tensor";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "boolean";
  } else if constexpr (std::is_integral_v<T>) {
    return "integer";
  } else if constexpr (std::is_same_v<T, float>) {
    return "number";
  } else if constexpr (Vector<T>) {
    return "list";
  } else if constexpr (std::is_same_v<T, std::string> || DescribedEnum<T>) {
    return "word";
  } else {
    return "record";
  }
}

template <class T>
std::vector<FieldInfo> fields_of() {
  std::vector<FieldInfo> fields;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using Member = std::remove_cvref_t<decltype(std::declval<T>().*member.pointer)>;
    constexpr std::string_view kType = type_word<Member>();
    fields.push_back({.name = member.name,
                      .type = kType,
                      .presence = Optional<Member>       ? Presence::kOptional
                                  : NullableType<Member> ? Presence::kNullable
                                                         : Presence::kRequired,
                      .axes = kType == "tensor" ? axes_of<T>(member.name) : AxisNames()});
  });
  return fields;
}

template <class T>
std::size_t tensor_bytes(const T& value) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return value.bytes.size();
  } else if constexpr (Optional<T> || NullableType<T>) {
    return value.has_value() ? tensor_bytes(*value) : 0;
  } else if constexpr (std::is_same_v<T, std::vector<float>>) {
    return value.size() * sizeof(float);
  } else if constexpr (Described<T>) {
    std::size_t sum = 0;
    for_each_member(value,
                    [&](std::string_view, const auto& member) { sum += tensor_bytes(member); });
    return sum;
  } else {
    return 0;
  }
}

template <class T>
std::shared_ptr<const void> read_erased(const boost::json::value& in, JsonFault& fault) {
  auto out = std::make_shared<T>();
  return read_json(in, *out, fault) ? out : nullptr;
}
template <class T>
boost::json::object write_erased(const void* value) {
  return write_json(*static_cast<const T*>(value)).as_object();
}
template <class T>
std::size_t bytes_erased(const void* value) {
  return tensor_bytes(*static_cast<const T*>(value));
}
template <class T>
void shrink_erased(const void* value,
                   const std::function<void(std::shared_ptr<const void>)>& candidate) {
  shrink_record(*static_cast<const T*>(value),
                [&](T smaller) { candidate(std::make_shared<const T>(std::move(smaller))); });
}
template <class R>
std::optional<Difference> difference_erased(const void* want, const void* got) {
  return first_difference({}, *static_cast<const R*>(want), *static_cast<const R*>(got));
}

}  // namespace detail

template <class T>
const OpKind& op_kind() {
  static_assert(Described<T> && Described<typename T::Returns>, "describe every member");
  using R = typename T::Returns;
  static const OpKind kKind{
      .name = T::kName,
      .doc = T::kDoc,
      .arguments = detail::fields_of<T>(),
      .returns = detail::fields_of<R>(),
      .write_arguments = detail::write_erased<T>,
      .read_arguments = detail::read_erased<T>,
      .write_returns = detail::write_erased<R>,
      .read_returns = detail::read_erased<R>,
      .difference = detail::difference_erased<R>,
      .shrink = detail::shrink_erased<T>,
      .argument_bytes = detail::bytes_erased<T>,
      .return_bytes = detail::bytes_erased<R>,
  };
  return kKind;
}

/// The kinds of a list of operation types, in its order.
template <class... Ts>
std::vector<const OpKind*> op_kinds(boost::mp11::mp_list<Ts...> /*ops*/) {
  return {&op_kind<Ts>()...};
}

}  // namespace kvo
