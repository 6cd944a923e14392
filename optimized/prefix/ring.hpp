// optimized/prefix/ring.hpp: a list that grows and shrinks at both ends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kvo::optimized {

/// Numbers in memory that is used round and round: slots leave at the front, and come back at
/// either end.
class Ring {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::int64_t operator[](std::size_t i) const { return memory_[at(i)]; }

  /// Room for so many more. Throws std::bad_alloc; nothing has changed then.
  void reserve(std::size_t more) {
    if (memory_.size() - size_ >= more) return;
    std::vector<std::int64_t> moved(std::max(size_ + more, 2 * memory_.size()));
    for (std::size_t i = 0; i < size_; ++i) moved[i] = (*this)[i];
    memory_ = std::move(moved);
    first_ = 0;
  }
  /// Requires  room.
  void push_back(std::int64_t number) noexcept { memory_[at(size_++)] = number; }
  void push_front(std::int64_t number) noexcept {
    first_ = first_ == 0 ? memory_.size() - 1 : first_ - 1;
    memory_[first_] = number;
    ++size_;
  }
  /// Requires  that there is one.
  std::int64_t pop_front() noexcept {
    const std::int64_t number = memory_[first_];
    first_ = at(1);
    --size_;
    return number;
  }
  void clear() noexcept { first_ = size_ = 0; }
  /// In ascending order.
  void sort() noexcept {
    std::rotate(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(first_),
                memory_.end());
    first_ = 0;
    std::sort(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(size_));
  }

 private:
  [[nodiscard]] std::size_t at(std::size_t i) const {
    const std::size_t place = first_ + i;
    return place < memory_.size() ? place : place - memory_.size();
  }

  std::vector<std::int64_t> memory_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace kvo::optimized
