#include "tools/console.hpp"

#include <cerrno>

#include <gtest/gtest.h>

#include "reference/contract/values/check.hpp"

namespace kvo::tools {
namespace {

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("\xC3\xA9"), 1U);            // e with an accent
  EXPECT_EQ(display_width("e\xCC\x81"), 1U);           // the same of two characters
  EXPECT_EQ(display_width("\xE6\xBC\xA2"), 2U);        // a Chinese character
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3U);  // colours
  EXPECT_EQ(display_width("\xE6"), 1U);                // cut off
  EXPECT_EQ(display_width("\x1b["), 0U);
}

TEST(Table, AlignsColumnsByWhatIsSeen) {
  Table table({{"subject"}, {"cases", Table::Align::kRight}, {"note"}});
  table.row({"layered.vector@reference", "1,000", "ok"});
  table.row({"\xC3\xA9", "7"});
  EXPECT_EQ(table.text(),
            "subject                   cases  note\n"
            "layered.vector@reference  1,000  ok\n"
            "\xC3\xA9                             7\n");
}

TEST(Table, LeavesOutEmptyColumnsAndTitles) {
  Table table({{""}, {"unused"}, {""}});
  table.row({"a", "", "b"});
  table.row({});
  EXPECT_EQ(table.text(2), "  a  b\n\n");
  EXPECT_EQ(Table({{"title"}}).text(), "");
}

TEST(Table, RefusesMoreCellsThanColumns) {
  Table table({{"one"}});
  EXPECT_THROW(table.row({"a", "b"}), CheckFailed);
}

TEST(Wrapped, BreaksLinesAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 100, 2), "one two three");
  EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrapped("one  two\nthree ", 9, 0, 4), "one\ntwo three");
  EXPECT_EQ(wrapped("longer than", 3, 0), "longer\nthan");
  EXPECT_EQ(wrapped("", 3, 0), "");
}

TEST(Paint, LeavesTextAloneWithoutATerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(is_terminal(file));
  EXPECT_EQ(terminal_columns(file), 80U);
  EXPECT_EQ(Paint(file)(Colour::kRed, "text"), "text");
  (void)std::fclose(file);
}

TEST(OutputFailed, TellsAFullDiskFromAReaderThatIsGone) {
  EXPECT_TRUE(OutputFailed(EPIPE).reader_is_gone());
  EXPECT_FALSE(OutputFailed(ENOSPC).reader_is_gone());
  EXPECT_STREQ(OutputFailed(ENOSPC).what(),
               "cannot write standard output: No space left on device");
}

}  // namespace
}  // namespace kvo::tools
