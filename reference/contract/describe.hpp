// reference/contract/describe.hpp: records that are described once; everything else derives.
//
// A record is an aggregate followed by BOOST_DESCRIBE_STRUCT. Optional static members say more:
//   kName   the operation's name in logs        kDoc   one sentence for `kvoracle list`
//   kAxes   the names of the axes of every tensor in the record; or a function axes(member name)
// An absent std::optional is not written; a Nullable is always written, as null when empty.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <boost/pfr/tuple_size.hpp>

namespace kvo {

/// A value that logs write as null when there is none.
template <class T>
struct Nullable {
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

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

/// Every member is described: a forgotten field is a compile error wherever a record is used.
template <class T>
concept Described = std::is_aggregate_v<T> && boost::describe::has_describe_members<T>::value &&
                    boost::mp11::mp_size<Members<T>>::value == boost::pfr::tuple_size_v<T>;

template <class T>
concept DescribedEnum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;

/// Calls visit(name, member) for each member in order of declaration.
template <class Record, class Visit>
requires Described<std::remove_const_t<Record>>
constexpr void for_each_member(Record& record, Visit&& visit) {
  boost::mp11::mp_for_each<Members<std::remove_const_t<Record>>>(
      [&](auto member) { visit(std::string_view(member.name), record.*member.pointer); });
}

namespace detail {
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
