#include "tools/usage.hpp"

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
               "unknown contract 'layred'; did you mean 'layered'? There are: layered, provider, "
               "positional, block_pool");
  EXPECT_STREQ(unknown_word("contract", "x", kKnown).what(),
               "unknown contract 'x'. There are: layered, provider, positional, block_pool");
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
