#include "reference/contract/values/exponential.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kvo {
namespace {

constexpr double kLargest = 709.782712893383973096;    // above it the result is infinite
constexpr double kSmallest = -745.133219101941108420;  // below it the result is 0
constexpr double kPerLn2 = 1.44269504088896338700;
constexpr double kLn2High = 6.93147180369123816490e-01;  // short: a multiple of it is exact
constexpr double kLn2Low = 1.90821492927058770002e-10;

// 1 / n! for n = 2 to 13: the next term is below half a unit in the last place for |r| < 0.35.
constexpr auto kTerms = [] {
  std::array<double, 12> terms{};
  double factorial = 1;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    factorial *= static_cast<double>(i + 2);
    terms[i] = 1 / factorial;
  }
  return terms;
}();

// 2^n, for n of normal numbers.
double power_of_two(std::int64_t n) {
  constexpr std::int64_t kBias = 1023;
  constexpr int kFractionBits = 52;
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + kBias) << kFractionBits);
}

}  // namespace

double exponential(double x) {
  if (std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
  if (x > kLargest) return std::numeric_limits<double>::infinity();
  if (x < kSmallest) return 0;
  const double k = std::floor(x * kPerLn2 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 0;
  for (std::size_t i = kTerms.size(); i-- > 0;) sum = sum * r + kTerms[i];
  const double reduced = 1 + (r + r * r * sum);
  // In two steps, of which only the second can round: 2^k may be too small for a number.
  const auto n = static_cast<std::int64_t>(k);
  return reduced * power_of_two(n / 2) * power_of_two(n - n / 2);
}

}  // namespace kvo
