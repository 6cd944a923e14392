// reference/contract/describe/describe.hpp: records that are described once; everything else
// derives.
//
// A record is an aggregate that KVO_RECORD or KVO_OPERATION (operation.hpp) declares; or one
// followed by KVO_DESCRIBE(Record, (member, "meaning and unit"), ..), or by BOOST_DESCRIBE_STRUCT
// if its members need no meanings. Optional static members say more:
//   kName   the operation's name in logs        kDoc   one sentence for `kvoracle list`
//   kToldBy {flag, member}: an optional flag that, where a log leaves it out, says whether the
//           operation's "ret" has that member
//   kRecordedTolerance  how far doubles of the record may be from recorded ones, relative to these
//   kComparedIfShown  names of optional members that count only where both sides have them
//   kLean   JSON leaves out members whose value is that of a new record
//   kInline its members are written among those of a record that has it as a member
//   kAxes   the names of the axes of every tensor in the record; or a function axes(member name)
// A member that would be a word of C++ ends with '_', which logs do not show: protected_.
// An absent std::optional is not written; a Nullable is always written, as null when empty.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <boost/preprocessor/comparison/greater.hpp>
#include <boost/preprocessor/control/if.hpp>
#include <boost/preprocessor/punctuation/comma_if.hpp>
#include <boost/preprocessor/punctuation/remove_parens.hpp>
#include <boost/preprocessor/seq/for_each.hpp>
#include <boost/preprocessor/seq/for_each_i.hpp>
#include <boost/preprocessor/tuple/elem.hpp>
#include <boost/preprocessor/tuple/size.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>

#include "reference/contract/describe/domain.hpp"

#define KVO_DESCRIBED_MEMBER(r, data, i, row) BOOST_PP_COMMA_IF(i) BOOST_PP_TUPLE_ELEM(0, row)
#define KVO_DESCRIBED_DOC(r, data, i, row) std::string_view(BOOST_PP_TUPLE_ELEM(1, row)),
#define KVO_DESCRIBED_MEMBERS(...) \
  BOOST_PP_SEQ_FOR_EACH_I(KVO_DESCRIBED_MEMBER, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))
#define KVO_DESCRIBED_DOCS(...) \
  BOOST_PP_SEQ_FOR_EACH_I(KVO_DESCRIBED_DOC, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))

/// Describes every member of a record, in order of declaration, each with its meaning and unit on
/// one line: "layer, counted from 0". A forgotten one does not compile where the record is used.
#define KVO_DESCRIBE(Record, ...)                                                     \
  BOOST_DESCRIBE_STRUCT(Record, (), (__VA_OPT__(KVO_DESCRIBED_MEMBERS(__VA_ARGS__)))) \
  [[maybe_unused]] constexpr auto kvo_meanings(const Record* /*found by its type*/) { \
    return ::kvo::detail::meanings(__VA_OPT__(KVO_DESCRIBED_DOCS(__VA_ARGS__))        \
                                       std::string_view());                           \
  }

#define KVO_ROW_HAS(row, i) BOOST_PP_GREATER(BOOST_PP_TUPLE_SIZE(row), i)
#define KVO_ROW_NONE(i, row)
#define KVO_ROW_ELEM(i, row) BOOST_PP_TUPLE_ELEM(i, row)
#define KVO_ROW_OPTIONAL(row, i) \
  BOOST_PP_IF(KVO_ROW_HAS(row, i), KVO_ROW_ELEM, KVO_ROW_NONE)(i, row)
#define KVO_RECORD_MEMBER(r, data, row) \
  ::kvo::ValueOf<BOOST_PP_TUPLE_ELEM(0, row)> BOOST_PP_TUPLE_ELEM(1, row){KVO_ROW_OPTIONAL(row, 3)};
#define KVO_RECORD_ROW(r, data, row)                                                 \
  ::kvo::detail::member_row<BOOST_PP_TUPLE_ELEM(0, row)>({KVO_ROW_OPTIONAL(row, 2)}, \
                                                         KVO_ROW_HAS(row, 4)),
#define KVO_RECORD_ARGUMENT(r, data, row) \
  ::kvo::detail::argument<BOOST_PP_TUPLE_ELEM(0, row)>(this->BOOST_PP_TUPLE_ELEM(1, row)),
