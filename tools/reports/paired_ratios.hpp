// tools/reports/paired_ratios.hpp: whether ratios that were measured in pairs have grown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <boost/describe/class.hpp>

namespace kvo::tools {

/// The probability of differences that are at least as much above 0 as these, were each as likely
/// above as below: Wilcoxon's signed-rank test, one-sided, with zeros left out, ties shared, and
/// the normal approximation, corrected for continuity. 1 without any difference.
/// Source   Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945
[[nodiscard]] double signed_rank_probability(std::span<const double> differences);

/// The median; the mean of the two in the middle of an even number. Requires  one value or more.
[[nodiscard]] double median(std::span<const double> values);

/// The middle of ratios that come one by one, in constant memory: to 1/128 of a power of two.
class Ratios {
 public:
  /// Requires  ratio > 0
  void add(double ratio);
  /// The ratio of two times; none if one of them is 0.
  void add_times(std::uint64_t time, std::uint64_t over);

  struct Middle {
    double median = 0;
    /// Between these two lies the median with 95 %, by order statistics; absent below kLeastRatios.
    std::optional<double> low = std::nullopt;
    std::optional<double> high = std::nullopt;
    BOOST_DESCRIBE_CLASS(Middle, (), (median, low, high), (), ())
  };
  /// Nothing without any.
  [[nodiscard]] std::optional<Middle> middle() const;

  static constexpr std::uint64_t kLeastRatios = 6;

 private:
  [[nodiscard]] double at(std::uint64_t place) const;

  std::map<int, std::uint64_t> counts_;  ///< by logarithm
  std::uint64_t count_ = 0;
};

/// Fewest pairs of which anything is said: below, the approximation is poor, and no comparison
/// among hundreds would be told from chance.
inline constexpr std::size_t kLeastPairs = 20;

/// Which of several probabilities are too small for chance, so that any is with the probability
/// `error` at most if none should be: Holm's correction. Absent ones are never.
/// Source   Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
///          of Statistics 6, 1979
[[nodiscard]] std::vector<bool> too_small(std::span<const std::optional<double>> probabilities,
                                          double error);

}  // namespace kvo::tools
