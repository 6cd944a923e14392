#include "traces/formats/mooncake.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::error_in;
using test::error_text;
using test::requests_in;

struct Bad {
  std::string line;
  std::string error;
};

TEST(Mooncake, GivesRequests) {
  const auto requests = requests_in(
      R"({"timestamp": 27, "input_length": 700, "output_length": 5, "hash_ids": [3, 4]})"
      "\r\n\n"
      R"({"hash_ids":[],"other":{"x":[1]},"output_length":0,"input_length":0,"timestamp":28})");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0], (Request{27000, 700, 5, {3, 4}, 1}));
  EXPECT_EQ(requests[1], (Request{28000, 0, 0, {}, 3}));
}

TEST(Mooncake, KeepsAll64BitsOfAnId) {
  const auto requests = requests_in(
      R"({"timestamp": 0, "input_length": 1, "output_length": 1, )"
      R"("hash_ids": [18446744073709551615, 9223372036854775808, 9223372036854775807]})");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].block_ids,
            (std::vector<std::uint64_t>{18446744073709551615u, 9223372036854775808u,
                                        9223372036854775807u}));
}

TEST(Mooncake, TakesTheLargestLength) {
  const auto requests = requests_in(
      R"({"timestamp": 0, "input_length": 1099511627776, "output_length": 0, "hash_ids": []})");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].input_tokens, kMaxTokens);
}

/// A line that is good but for one field.
std::string line_with(const std::string& field, const std::string& value) {
  std::string line;
  for (const auto& [name, good] : {std::pair{"timestamp", "1"}, std::pair{"input_length", "2"},
                                   std::pair{"output_length", "3"}, std::pair{"hash_ids", "[4]"}}) {
    const std::string shown = name == field ? value : good;
    if (shown.empty()) continue;
    line += line.empty() ? "{" : ", ";
    line.append("\"").append(name).append("\": ").append(shown);
  }
  return line + "}";
}

TEST(Mooncake, NamesFileLineFieldAndValueOfABadField) {
  const std::vector<std::pair<std::string, std::vector<Bad>>> fields = {
      {"timestamp",
       {{"", "this field is missing"},
        {"-1", "-1: below zero"},
        {"1.5", "1.5E0: not a whole number below 2^64"},
        {"1e300", "1E300: not a whole number below 2^64"},
        {"9223372036854776", "9223372036854776: too large a time"},
        {"\"5\"", "\"5\": a whole number is wanted, not string"},
        {"null", "null: a whole number is wanted, not null"}}},
      {"input_length",
       {{"", "this field is missing"},
        {"-7", "-7: below zero"},
        {"1099511627777", "1099511627777: larger than 2^40 tokens"},
        {"9223372036854775808", "9223372036854775808: larger than 2^63 - 1"},
        {"2.0", "2E0: not a whole number below 2^64"},
        {"true", "true: a whole number is wanted, not bool"},
        {"[2]", "[2]: a whole number is wanted, not array"}}},
      {"output_length", {{"", "this field is missing"}, {"-7", "-7: below zero"}}},
      {"hash_ids", {{"", "this field is missing"}, {"5", "5: an array is wanted, not int64"}}},
  };
  const std::string good = line_with("", "") + "\n";
  for (const auto& [field, bads] : fields) {
    for (const auto& bad : bads) {
      EXPECT_EQ(error_in(good + line_with(field, bad.line)), "t:2: " + field + ": " + bad.error);
    }
  }
}

TEST(Mooncake, NamesTheIdThatIsNone) {
  const std::vector<Bad> bads = {
      {"[1, -2]", "t:1: hash_ids[1]: -2: below zero"},
      {"[1.5]", "t:1: hash_ids[0]: 1.5E0: not a whole number below 2^64"},
      {"[1, 2, 18446744073709551616]",
       "t:1: hash_ids[2]: 1.8446744073709552E19: not a whole number below 2^64"},
      {"[[1]]", "t:1: hash_ids[0]: [1]: a whole number is wanted, not array"},
      {"[null]", "t:1: hash_ids[0]: null: a whole number is wanted, not null"},
  };
  for (const auto& bad : bads) EXPECT_EQ(error_in(line_with("hash_ids", bad.line)), bad.error);
}

TEST(Mooncake, LineThatStopsInTheMiddleIsAnErrorWhereverItStops) {
  const auto line = line_with("", "");
  for (std::size_t size = 1; size < line.size(); ++size) {
    const auto part = line.substr(0, size);
    auto content = line;
    EXPECT_EQ(error_in(content.append("\n").append(part)),
              "t:2: json: " + excerpt(part) + ": the line stops in the middle of its value");
  }
}

TEST(Mooncake, NoJsonIsAnErrorWithItsPlace) {
  const std::vector<Bad> bads = {
      {R"({"timestamp": NaN})", "no JSON at byte 15: syntax error"},
      {R"({"timestamp": Infinity})", "no JSON at byte 15: syntax error"},
      {R"({"timestamp": 1,})", "no JSON at byte 17: syntax error"},
      {R"({"timestamp": 1} {})", "no JSON at byte 18: extra data"},
      {R"([1])", "an object is wanted"},
      {R"(12)", "an object is wanted"},
  };
  for (const auto& bad : bads) {
    EXPECT_EQ(error_in(line_with("", "") + "\n" + bad.line),
              "t:2: json: " + bad.line + ": " + bad.error);
  }
}

TEST(Mooncake, FirstErrorEndsTheReading) {
  const auto content = line_with("timestamp", "-1") + "\n" + line_with("", "");
  auto reader = open_mooncake(TextSource::in_memory("t", content)).value();
  const auto first = error_text(reader->next());
  EXPECT_EQ(first, "t:1: timestamp: -1: below zero");
  EXPECT_EQ(error_text(reader->next()), first);
}

TEST(Mooncake, WritesWhatItReads) {
  const std::vector<Request> requests = {{0, 6758, 500, {0, 1, 18446744073709551615u}, 1},
                                         {1000, 0, 0, {}, 2}};
  const std::string lines = to_mooncake_line(requests[0]) + "\n" + to_mooncake_line(requests[1]);
  EXPECT_EQ(lines, R"({"timestamp": 0, "input_length": 6758, "output_length": 500, )"
                   R"("hash_ids": [0, 1, 18446744073709551615]})"
                   "\n"
                   R"({"timestamp": 1, "input_length": 0, "output_length": 0, "hash_ids": []})");
  EXPECT_EQ(requests_in(lines), requests);
}

}  // namespace

}  // namespace kvo::traces
