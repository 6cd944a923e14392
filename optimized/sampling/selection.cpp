#include "optimized/sampling/selection.hpp"

#include "reference/sampling/sampler.hpp"

namespace kvo::optimized {

std::size_t reach(std::span<const double> probabilities, std::span<std::uint32_t> order, double p) {
  const auto comes_before = [&](std::uint32_t a, std::uint32_t b) {
    if (sampling::is_above(probabilities[a], probabilities[b])) return true;
    return a < b && !sampling::is_above(probabilities[b], probabilities[a]);
  };
  // Few are needed as a rule, so that what is sorted grows by what turned out to be too little.
  constexpr std::size_t kFirst = 64;
  constexpr std::size_t kGrowth = 4;
  double sum = 0;
  std::size_t sorted = 0;
  for (std::size_t step = kFirst; sorted < order.size(); step *= kGrowth) {
    const std::span<std::uint32_t> rest = order.subspan(sorted);
    const std::span<std::uint32_t> next = rest.first(std::min(step, rest.size()));
    if (next.size() < rest.size())
      std::ranges::nth_element(rest, rest.begin() + std::ssize(next), comes_before);
    std::ranges::sort(next, comes_before);
    for (std::size_t i = 0; i < next.size(); ++i) {
      sum += probabilities[next[i]];
      if (sum >= p) return sorted + i + 1;
    }
    sorted += next.size();
  }
  return sorted;
}

}  // namespace kvo::optimized
