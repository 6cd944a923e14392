// reference/contract/describe/operation.hpp: operations and observations of any contract, behind
// one type.
//
// A contract declares each operation once, by KVO_OPERATION: a record of its arguments with kName,
// kDoc and `Returns`, the record of what a caller can see. Logs, the differ, the shrinker and the
// command work on Op and Observation and know no contract.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/preprocessor/seq/for_each.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>

#include "reference/contract/describe/difference.hpp"
#include "reference/contract/describe/type.hpp"
#include "reference/contract/values/result.hpp"

/// Declares and describes an operation: the record of its arguments (rows as of KVO_RECORD), its
/// name, which is that of the method of a cache (a last '_' is no part of it), one sentence for
/// `kvoracle list`, and the record of its results. The method takes the record, or its members in
/// order without handles of caches.
#define KVO_OPERATION(Operation, method, doc, Returned, ...) \
  KVO_OPERATION_WITH((), Operation, method, doc, Returned, __VA_ARGS__)
/// The same with static members, in brackets.
#define KVO_OPERATION_WITH(statics, Operation, method, doc, Returned, ...)                         \
  struct Operation {                                                                               \
    BOOST_PP_REMOVE_PARENS(statics)                                                                \
    static constexpr std::string_view kName = ::kvo::detail::without_underscore(#method);          \
    static constexpr std::string_view kDoc = doc;                                                  \
    using Returns = Returned;                                                                      \
    KVO_RECORD_MEMBERS(__VA_ARGS__)                                                                \
    /* Calls the method with this record, or with its members in order. Handles of caches are left \
     * out. */                                                                                     \
    template <class Called>                                                                        \
    decltype(auto) call(Called& kvo_called) const {                                                \
      if constexpr (requires { kvo_called.method(*this); })                                        \
        return kvo_called.method(*this);                                                           \
      else                                                                                         \
        return std::apply(                                                                         \
            [&](const auto&... kvo_members) -> decltype(auto) {                                    \
              return kvo_called.method(kvo_members...);                                            \
            },                                                                                     \
            std::tuple_cat(__VA_OPT__(KVO_RECORD_ARGUMENTS(__VA_ARGS__)) std::tuple<>()));         \
    }                                                                                              \
  };                                                                                               \
  BOOST_DESCRIBE_STRUCT(Operation, (), (__VA_OPT__(KVO_RECORD_NAMES(__VA_ARGS__))))

namespace kvo {

namespace detail {
constexpr std::string_view without_underscore(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}
}  // namespace detail

/// One operation of a contract, described.
struct OpKind {
  std::string_view name;
  std::string_view doc;
  const Type* arguments;
  const Type* returns;
};

/// The kind of T; one object for the whole program, so kinds compare by address.
template <class T>
const OpKind& op_kind() {
  static_assert(Described<T> && Described<typename T::Returns>, "describe every member");
  static const OpKind kKind{T::kName, T::kDoc, &type_of<T>(), &type_of<typename T::Returns>()};
  return kKind;
}

#define KVO_OPERATION_DECLARED(r, data, T)  \
  extern template const Type& type_of<T>(); \
  extern template const OpKind& op_kind<T>();
#define KVO_OPERATION_DEFINED(r, data, T) \
  template const Type& type_of<T>();      \
  template const OpKind& op_kind<T>();

/// In namespace kvo, after the operations: what is known of them is compiled once, where
/// KVO_DEFINE_OPERATIONS of the same list stands, instead of in every file that names one. A
/// contract works without; its files then take about a third longer to compile.
#define KVO_DECLARE_OPERATIONS(...) \
  BOOST_PP_SEQ_FOR_EACH(KVO_OPERATION_DECLARED, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))
#define KVO_DEFINE_OPERATIONS(...) \
  BOOST_PP_SEQ_FOR_EACH(KVO_OPERATION_DEFINED, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))

/// One operation with its arguments; immutable and cheap to copy.
class Op {
 public:
  template <class T>
  static Op of(T arguments) {
    return {op_kind<T>(), Record::of(std::move(arguments))};
  }
  /// Requires  arguments of the kind's type.
  Op(const OpKind& kind, Record arguments) : kind_(&kind), arguments_(std::move(arguments)) {
    KVO_CHECK(&arguments_.type() == kind.arguments);
  }

  [[nodiscard]] const OpKind& kind() const { return *kind_; }
  [[nodiscard]] const Record& arguments() const { return arguments_; }
  /// The arguments, if this is a T; else null.
  template <class T>
  [[nodiscard]] const T* as() const {
    return kind_ == &op_kind<T>() ? static_cast<const T*>(arguments_.get()) : nullptr;
  }

 private:
  const OpKind* kind_;
  Record arguments_;
};

/// Everything a caller can see of one operation. On an error some operations still return values
/// (the calls to a device): then both members are set.
struct Observation {
  PossibleError error = {};
  Record returns = {};
  bool unsupported = false;  ///< the session does not know the operation; not a fault

  /// The values; asking for another type than the operation returns is a broken invariant.
  template <class R>
  [[nodiscard]] const R& as() const {
    return returns.as<R>();
  }
  [[nodiscard]] bool failed_with(Code code) const { return error && error->code == code; }
};

/// Errors by code, values as of first_difference. Values beside an error count when both sides have
/// them. A recorded exception of Python agrees with any error.
[[nodiscard]] std::optional<Difference> observation_difference(const Observation& want,
                                                               const Observation& got,
                                                               const Exactness& exactness = {});

/// The first argument that its domain does not allow: the error that every cache gives, with name,
/// value and what is allowed. Nothing if there is none.
[[nodiscard]] std::optional<Error> argument_error(const Op& op);

/// {"op":..,"args":..} as one line, for people and for logs.
[[nodiscard]] std::string op_text(const Op& op);

/// The kinds of a list of operation types, in its order.
template <class... Ts>
std::vector<const OpKind*> op_kinds(boost::mp11::mp_list<Ts...> /*ops*/) {
  return {&op_kind<Ts>()...};
}

}  // namespace kvo