#define KVO_RECORD_ARGUMENTS(...) \
  BOOST_PP_SEQ_FOR_EACH(KVO_RECORD_ARGUMENT, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))
#define KVO_RECORD_NAME(r, data, i, row) BOOST_PP_COMMA_IF(i) BOOST_PP_TUPLE_ELEM(1, row)
#define KVO_RECORD_MEMBERS(...)                                                              \
  static constexpr std::array kRows{__VA_OPT__(BOOST_PP_SEQ_FOR_EACH(                        \
      KVO_RECORD_ROW, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)))::kvo::detail::MemberRow()}; \
  __VA_OPT__(BOOST_PP_SEQ_FOR_EACH(KVO_RECORD_MEMBER, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)))
#define KVO_RECORD_NAMES(...) \
  BOOST_PP_SEQ_FOR_EACH_I(KVO_RECORD_NAME, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))

/// Declares and describes a record. A row a member: (type or domain, name); then its meaning and
/// unit unless the domain gives it; then the value that a new record has; then may_be_absent if
/// JSON leaves out a member with this value.
#define KVO_RECORD(Record, ...) KVO_RECORD_WITH((), Record, __VA_ARGS__)
/// The same with static members, in brackets: (static constexpr auto kAxes = kRowAxes;).
#define KVO_RECORD_WITH(statics, Record, ...) \
  struct Record {                             \
    BOOST_PP_REMOVE_PARENS(statics)           \
    KVO_RECORD_MEMBERS(__VA_ARGS__)           \
  };                                          \
  BOOST_DESCRIBE_STRUCT(Record, (), (__VA_OPT__(KVO_RECORD_NAMES(__VA_ARGS__))))

namespace kvo {

/// A value that logs write as null when there is none.
template <class T>
struct Nullable {  // NOLINT(bugprone-exception-escape): as Tensor
  std::optional<T> value = std::nullopt;
  Nullable() = default;
  Nullable(std::nullopt_t) {}                            // NOLINT: reads as optional
  Nullable(T v) : value(std::move(v)) {}                 // NOLINT: reads as optional
  Nullable(std::optional<T> v) : value(std::move(v)) {}  // NOLINT: reads as optional
  [[nodiscard]] bool has_value() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  friend bool operator==(const Nullable&, const Nullable&) = default;
};

/// A domain whose value may be null.
template <DomainType D>
struct OrNull {
  using Value = Nullable<typename D::Value>;
  static constexpr const Domain& kDomain = D::kDomain;
};

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

namespace detail {
/// Initializes any member.
template <std::size_t kIndex>
struct AnyMember {
  template <class T>
  operator T&() const;  // NOLINT: implicit on purpose, and never defined
  template <class T>
  operator T&&() const;  // NOLINT: as above
};

/// Whether an aggregate has more members than indices are given. A last member that cannot be
/// copied is not seen: a record has none, for records are copied.
template <class T, std::size_t... kIndices>
constexpr bool has_more_members(std::index_sequence<kIndices...> /*described*/) {
  return requires {
    T{AnyMember<kIndices>()..., AnyMember<sizeof...(kIndices)>()};
  };
}
}  // namespace detail

/// Every member is described: a forgotten field is a compile error wherever a record is used.
template <class T>
concept Described = std::is_aggregate_v<T> && boost::describe::has_describe_members<T>::value &&
    !detail::has_more_members<T>(
        std::make_index_sequence<boost::mp11::mp_size<Members<T>>::value>());

template <class T>
concept DescribedEnum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;

namespace detail {
template <class... Texts>
constexpr std::array<std::string_view, sizeof...(Texts)> meanings(Texts... texts) {
  return {texts...};  // the last one is nobody's: a record may have no members
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsNullable : std::false_type {};
template <class T>
struct IsNullable<Nullable<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T, class A>
struct IsVector<std::vector<T, A>> : std::true_type {};
}  // namespace detail

template <class T>
concept Optional = detail::IsOptional<T>::value;
template <class T>
concept NullableType = detail::IsNullable<T>::value;
template <class T>
concept Vector = detail::IsVector<T>::value;

/// "kHostMemory" -> "host_memory": enumerators are written in logs as words.
std::string enumerator_word(std::string_view enumerator);

}  // namespace kvo
