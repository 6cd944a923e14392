// reference/contract/values/random.hpp: random numbers that are the same everywhere.
//
// Only std::mt19937_64 is fixed by the standard; the distributions of the standard library differ
// from one library to the next, and floating-point logarithms in their last bits. Hence integers.
#pragma once

#include <cstdint>
#include <random>

namespace kvo::traces {

/// A stream of random integers, a function of its seed alone.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// 0 to `bound` - 1, each as likely. Requires bound >= 1.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);

  /// True in `percent` of 100 cases.
  [[nodiscard]] bool chance(std::uint64_t percent) { return below(100) < percent; }

  /// Exponentially distributed about `mean`, rounded down. Requires 0 <= mean < 2^31.
  [[nodiscard]] std::int64_t exponential(std::int64_t mean);

 private:
  std::mt19937_64 engine_;
};

}  // namespace kvo::traces
