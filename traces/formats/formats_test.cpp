#include "traces/formats/formats.hpp"

#include <string>

#include <gtest/gtest.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::error_in;
using test::error_text;
using test::gzipped;
using test::requests_in;
using test::TempFolder;

constexpr std::string_view kMooncake =
    R"({"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [4]})";
constexpr std::string_view kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:00,2,3\n";
constexpr std::string_view kBurstGpt =
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n1,m,2,3,5,x\n";

TEST(Formats, AreFoundByContent) {
  for (const auto content : {kMooncake, kAzure, kBurstGpt}) {
    const auto requests = requests_in(content);
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].input_tokens, 2);
    EXPECT_EQ(requests[0].output_tokens, 3);
  }
}

TEST(Formats, NoFirstLineLooksLikeTwo) {
  for (const auto content : {kMooncake, kAzure, kBurstGpt}) {
    int found = 0;
    for (const auto& format : formats()) found += format.detect(content) ? 1 : 0;
    EXPECT_EQ(found, 1) << content;
  }
}

TEST(Formats, DoNotDependOnTheNameOfTheFileNorOnPacking) {
  const TempFolder folder;
  const auto path = folder.write("trace.csv", gzipped(kMooncake));
  const auto reader = open_trace(path);
  ASSERT_EQ(error_text(reader), "no error");
  EXPECT_EQ(read_all(**reader)->size(), 1u);
}

TEST(Formats, AllowByteOrderMarkBlankLinesAndCarriageReturns) {
  EXPECT_EQ(requests_in("\xef\xbb\xbf" + std::string(kMooncake) + "\r\n").size(), 1u);
  EXPECT_EQ(requests_in("\xef\xbb\xbf\r\n  \n" + std::string(kAzure)).size(), 1u);
}

TEST(Formats, EmptyFileIsAnError) {
  EXPECT_EQ(error_in(""), "t: the file is empty");
  EXPECT_EQ(error_in("\n \n"), "t: the file is empty");
}

TEST(Formats, UnknownContentIsAnError) {
  EXPECT_EQ(error_in("\n# A heading\n"),
            "t:2: format: # A heading: not the beginning of any known format: "
            "mooncake, azure, burstgpt");
}

TEST(Formats, UnknownNameIsAnError) {
  EXPECT_EQ(error_in(kAzure, "csv"), "format: csv: unknown; there are mooncake, azure, burstgpt");
}

TEST(Formats, WrongNameIsAnErrorOfTheContent) {
  EXPECT_EQ(error_in(kAzure, "burstgpt"), "t:1: Timestamp: this column is missing");
}

TEST(Formats, HeaderWithoutRowsIsATraceWithoutRequests) {
  EXPECT_TRUE(requests_in("TIMESTAMP,ContextTokens,GeneratedTokens\n").empty());
}

TEST(Formats, FileThatCannotBeOpenedIsAnError) {
  const TempFolder folder;
  EXPECT_EQ(error_text(open_trace(folder.path("none"))),
            folder.path("none") + ": cannot open: No such file or directory");
}

}  // namespace

}  // namespace kvo::traces
