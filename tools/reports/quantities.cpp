#include "tools/reports/quantities.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace kvo::tools {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

/// Three digits that count; whole above 100.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

/// `value` in the largest of `units` of which there is at least one; each is `step` of the last.
std::string in_units(double value, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && std::abs(value) >= step * 0.9995) {
    value /= step;
    ++unit;
  }
  const bool whole = unit == 0 && value == std::floor(value);
  return fmt::format("{} {}", whole ? fmt::format("{:.0f}", value) : three_digits(value),
                     units[unit]);
}

}  // namespace

std::string count_text(std::uint64_t count, std::string_view noun) {
  const bool hisses = noun.ends_with("s") || noun.ends_with("ch");
  return fmt::format("{} {}{}", count_text(count), noun, count == 1 ? "" : hisses ? "es" : "s");
}

std::string count_text(std::uint64_t count) {
  std::string digits = fmt::to_string(count);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, ",");
  return digits;
}

std::string duration_text(double nanoseconds) {
  if (!std::isfinite(nanoseconds)) return "-";
  const double seconds = nanoseconds / kNanosecondsPerSecond;
  if (seconds < 99.95) {
    static constexpr std::array<std::string_view, 4> kUnits{"ns", "us", "ms", "s"};
    return in_units(nanoseconds, 1000, kUnits);
  }
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  return in_units(static_cast<double>(bytes), 1024, kUnits);
}

std::string throughput_text(double bytes, double nanoseconds) {
  if (!(nanoseconds > 0)) return "-";
  static constexpr std::array<std::string_view, 5> kUnits{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return in_units(bytes / nanoseconds * kNanosecondsPerSecond, 1000, kUnits);
}

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) ? three_digits(ratio) + "x" : "-";
}

std::string interval_text(double ratio, std::optional<double> low, std::optional<double> high) {
  if (!low || !high) return ratio_text(ratio);
  const std::string from = ratio_text(*low);
  return fmt::format("{} [{}..{}]", ratio_text(ratio), from.substr(0, from.size() - 1),
                     ratio_text(*high));
}

std::string frequency_text(double events, double nanoseconds) {
  if (!(nanoseconds > 0)) return "-";
  static constexpr std::array<std::string_view, 4> kUnits{"/s", "k/s", "M/s", "G/s"};
  return in_units(events / nanoseconds * kNanosecondsPerSecond, 1000, kUnits);
}

}  // namespace kvo::tools
