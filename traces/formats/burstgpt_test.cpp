#include "traces/formats/burstgpt.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::error_in;
using test::requests_in;

const std::string kOld = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
const std::string kNew =
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
    "Log Type\n";

TEST(BurstGpt, ReadsOldFiles) {
  const auto requests = requests_in(kOld +
                                    "5,ChatGPT,472,18,490,Conversation log\n"
                                    "45,GPT-4,1087,230,1317,API log\n");
  EXPECT_EQ(requests,
            (std::vector<Request>{{5'000'000, 472, 18, {}, 2}, {45'000'000, 1087, 230, {}, 3}}));
}

TEST(BurstGpt, ReadsNewFiles) {
  const auto requests =
      requests_in(kNew + "19440110.1234567,1722ac82-0a46,43,GPT-4,906,446,1352,Conversation log\n");
  EXPECT_EQ(requests, (std::vector<Request>{{19'440'110'123'456, 906, 446, {}, 2}}));
}

TEST(BurstGpt, CountsFailedRequestsAndPassesOverThem) {
  const auto content = kOld + "1,m,10,0,10,x\n2,m,10,5,15,x\n3,m,10,0,10,x\n";
  auto reader = open_burstgpt(TextSource::in_memory("t", content)).value();
  const auto requests = read_all(*reader).value();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].line, 3u);
  EXPECT_EQ(reader->skipped(), Skipped{.failed = 2});
}

TEST(BurstGpt, NamesFileLineFieldAndValueOfABadCell) {
  const std::vector<std::pair<std::string, std::string>> bads = {
      {",m,1,1,2,x", "Timestamp: missing"},
      {"-1,m,1,1,2,x", "Timestamp: -1: below zero"},
      {"nan,m,1,1,2,x", "Timestamp: nan: not a finite number"},
      {"1e5,m,1,1,2,x", "Timestamp: 1e5: not a plain decimal number"},
      {"5.,m,1,1,2,x", "Timestamp: 5.: not a plain decimal number"},
      {"1.2.3,m,1,1,2,x", "Timestamp: 1.2.3: not a number"},
      {"9223372036854,m,1,1,2,x", "Timestamp: 9223372036854: too large a time"},
      {"5,m,-1,0,2,x", "Request tokens: -1: below zero"},
      {"5,m,1,NaN,2,x", "Response tokens: NaN: not a finite number"},
      {"5,m,1.5,1,2,x", "Request tokens: 1.5: not a whole number"},
      {"5,m", "Request tokens: missing"},
      {"5,m,1,\"1,2,x", "row: 5: the file ends within quotation marks"},
  };
  for (const auto& [row, error] : bads) EXPECT_EQ(error_in(kOld + row), "t:2: " + error);
}

TEST(BurstGpt, MissingColumnIsAnError) {
  EXPECT_EQ(error_in("Time,Request tokens,Response tokens\n"),
            "t:1: Timestamp: this column is missing");
}

}  // namespace

}  // namespace kvo::traces
