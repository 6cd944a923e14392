// reference/contract/values/mark.hpp: states of a cache that random scripts must reach.
//
// A mark is one line in a reference, where the state is there:
//   if (position < 0) {
//     KVO_MARK("cells.meta", "moved below zero");
// A campaign that never comes by proves little: the test of coverage names the mark. It costs a
// load and a branch where no script records.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/container/flat_set.hpp>

#include "reference/contract/values/quirk.hpp"

namespace kvo {

/// Names of the states that a case went through: "pool ran dry half-way". String literals only.
using Labels = boost::container::flat_set<std::string_view>;

/// A state that is marked in a reference.
struct Mark {
  std::string_view kinds;                         ///< "cells.kv", several with a blank between
  std::string_view text;                          ///< its label
  std::optional<Profile> profile = std::nullopt;  ///< it is reached in that one only

  [[nodiscard]] bool is_of(std::string_view kind) const {
    for (std::string_view rest = kinds; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == kind) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
  }
};

/// All marks of the program, each once.
[[nodiscard]] inline std::vector<Mark>& marks() {
  static std::vector<Mark> all;
  return all;
}

/// Where marks that are passed are recorded in this thread; null: nowhere.
inline thread_local constinit Labels* recorded_marks = nullptr;  // NOLINT: of a thread

namespace detail {

/// A string literal as an argument of a template.
template <std::size_t kSize>
struct MarkText {
  consteval MarkText(const char (&literal)[kSize]) {  // NOLINT: from a literal
    std::copy_n(literal, kSize, text);
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text, kSize - 1}; }
  char text[kSize] = {};  // NOLINT: an array in an argument of a template
};

/// Lists itself at the program's start, passed or not.
template <MarkText kinds, MarkText text, int kProfile = -1>
struct MarkedPlace {
  static inline const bool kListed = [] {
    Mark mark{kinds.view(), text.view()};
    if constexpr (kProfile >= 0) mark.profile = static_cast<Profile>(kProfile);
    marks().push_back(mark);
    return true;
  }();
  static void pass() {
    if (recorded_marks != nullptr && kListed) recorded_marks->insert(text.view());
  }
};

}  // namespace detail
}  // namespace kvo

/// Marks a state of cache kinds ("contract.cache", or several with a blank between) by its label.
#define KVO_MARK(kinds, text) ::kvo::detail::MarkedPlace<kinds, text>::pass()
/// The same for a state of one profile.
#define KVO_MARK_IN(profile, kinds, text) \
  ::kvo::detail::MarkedPlace<kinds, text, static_cast<int>(profile)>::pass()
