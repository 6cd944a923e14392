// properties/runner/shrinker.hpp: the smallest script, with its config, that still fails.
//
// Operations are total, so any of them may be left out. The passes of shrinker.cpp follow each
// other until none of them helps: a script that is shrunk again stays as it is. A long script first
// loses its middle, or large parts: all operations that name one cache, and chunks of many.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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

/// Drops chunks of half of `items`, then of a quarter and so on to those of `finest`, while `fails`
/// holds of the rest. Ends early where `fails` may be asked no more. True if any could go.
template <class T, class Fails>
bool drop_chunks(std::vector<T>& items, Fails&& fails, std::size_t finest = 1) {
  bool dropped = false;
  for (std::size_t size = std::max<std::size_t>(items.size() / 2, 1); size >= finest; size /= 2) {
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

/// What is made smaller.
struct Shrinkable {
  Script script;
  Record config = {};  ///< none: the script alone
};

/// Decides whether trials fail, within a budget of operations and of time. An attempt costs the
/// operations of its script and a fixed number.
class Judge {
 public:
  using Fails = std::function<bool(const Shrinkable&)>;
  using Clock = std::chrono::steady_clock;
  /// `fails` must be deterministic. `attempts`: the most attempts with short scripts. `until`: when
  /// the time is over; absent: never.
  Judge(Fails fails, std::uint64_t attempts, std::optional<Clock::time_point> until = std::nullopt)
      : fails_(std::move(fails)), left_(attempts * kOperationsOfAttempt), until_(until) {}

  /// Once it is false no trial is said to fail, and none need be made.
  [[nodiscard]] bool may_ask() const { return left_ > 0 && !is_late(); }
  [[nodiscard]] bool is_late() const { return until_ && Clock::now() >= *until_; }
  bool operator()(const Shrinkable& trial);
  /// Puts `candidate` in the place of `trial` if it fails. True if so.
  bool replaces(Shrinkable& trial, Shrinkable candidate);
  bool replaces(Shrinkable& trial, Script candidate);
  /// Calls `shrink` with a budget of its own, which is no part of the other one.
  bool apart(std::uint64_t operations, const std::function<bool()>& shrink);

 private:
  static constexpr std::uint64_t kOperationsOfAttempt = 64;

  Fails fails_;
  std::uint64_t left_;
  std::optional<Clock::time_point> until_;
};

/// Makes the script and the config of a failing trial smaller until no pass helps, or the budget is
/// spent. `queries` may end the script. True if anything changed.
bool shrink_trial(Shrinkable& trial, Judge& fails, const Script& queries);

/// A script that fails and of which no simpler candidate does. Requires  fails(script).
[[nodiscard]] Script shrink_script(Script script, const std::function<bool(const Script&)>& fails,
                                   std::uint64_t most_attempts = 20'000,
                                   const Script& queries = {});

}  // namespace kvo
