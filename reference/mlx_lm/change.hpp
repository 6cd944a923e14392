// reference/mlx_lm/change.hpp: an operation on a cache, which takes effect as a whole.
//
// Source   rules ML-A1, ML-A2, ML-A4.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/contract/values/result.hpp"
#include "reference/mlx_lm/arrays.hpp"
#include "reference/mlx_lm/quirks.hpp"

namespace kvo::mlx_lm {

/// A list of integers that several caches may hold.
using SharedInts = std::shared_ptr<Ints>;

/// What an operation writes into objects that others may hold. Nothing is written before commit().
class Writes {
 public:
  /// array[..., begin:end, :] = rows, cast and repeated as MLX does it.
  /// Errors  Misuse: rows fit neither the target nor are one of an axis.
  void put(const Array& into, std::int64_t begin, std::int64_t end, const Tensor& rows) {
    put(into, kSlotAxis, begin, end, rows);
  }
  /// Other numbers for all who hold the list.
  void put(const SharedInts& into, Ints numbers) { lists_.emplace_back(into, std::move(numbers)); }
  void commit() noexcept;

 private:
  struct Block {
    Array into;
    std::size_t axis;
    std::int64_t begin;
    Tensor entries;
  };
  void put(const Array& into, std::size_t axis, std::int64_t begin, std::int64_t end,
           const Tensor& entries);
  std::vector<Block> blocks_ = {};
  std::vector<std::pair<SharedInts, Ints>> lists_ = {};
};

/// A cache whose members are a State.
template <class State>
class Changing {
 protected:
  Changing(State state, QuirkSet<Quirk> quirks) : s_(std::move(state)), quirks_(quirks) {}
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  /// Runs change(state, writes) on a copy of the state, which replaces it in the end.
  /// Errors  what the change threw; in profile original the steps before that count (ML-A4).
  /// Nothing
  ///         is allocated after the state has changed.
  template <class Change>
  auto attempt(const Change& change)
      -> Result<decltype(change(std::declval<State&>(), std::declval<Writes&>()))> {
    State next = s_;
    Writes writes;
    const auto commit = [&] {
      writes.commit();
      std::swap(s_, next);
    };
    try {
      if constexpr (std::is_void_v<decltype(change(next, writes))>) {
        change(next, writes);
        commit();
        return {};
      } else {
        auto out = change(next, writes);
        commit();
        return out;
      }
    } catch (const Misuse& misuse) {
      Error error = misuse.error();
      if (has(Quirk::kFailureLeavesSteps)) commit();
      return error;
    }
  }

  State s_;
  QuirkSet<Quirk> quirks_;
};

/// The value of `question()`. Errors  what it threw.
template <class Question>
auto answer(const Question& question) -> Result<decltype(question())> {
  try {
    return question();
  } catch (const Misuse& misuse) {
    return misuse.error();
  }
}

}  // namespace kvo::mlx_lm
