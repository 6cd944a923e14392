#include "tools/reports/paired_ratios.hpp"

#include <algorithm>
#include <cmath>

#include "reference/contract/values/check.hpp"

namespace kvo::tools {

double signed_rank_probability(std::span<const double> differences) {
  std::vector<double> ranked;
  for (const double difference : differences)
    if (difference != 0) ranked.push_back(difference);
  if (ranked.empty()) return 1;
  std::ranges::sort(ranked, {}, [](double one) { return std::abs(one); });
  const auto n = static_cast<double>(ranked.size());
  double above = 0;  // sum of the ranks of differences above 0
  double tied = 0;
  for (std::size_t begin = 0; begin < ranked.size();) {
    std::size_t end = begin + 1;
    while (end < ranked.size() && std::abs(ranked[end]) == std::abs(ranked[begin])) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) above += ranked[i] > 0 ? rank : 0;
    const auto alike = static_cast<double>(end - begin);
    tied += alike * (alike * alike - 1);
    begin = end;
  }
  const double mean = n * (n + 1) / 4;
  const double variance = n * (n + 1) * (2 * n + 1) / 24 - tied / 48;
  const double deviation = (above - mean - 0.5) / std::sqrt(variance);
  return std::erfc(deviation / std::sqrt(2.0)) / 2;
}

double median(std::span<const double> values) {
  KVO_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

namespace {

constexpr double kStepsAPower = 128;

}  // namespace

void Ratios::add(double ratio) {
  KVO_CHECK(ratio > 0);
  ++counts_[static_cast<int>(std::lround(std::log2(ratio) * kStepsAPower))];
  ++count_;
}

void Ratios::add_times(std::uint64_t time, std::uint64_t over) {
  if (time > 0 && over > 0) add(static_cast<double>(time) / static_cast<double>(over));
}

// The one that so many are below.
double Ratios::at(std::uint64_t place) const {
  std::uint64_t below = 0;
  for (const auto& [step, count] : counts_) {
    below += count;
    if (below > place) return std::exp2(step / kStepsAPower);
  }
  return std::exp2(counts_.rbegin()->first / kStepsAPower);
}

std::optional<Ratios::Middle> Ratios::middle() const {
  if (count_ == 0) return std::nullopt;
  Middle middle{.median = std::sqrt(at((count_ - 1) / 2) * at(count_ / 2))};
  if (count_ < kLeastRatios) return middle;
  // As many of `count` ratios are below their median as heads among so many coins.
  constexpr double kOfNormal = 1.96;
  const auto count = static_cast<double>(count_);
  const double reach = kOfNormal * std::sqrt(count) / 2;
  const auto first = static_cast<std::uint64_t>(std::max(0.0, std::floor(count / 2 - reach)));
  middle.low = at(first);
  middle.high = at(count_ - 1 - first);
  return middle;
}

std::vector<bool> too_small(std::span<const std::optional<double>> probabilities, double error) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    if (probabilities[i]) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return *probabilities[i]; });
  std::vector<bool> found(probabilities.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (*probabilities[order[k]] > error / static_cast<double>(order.size() - k)) break;
    found[order[k]] = true;
  }
  return found;
}

}  // namespace kvo::tools
