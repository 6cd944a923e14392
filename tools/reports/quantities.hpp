// tools/reports/quantities.hpp: quantities as people read them. Three significant digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvo::tools {

/// "1,234,567"
[[nodiscard]] std::string count_text(std::uint64_t count);
/// "1 case", "1,234 cases", "2 mismatches": a count and its noun
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view noun);
/// "0 ns", "812 ns", "1.23 us", "45.6 ms", "7.00 s", "2 min 05 s", "3 h 10 min"
[[nodiscard]] std::string duration_text(double nanoseconds);
/// "512 B", "1.50 KiB", "3.00 GiB"
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// "12.3 GB/s", in powers of 1000; "-" when no time has passed
[[nodiscard]] std::string throughput_text(double bytes, double nanoseconds);
/// "12.3x", "0.950x"; "-" for what is no number
[[nodiscard]] std::string ratio_text(double ratio);
/// "0.638x [0.610..0.662x]": a ratio, and between what it lies; without bounds the ratio alone
[[nodiscard]] std::string interval_text(double ratio, std::optional<double> low,
                                        std::optional<double> high);
/// "4.21 k/s", operations or cases a second; "-" when no time has passed
[[nodiscard]] std::string frequency_text(double events, double nanoseconds);

}  // namespace kvo::tools
