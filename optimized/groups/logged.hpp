// optimized/groups/logged.hpp: numbers whose changes a failed operation takes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvo::optimized {

/// Values by number. Each change stores the old value: no look-up, no allocation once the log has
/// its size. A change is stored before it is made, so bad_alloc leaves nothing half done.
template <class T>
class Logged {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  using Place = std::uint32_t;

  Logged() = default;
  explicit Logged(std::size_t size, const T& value = {}) : values_(size, value) { commit(); }

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] const T& operator[](std::size_t place) const { return values_[place]; }
  /// The value in the beginning: not to be taken back.
  void start(std::size_t place, const T& value) noexcept { values_[place] = value; }
  /// The value, to be changed now. Throws std::bad_alloc.
  [[nodiscard]] T& change(std::size_t place) {
    log_.emplace_back(static_cast<Place>(place), values_[place]);
    return values_[place];
  }
  /// So many values, if there are fewer. Throws std::bad_alloc.
  void grow(std::size_t size, const T& value) {
    if (size > values_.size()) values_.resize(size, value);
  }
  void commit() noexcept {
    log_.clear();
    size_before_ = values_.size();
  }
  void roll_back() noexcept {
    for (; !log_.empty(); log_.pop_back()) values_[log_.back().first] = log_.back().second;
    values_.resize(size_before_);
  }

 private:
  std::vector<T> values_;
  std::vector<std::pair<Place, T>> log_;
  std::size_t size_before_ = 0;
};

}  // namespace kvo::optimized
