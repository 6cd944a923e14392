// reference/contract/values/quirk.hpp: the two profiles, and the quirks in which they differ.
//
// A contract lists its quirks once, one row each, with KVO_QUIRKS; the reference asks for each by
// its enumerator. Names for people, `kvoracle list`, the docs, and the attribution of recorded logs
// derive from the rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <boost/describe/enum.hpp>
#include <boost/preprocessor/punctuation/comma_if.hpp>
#include <boost/preprocessor/seq/for_each_i.hpp>
#include <boost/preprocessor/tuple/elem.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>

namespace kvo {

/// `original` is what the followed system does, quirks included; `documented` what it promises.
enum class Profile : std::uint8_t { kOriginal, kDocumented };
BOOST_DESCRIBE_ENUM(Profile, kOriginal, kDocumented)

/// One way in which the followed system does not do what it promises.
struct QuirkInfo {
  std::string_view rule;        ///< "OK-54", the spec's rule that it is part of
  std::string_view enumerator;  ///< "kCopyOntoItselfEmpties"
  std::string_view sentence;    ///< what the original does, for people

  /// "copy_onto_itself_empties"
  [[nodiscard]] std::string name() const;
};

/// The quirks that one cache has, of a contract whose enumeration is Quirk.
template <class Quirk>
class QuirkSet {
 public:
  constexpr QuirkSet() = default;
  /// All in profile original, none in documented.
  constexpr explicit QuirkSet(Profile profile)
      : bits_(profile == Profile::kOriginal ? ~std::uint64_t{0} : 0) {}

  [[nodiscard]] constexpr bool has(Quirk quirk) const {
    return (bits_ >> static_cast<unsigned>(quirk) & 1U) != 0;
  }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  constexpr void add(Quirk quirk) { bits_ |= std::uint64_t{1} << static_cast<unsigned>(quirk); }
  constexpr void remove(Quirk quirk) {
    bits_ &= ~(std::uint64_t{1} << static_cast<unsigned>(quirk));
  }

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace kvo

#define KVO_QUIRK_ENUMERATOR(r, data, i, row) BOOST_PP_COMMA_IF(i) BOOST_PP_TUPLE_ELEM(0, row)
#define KVO_QUIRK_TEXT(text) #text
#define KVO_QUIRK_STRING(text) KVO_QUIRK_TEXT(text)
#define KVO_QUIRK_INFO(r, data, i, row)                                         \
  BOOST_PP_COMMA_IF(i)                                                          \
  ::kvo::QuirkInfo {                                                            \
    BOOST_PP_TUPLE_ELEM(1, row), KVO_QUIRK_STRING(BOOST_PP_TUPLE_ELEM(0, row)), \
        BOOST_PP_TUPLE_ELEM(2, row)                                             \
  }

/// KVO_QUIRKS(Quirk, (kFullEvicts, "OK-22", "what it does"), ..): the enumeration Quirk and the
/// array kQuirkRows, both in the order of the rows; at most 64.
#define KVO_QUIRKS(Enum, ...)                                                               \
  enum class Enum : std::uint8_t {                                                          \
    BOOST_PP_SEQ_FOR_EACH_I(KVO_QUIRK_ENUMERATOR, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)) \
  };                                                                                        \
  inline constexpr std::array k##Enum##Rows{                                                \
      BOOST_PP_SEQ_FOR_EACH_I(KVO_QUIRK_INFO, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))};
