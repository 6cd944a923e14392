#include "traces/io/trace_error.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace kvo::traces {

namespace {

TEST(TraceError, TextIsOneLineOfPlaceFieldValueAndMessage) {
  EXPECT_EQ(error_at({"a.csv", 7}, "Tokens", "-1", "below zero").text(),
            "a.csv:7: Tokens: -1: below zero");
}

TEST(TraceError, TextLeavesOutWhatDoesNotApply) {
  EXPECT_EQ(error_at({"a.csv"}, {}, {}, "the file is empty").text(), "a.csv: the file is empty");
  EXPECT_EQ(error_at({"a.csv", 2}, "Tokens", {}, "missing").text(), "a.csv:2: Tokens: missing");
  EXPECT_EQ(error_at({}, "requests", "-1", "below zero").text(), "requests: -1: below zero");
}

TEST(TraceError, TextIsShortWhateverTheFileHolds) {
  const std::string long_text(5'000'000, 'z');
  const std::string text = error_at({long_text, 1}, long_text, long_text, "is unknown").text();
  EXPECT_LT(text.size(), 500U);
  EXPECT_TRUE(text.ends_with("zzz...: is unknown")) << text;
  EXPECT_EQ(error_at({"f", 1}, "a\x1b\n", {}, "x").text(), "f:1: a\\x1b\\x0a: x");
}

TEST(TraceError, ExcerptStaysOnOneLineAndShort) {
  EXPECT_EQ(excerpt("a\nb\x1b\xff"), "a\\x0ab\\x1b\\xff");
  EXPECT_EQ(excerpt(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(excerpt(std::string(61, 'x')), std::string(60, 'x') + "...");
}

TEST(TraceError, ValueOfAFailedResultThrowsItsText) {
  const TraceResult<int> failed = error_at({"f", 1}, "x", "y", "z");
  try {
    (void)failed.value();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "f:1: x: y: z");
  }
}

}  // namespace

}  // namespace kvo::traces
