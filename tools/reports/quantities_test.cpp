#include "tools/reports/quantities.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace kvo::tools {
namespace {

TEST(Quantities, CountsAreGroupedByThousands) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(Quantities, ANounFollowsItsCount) {
  EXPECT_EQ(count_text(1, "case"), "1 case");
  EXPECT_EQ(count_text(0, "case"), "0 cases");
  EXPECT_EQ(count_text(1234, "request"), "1,234 requests");
  EXPECT_EQ(count_text(2, "mismatch"), "2 mismatches");
}

TEST(Quantities, DurationsHaveThreeDigits) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(812), "812 ns");
  EXPECT_EQ(duration_text(1.5), "1.50 ns");
  EXPECT_EQ(duration_text(999.9), "1.00 us");
  EXPECT_EQ(duration_text(1234), "1.23 us");
  EXPECT_EQ(duration_text(45.6e6), "45.6 ms");
  EXPECT_EQ(duration_text(7e9), "7.00 s");
  EXPECT_EQ(duration_text(99.94e9), "99.9 s");
  EXPECT_EQ(duration_text(125e9), "2 min 05 s");
  EXPECT_EQ(duration_text(3599.6e9), "1 h 00 min");
  EXPECT_EQ(duration_text(11400e9), "3 h 10 min");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "-");
}

TEST(Quantities, BytesAreInPowersOf1024) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(std::uint64_t{3} << 30U), "3.00 GiB");
  EXPECT_EQ(bytes_text(std::uint64_t{1} << 60U), "1048576 TiB");
}

TEST(Quantities, RatesNeedATime) {
  EXPECT_EQ(throughput_text(12.34e9, 1e9), "12.3 GB/s");
  EXPECT_EQ(throughput_text(1, 0), "-");
  EXPECT_EQ(frequency_text(4210, 1e9), "4.21 k/s");
  EXPECT_EQ(frequency_text(5, 1e10), "0.500 /s");
  EXPECT_EQ(frequency_text(5, 0), "-");
}

TEST(Quantities, RatiosAreFactors) {
  EXPECT_EQ(ratio_text(12.345), "12.3x");
  EXPECT_EQ(ratio_text(0.95), "0.950x");
  EXPECT_EQ(ratio_text(1234), "1234x");
  EXPECT_EQ(ratio_text(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(Quantities, AnIntervalStandsBehindItsRatio) {
  EXPECT_EQ(interval_text(0.638, 0.61, 0.662), "0.638x [0.610..0.662x]");
  EXPECT_EQ(interval_text(12.34, std::nullopt, 13), "12.3x");
}

}  // namespace
}  // namespace kvo::tools
