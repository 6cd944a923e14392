// reference/prefix/journal.hpp: rows and state that a failed operation restores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <type_traits>
#include <utility>

namespace kvo::prefix {

/// Rows by number, counted from 0. The old value of a changed row is stored until commit.
/// Moving a row must not fail.
template <class T>
class Journaled {
 public:
  static_assert(std::is_nothrow_move_assignable_v<T>);

  [[nodiscard]] std::int64_t size() const { return std::ssize(rows_); }
  [[nodiscard]] const T& operator[](std::int64_t row) const {
    return rows_[static_cast<std::size_t>(row)];
  }
  /// The row, to be changed; it stays where it is when rows are added.
  [[nodiscard]] T& change(std::int64_t row) {
    T& there = rows_[static_cast<std::size_t>(row)];
    if (row < size_before_) before_.try_emplace(row, there);
    return there;
  }
  /// Returns  the new row's number.
  std::int64_t add(T row) {
    rows_.push_back(std::move(row));
    return size() - 1;
  }
  [[nodiscard]] const std::deque<T>& rows() const { return rows_; }
  /// There are no rows any more, for good.
  void clear() noexcept {
    rows_.clear();
    commit();
  }
  void commit() noexcept {
    before_.clear();
    size_before_ = size();
  }
  void roll_back() noexcept {
    for (auto& [row, was] : before_) rows_[static_cast<std::size_t>(row)] = std::move(was);
    while (size() > size_before_) rows_.pop_back();
    before_.clear();
  }

 private:
  std::deque<T> rows_;
  std::map<std::int64_t, T> before_;
  std::int64_t size_before_ = 0;
};

/// An operation on a State that has commit() and roll_back(): all of it, or nothing.
template <class State>
class Transaction {
 public:
  explicit Transaction(State& state) : state_(&state) {}
  ~Transaction() {
    if (state_ != nullptr) state_->roll_back();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// What was changed stays. Call it once.
  void commit() noexcept { std::exchange(state_, nullptr)->commit(); }

 private:
  State* state_;
};

/// Does an operation whose changes stay if its result is no error.
template <class State, class Work>
auto transact(State& state, const Work& work) {
  Transaction transaction(state);
  auto done = work();
  if (done) transaction.commit();
  return done;
}

}  // namespace kvo::prefix
