#include "reference/contract/values/random.hpp"

#include <limits>

namespace kvo::traces {

namespace {

constexpr int kFractionBits = 32;

}  // namespace

std::uint64_t Random::below(std::uint64_t bound) {
  // Draws in the incomplete last stretch of `bound` values would favour the small results.
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t last_complete = kMax - (kMax % bound + 1) % bound;
  std::uint64_t drawn = engine_();
  while (drawn > last_complete) drawn = engine_();
  return drawn % bound;
}

// Von Neumann's method, which needs comparisons only: draw while the values fall. The first value
// is accepted as the fraction if the run was of odd length; each rejected run adds one.
std::int64_t Random::exponential(std::int64_t mean) {
  for (std::int64_t whole = 0;; ++whole) {
    const std::uint64_t first = engine_() >> kFractionBits;
    std::uint64_t last = first;
    bool odd = true;
    for (std::uint64_t drawn = engine_() >> kFractionBits; drawn < last;
         drawn = engine_() >> kFractionBits) {
      last = drawn;
      odd = !odd;
    }
    if (!odd) continue;
    const std::uint64_t fraction = (static_cast<std::uint64_t>(mean) * first) >> kFractionBits;
    return mean * whole + static_cast<std::int64_t>(fraction);
  }
}

}  // namespace kvo::traces
