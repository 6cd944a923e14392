#include "traces/formats/azure.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::error_in;
using test::requests_in;

const std::string kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST(Azure, ReadsTheStampsOf2023) {
  const auto requests = requests_in(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:17:03.9799600,4808,10\r\n"
      "2023-11-16 18:17:04.0319609,3180,8");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0], (Request{0, 4808, 10, {}, 2}));
  EXPECT_EQ(requests[1], (Request{52000, 3180, 8, {}, 3}));
}

TEST(Azure, ReadsTheStampsOf2024) {
  const auto requests = requests_in(kHeader +
                                    "2024-05-10 00:00:00.009930+00:00,2162,5\n"
                                    "2024-05-10 00:00:01+00:00,2399,6\n");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].arrival_us, 990'070);
}

TEST(Azure, FindsColumnsInAnyOrder) {
  const auto requests =
      requests_in("GeneratedTokens,TIMESTAMP,Extra,ContextTokens\n1,2023-01-01 00:00:00,x,2\n");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0], (Request{0, 2, 1, {}, 2}));
}

TEST(Azure, RowStampedBeforeTheFirstArrivesBelowZero) {
  const auto requests = requests_in(kHeader +
                                    "2023-01-01 00:00:01.0000000,1,1\n"
                                    "2023-01-01 00:00:00.9999999,1,1\n");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].arrival_us, -1);
}

TEST(Azure, StampsCountFrom1970AndKnowTheirZone) {
  EXPECT_EQ(parse_stamp_ns("1970-01-01 00:00:00"), 0);
  EXPECT_EQ(parse_stamp_ns("1970-01-01T00:00:00.000000001Z"), 1);
  EXPECT_EQ(parse_stamp_ns("1970-01-02 01:02:03.5+01:02"), 86'403'500'000'000);
  EXPECT_EQ(parse_stamp_ns("1970-01-01 00:00:00-00:30"), 1'800'000'000'000);
  EXPECT_EQ(parse_stamp_ns("2024-02-29 00:00:00"), 1'709'164'800'000'000'000);
}

TEST(Azure, RefusesWhatIsNoStamp) {
  for (const auto* const text :
       {"", "now", "2023-11-16", "2023-11-16 18:17", "2023-13-16 18:17:03", "2023-02-29 00:00:00",
        "2023-11-16 24:00:00", "2023-11-16 18:60:00", "2023-11-16 18:17:60", "2023-11-16 18:17:03.",
        "2023-11-16 18:17:03.1234567890", "2023-11-16 18:17:03 ", "2023-11-16 18:17:03+00",
        "2023-11-16 18:17:03+00:60", "2023-11-16 18:17:03x", "1969-12-31 23:59:59",
        "2200-01-01 00:00:00", "-023-11-16 18:17:03"}) {
    EXPECT_FALSE(parse_stamp_ns(text)) << text;
  }
}

TEST(Azure, NamesFileLineFieldAndValueOfABadCell) {
  const std::string good = kHeader + "2023-01-01 00:00:00,1,1\n";
  const std::vector<std::pair<std::string, std::string>> bads = {
      {"yesterday,1,1", "TIMESTAMP: yesterday: not a stamp YYYY-MM-DD HH:MM:SS.digits"},
      {",1,1", "TIMESTAMP: missing"},
      {"2023-01-01 00:00:00", "ContextTokens: missing"},
      {"2023-01-01 00:00:00,1", "GeneratedTokens: missing"},
      {"2023-01-01 00:00:00,-4,1", "ContextTokens: -4: below zero"},
      {"2023-01-01 00:00:00,nan,1", "ContextTokens: nan: not a finite number"},
      {"2023-01-01 00:00:00,1,inf", "GeneratedTokens: inf: not a finite number"},
      {"2023-01-01 00:00:00,1,-inf", "GeneratedTokens: -inf: not a finite number"},
      {"2023-01-01 00:00:00,1.0,1", "ContextTokens: 1.0: not a whole number"},
      {"2023-01-01 00:00:00,1e3,1", "ContextTokens: 1e3: not a whole number"},
      {"2023-01-01 00:00:00,0x10,1", "ContextTokens: 0x10: not a number"},
      {"2023-01-01 00:00:00,many,1", "ContextTokens: many: not a number"},
      {"2023-01-01 00:00:00,1099511627777,1",
       "ContextTokens: 1099511627777: larger than 2^40 tokens"},
      {"2023-01-01 00:00:00,99999999999999999999,1",
       "ContextTokens: 99999999999999999999: larger than 2^40 tokens"},
      {"2023-01-01 00:00:00,1,1,1", "row: 1: 4 cells under a header of 3"},
  };
  for (const auto& [row, error] : bads) EXPECT_EQ(error_in(good + row), "t:3: " + error);
}

TEST(Azure, MissingColumnIsAnError) {
  EXPECT_EQ(error_in("Time,ContextTokens,GeneratedTokens\n"),
            "t:1: TIMESTAMP: this column is missing");
  EXPECT_EQ(error_in("TIMESTAMP,ContextTokens\n", "azure"),
            "t:1: GeneratedTokens: this column is missing");
}

}  // namespace

}  // namespace kvo::traces
