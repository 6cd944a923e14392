#include "tools/reports/console.hpp"

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

TEST(Table, LeavesOutSpareColumnsWhereTheyDoNotFit) {
  Table table({{"subject"},
               {"cases", Table::Align::kRight, 1},
               {"failed", Table::Align::kRight},
               {"time", Table::Align::kRight, 2}});
  table.row({"layered", "1,000", "3", "1.5x"});
  const std::string whole =
      "subject  cases  failed  time\n"
      "layered  1,000       3  1.5x\n";
  EXPECT_EQ(table.text(), whole);
  EXPECT_EQ(table.text(0, 28), whole);
  EXPECT_EQ(table.text(0, 27),
            "subject  cases  failed\n"
            "layered  1,000       3\n"
            "(left out for want of room:\n"
            "time)\n");
  const std::string least =
      "subject  failed\n"
      "layered       3\n"
      "(left out for want of room: time, cases)\n";
  EXPECT_EQ(Table(table).text(0, 21).substr(0, 32), least.substr(0, 32));
  EXPECT_EQ(table.text(0, 1).substr(0, 32), least.substr(0, 32)) << "what matters stays";
}

TEST(Table, WrapsTextInItsLastColumn) {
  Table table({{""}, {.title = "", .wraps = true}});
  table.row({"name", "what it is and what it does for you"});
  table.row({"other", "short"});
  EXPECT_EQ(table.text(2),
            "  name   what it is and what it does for you\n"
            "  other  short\n");
  EXPECT_EQ(table.text(2, 34),
            "  name   what it is and what it\n"
            "         does for you\n"
            "  other  short\n");
  EXPECT_EQ(table.text(2, 26),
            "  name\n"
            "      what it is and what\n"
            "      it does for you\n"
            "  other  short\n");
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

TEST(Printable, EscapesWhatSteersATerminalAndWhatIsNoText) {
  EXPECT_EQ(printable("a\x1b[2J\n\x7f"), "a\\x1b[2J\\x0a\\x7f");
  EXPECT_EQ(printable("caf\xC3\xA9 \xF0\x9F\x98\x80"), "caf\xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\xc2\\x9b"
            "2J");  // CSI of eight bits
  EXPECT_EQ(printable("\xC3"), "\\xc3");
  EXPECT_EQ(printable("\xFF\x80"), "\\xff\\x80");
}

TEST(Printable, IsCutBetweenCharacters) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("abc\x1b", 4), "abc...");
  EXPECT_EQ(printable(std::string(1U << 20U, 'x')).size(), 1003U);
  EXPECT_EQ(printable_command(std::string(1U << 20U, 'x')).size(), 1U << 20U) << "it is to be run";
}

TEST(ShellWord, IsReadBackByAShell) {
  EXPECT_EQ(shell_word("a/b-1.jsonl"), "a/b-1.jsonl");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("a\\'\x1b"), "$'a\\\\\\'\\x1b'");
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
