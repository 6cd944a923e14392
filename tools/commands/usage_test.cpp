#include "tools/commands/usage.hpp"

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kvo::tools {
namespace {

const std::vector<std::string> kKnown{"layered", "provider", "positional", "block_pool"};

TEST(EditDistance, CountsChangedAddedMissingAndSwappedLetters) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("provider", "provider"), 0U);
  EXPECT_EQ(edit_distance("provder", "provider"), 1U);
  EXPECT_EQ(edit_distance("porvider", "provider"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(ClosestWord, IsNothingForAnotherWord) {
  EXPECT_EQ(closest_word("provder", kKnown), "provider");
  EXPECT_EQ(closest_word("posit", kKnown), "positional");
  EXPECT_EQ(closest_word("xyz", kKnown), "");
  EXPECT_EQ(closest_word("provider", {}), "");
}

TEST(UnknownWord, NamesWhatThereIs) {
  EXPECT_STREQ(unknown_word("contract", "layred", kKnown).what(),
               "unknown contract 'layred'; did you mean 'layered'?");
  EXPECT_STREQ(unknown_word("contract", "x", kKnown).what(),
               "unknown contract 'x'. There are: layered, provider, positional, block_pool");
}

TEST(UnknownWord, NamesFewOfMany) {
  std::vector<std::string> many(300);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = "name" + std::to_string(i);
  EXPECT_STREQ(unknown_word("law", "x", std::span(many).first(2)).what(),
               "unknown law 'x'. There are: name0, name1");
  const std::string text = unknown_word("contract", "nane7" + std::string(5'000, 'x'), many).what();
  EXPECT_LT(text.size(), 200U) << text;
  EXPECT_TRUE(text.ends_with(", ... (300; kvoracle list contracts)")) << text;
  EXPECT_NE(std::string(unknown_word("contract", "nane7", many).what()).find("mean 'name7'"),
            std::string::npos);
}

TEST(Must, GivesTheValueOrThrowsTheErrorsText) {
  EXPECT_EQ(must(traces::TraceResult<int>(7)), 7);
  must(traces::TraceResult<void>());
  try {
    must(traces::TraceResult<int>(traces::error_at({"a.csv", 3}, "tokens", "x", "is no number")));
    FAIL() << "nothing was thrown";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "a.csv:3: tokens: x: is no number");
  }
}

}  // namespace
}  // namespace kvo::tools
