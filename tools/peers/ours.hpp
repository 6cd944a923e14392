// tools/peers/ours.hpp: what all pieces of work of tools/peers/run have in common.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/contract/values/tensor.hpp"

namespace kvo::peers {

/// A piece of work: the median of its times, and a sum of what was read, which all programs share.
struct Measured {
  double ns = 0;
  std::uint64_t check = 0;
};

/// Of whole numbers in the order in which they are read; of rows: as they were written, in the
/// order of layers, sides, tokens and elements.
class Sum {
 public:
  void add(std::uint64_t value) { sum_ += value * (index_++ % 8191 + 1); }
  void add(float value) { add(static_cast<std::uint64_t>(value)); }
  /// Rows [channels, tokens, dim]: a token's row lies dim by dim in its channels.
  void add(const Tensor& rows) {
    const std::int64_t channels = rows.shape[0];
    const std::int64_t tokens = rows.shape[1];
    const std::int64_t dim = rows.shape[2];
    const auto cells = rows.floats();
    for (std::int64_t token = 0; token < tokens; ++token)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        for (std::int64_t d = 0; d < dim; ++d)
          add(cells[static_cast<std::size_t>((channel * tokens + token) * dim + d)]);
  }
  [[nodiscard]] std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t index_ = 0;
};

/// The calls of a piece of work. Those of its first pass are not timed; what they read is summed.
class Work {
 public:
  /// Makes call(Sum*), where nothing is to be summed with nullptr.
  template <class Call>
  void call(bool timed, const Call& call) {
    if (!timed) return call(&sum_);
    const auto begin = std::chrono::steady_clock::now();
    call(nullptr);
    const auto spent = std::chrono::steady_clock::now() - begin;
    times_.push_back(std::chrono::duration<double, std::nano>(spent).count());
  }
  [[nodiscard]] Measured measured() {
    std::ranges::nth_element(times_, times_.begin() + std::ssize(times_) / 2);
    return {times_[times_.size() / 2], sum_.value()};
  }

 private:
  std::vector<double> times_;
  Sum sum_;
};

/// The caches of `prefix`: request|life BLOCKS, steps, lookup|evict LEAVES.
[[nodiscard]] Measured measure_prefix(const std::string& work, std::int64_t size);

}  // namespace kvo::peers
