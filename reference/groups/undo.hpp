// reference/groups/undo.hpp: rows, lists and sets whose changes a failed operation takes back, the
// last one first. commit() lets them stay. What is changed costs, not what is there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvo::groups {

/// Rows by number, counted from 0. They are small: each change stores the old row, and before it is
/// made, so that bad_alloc leaves nothing half done.
template <class T>
class Rows {
 public:
  static_assert(std::is_nothrow_move_assignable_v<T>);

  Rows() = default;
  explicit Rows(std::vector<T> rows) : rows_(std::move(rows)), size_before_(rows_.size()) {}

  [[nodiscard]] std::int64_t size() const { return std::ssize(rows_); }
  [[nodiscard]] const T& operator[](std::int64_t row) const {
    return rows_[static_cast<std::size_t>(row)];
  }
  /// The row, to be changed.
  [[nodiscard]] T& change(std::int64_t row) {
    T& there = rows_[static_cast<std::size_t>(row)];
    before_.emplace_back(row, there);
    return there;
  }
  /// So many rows, if there are fewer.
  void grow(std::int64_t size) {
    if (std::ssize(rows_) < size) rows_.resize(static_cast<std::size_t>(size));
  }
  void commit() noexcept {
    before_.clear();
    size_before_ = rows_.size();
  }
  void roll_back() noexcept {
    for (; !before_.empty(); before_.pop_back())
      rows_[static_cast<std::size_t>(before_.back().first)] = std::move(before_.back().second);
    rows_.resize(size_before_);
  }

 private:
  std::vector<T> rows_;
  std::vector<std::pair<std::int64_t, T>> before_;
  std::size_t size_before_ = 0;
};

/// Lists by number, counted from 0.
template <class T>
class Lists {
 public:
  using List = std::vector<T>;

  [[nodiscard]] const List& operator[](std::int64_t list) const {
    return lists_[static_cast<std::size_t>(list)];
  }
  /// So many lists, if there are fewer.
  void grow(std::int64_t size) {
    if (std::ssize(lists_) < size) lists_.resize(static_cast<std::size_t>(size));
  }
  /// Adds elements at the end. They are no part of a list here.
  void append(std::int64_t list, std::span<const T> elements) {
    List& there = resized(list);
    there.insert(there.end(), elements.begin(), elements.end());
  }
  void push(std::int64_t list, const T& element) { append(list, {&element, 1}); }
  /// Adds equal elements until there are so many.
  void fill(std::int64_t list, std::int64_t size, const T& element) {
    if (size > std::ssize((*this)[list]))
      resized(list).resize(static_cast<std::size_t>(size), element);
  }
  void set(std::int64_t list, std::int64_t place, const T& element) {
    T& there = lists_[static_cast<std::size_t>(list)][static_cast<std::size_t>(place)];
    changes_.push_back({.list = list, .kind = Kind::kElement, .place = place, .element = there});
    there = element;
  }
  /// Returns  what the list had.
  const List& replace(std::int64_t list, List elements) {
    changes_.push_back({.list = list, .kind = Kind::kList});
    changes_.back().elements =
        std::exchange(lists_[static_cast<std::size_t>(list)], std::move(elements));
    return changes_.back().elements;
  }
  void commit() noexcept {
    changes_.clear();
    size_before_ = lists_.size();
  }
  void roll_back() noexcept {
    for (; !changes_.empty(); changes_.pop_back()) {
      Change& last = changes_.back();
      List& there = lists_[static_cast<std::size_t>(last.list)];
      const auto place = static_cast<std::size_t>(last.place);
      if (last.kind == Kind::kSize) there.resize(place);
      if (last.kind == Kind::kElement) there[place] = last.element;
      if (last.kind == Kind::kList) there = std::move(last.elements);
    }
    lists_.resize(size_before_);
  }

 private:
  enum class Kind : std::uint8_t { kSize, kElement, kList };
  struct Change {
    std::int64_t list = 0;
    Kind kind = Kind::kSize;
    std::int64_t place = 0;  ///< of the element, or the old size
    T element = {};
    List elements = {};
  };
  List& resized(std::int64_t list) {
    List& there = lists_[static_cast<std::size_t>(list)];
    const bool is_again =
        !changes_.empty() && changes_.back().list == list && changes_.back().kind == Kind::kSize;
    if (!is_again)
      changes_.push_back({.list = list, .kind = Kind::kSize, .place = std::ssize(there)});
    return there;
  }

  std::vector<List> lists_;
  std::vector<Change> changes_;
  std::size_t size_before_ = 0;
};

/// Numbers without order.
class NumberSet {
 public:
  [[nodiscard]] bool contains(std::int64_t number) const { return numbers_.contains(number); }
  void insert(std::int64_t number) {
    if (numbers_.contains(number)) return;
    inserted_.push_back(number);
    numbers_.insert(number);
  }
  /// For good.
  void clear() noexcept {
    numbers_.clear();
    inserted_.clear();
  }
  void commit() noexcept { inserted_.clear(); }
  void roll_back() noexcept {
    for (const std::int64_t number : inserted_) numbers_.erase(number);
    inserted_.clear();
  }

 private:
  std::set<std::int64_t> numbers_;
  std::vector<std::int64_t> inserted_;
};

}  // namespace kvo::groups
