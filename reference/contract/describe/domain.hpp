// reference/contract/describe/domain.hpp: what the values of an argument mean and which are
// allowed.
//
// A domain is a struct with a type Value and a constant kDomain:
//   struct Layer { using Value = std::int64_t; static constexpr Domain kDomain{.meaning = ".."}; };
// A record names it as the type of a member (KVO_RECORD). The member has the type Value. Checks of
// arguments, the choice of the cache, names of axes and documentation derive from the constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "reference/contract/values/result.hpp"

namespace kvo {

/// Names of axes, outermost first; missing names are numbered.
using AxisNames = std::span<const std::string_view>;

/// The values of an argument or of a member of a result.
struct Domain {
  std::string_view meaning = {};  ///< and unit, where the record gives none of its own
  /// Integers that a session passes to a cache; elements of a list each. Others are `outside`.
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Code outside = Code::kPrecondition;
  /// What an earlier operation made and the value identifies: "cache"; empty: it is no handle.
  std::string_view handle_of = {};
  AxisNames axes = {};  ///< of its tensors
  /// Whether it depends on addresses: caches whose results are copies answer otherwise.
  bool depends_on_addresses = false;

  [[nodiscard]] constexpr bool is_bounded() const {
    return least != std::numeric_limits<std::int64_t>::min() ||
           most != std::numeric_limits<std::int64_t>::max();
  }
};

/// A struct with Value and kDomain.
template <class D>
concept DomainType = requires {
  typename D::Value;
  D::kDomain.least;
};

/// A word as an argument of a template.
template <std::size_t kSize>
struct Word {
  char letters[kSize];  // NOLINT(cppcoreguidelines-avoid-c-arrays): of a template
  constexpr Word(const char (&text)[kSize]) {  // NOLINT: reads as a word
    for (std::size_t i = 0; i < kSize; ++i) letters[i] = text[i];
  }
  [[nodiscard]] constexpr std::string_view text() const { return {letters, kSize - 1}; }
};

/// What a cache chooses to identify something by: HandleOf<"block">.
template <Word kWhat>
struct HandleOf {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.handle_of = kWhat.text()};
};

/// Domains of several contracts, whose integers differ in type. @{
template <class Int>
struct CacheOfCase {
  using Value = Int;
  static constexpr Domain kDomain{
      .meaning = "which cache of the case, as numbered when it was made", .handle_of = "cache"};
};
template <class Int>
struct LayerOfModel {
  using Value = Int;
  static constexpr Domain kDomain{.meaning = "layer, counted from 0"};
};
/// @}

/// A domain whose value may be absent, and one of lists of its values. @{
template <DomainType D>
struct Maybe {
  using Value = std::optional<typename D::Value>;
  static constexpr const Domain& kDomain = D::kDomain;
};
template <DomainType D>
struct ListOf {
  using Value = std::vector<typename D::Value>;
  static constexpr const Domain& kDomain = D::kDomain;
};
/// @}

namespace detail {
template <class T>
struct ValueOf {
  using type = T;
  static constexpr const Domain* kDomain = nullptr;
  static constexpr std::string_view kMeaning = {};
  static constexpr bool kIsCache = false;
};
template <DomainType D>
struct ValueOf<D> {
  using type = typename D::Value;
  static constexpr const Domain* kDomain = &D::kDomain;
  static constexpr std::string_view kMeaning = D::kDomain.meaning;
  static constexpr bool kIsCache = D::kDomain.handle_of == "cache";
};

/// What a record says of one member.
struct MemberRow {
  const Domain* domain = nullptr;
  std::string_view meaning = {};
  bool has_default = false;  ///< JSON leaves out a value that equals the default
};
template <class T>
constexpr MemberRow member_row(std::string_view meaning = {}, bool has_default = false) {
  return {ValueOf<T>::kDomain, meaning.empty() ? ValueOf<T>::kMeaning : meaning, has_default};
}

/// What a method of a cache takes of a member: nothing of a handle of caches.
template <class T>
constexpr auto argument(const typename ValueOf<T>::type& member) {
  if constexpr (ValueOf<T>::kIsCache)
    return std::tuple<>();
  else
    return std::tuple<const typename ValueOf<T>::type&>(member);
}
}  // namespace detail

/// The C++ type of a member that is declared with `T`, a domain or the type itself.
template <class T>
using ValueOf = typename detail::ValueOf<T>::type;

}  // namespace kvo
