// properties/runner/shrinker.hpp: the smallest script that still fails.
//
// Operations are total, so any of them may be left out. Steps, each tried until none helps: drop
// chunks of halving size, drop single operations, end earlier with a query, join the lists of two
// operations, make one of two rounds of operations, make the numbers of one operation smaller, give
// what several operations name (a cache, a layer) the number 0, cut an axis of all tensors; where
// nothing of this helps, drop an operation that others count, or two at once. At last the elements
// become 1, 2, 3, ... where that shows the fault as well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "reference/contract/describe/operation.hpp"

namespace kvo {

using Script = std::vector<Op>;

/// `items` but for `count` of them from `begin` on.
template <class T>
[[nodiscard]] std::vector<T> without(const std::vector<T>& items, std::size_t begin,
                                     std::size_t count) {
  const auto at = [&](std::size_t i) {
    return items.begin() + static_cast<std::ptrdiff_t>(std::min(i, items.size()));
  };
  std::vector<T> rest(items.begin(), at(begin));
  rest.insert(rest.end(), at(begin + count), items.end());
  return rest;
}

/// Drops chunks of half of `items`, then of a quarter and so on to single ones, while `fails` holds
/// of the rest. Ends early where `fails` may be asked no more. True if any could go.
template <class T, class Fails>
bool drop_chunks(std::vector<T>& items, Fails&& fails) {
  bool dropped = false;
  for (std::size_t size = std::max<std::size_t>(items.size() / 2, 1); size > 0; size /= 2) {
    // From the end on, for what was set up early is needed longest.
    for (std::size_t end = items.size(); end > 0;) {
      if constexpr (requires { fails.may_ask(); })
        if (!fails.may_ask()) return dropped;
      const std::size_t begin = end > size ? end - size : 0;
      std::vector<T> rest = without(items, begin, end - begin);
      if (fails(std::as_const(rest))) {
        items = std::move(rest);
        dropped = true;
      }
      end = begin;
    }
  }
  return dropped;
}

/// Calls candidate(script) for simpler scripts, the boldest first, until it returns true.
void for_each_simpler(const Script& script, const std::function<bool(const Script&)>& candidate);

/// Of each operation that returns something, one with all numbers 0; those that need more are left
/// out.
[[nodiscard]] Script simplest_queries(const std::vector<const OpKind*>& operations);

/// A script that fails and of which no simpler candidate does. `fails` is asked at most
/// `most_attempts` times, and less often where scripts are long; it must be deterministic.
/// `queries` may end the script. Requires  fails(script).
[[nodiscard]] Script shrink_script(Script script, const std::function<bool(const Script&)>& fails,
                                   std::uint64_t most_attempts = 20'000,
                                   const Script& queries = {});

}  // namespace kvo
