#include "traces/io/csv_rows.hpp"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::error_text;
using Cells = std::vector<std::string>;

struct Rows {
  std::vector<Cells> rows;
  std::vector<std::uint64_t> lines;
  std::string error;
};

Rows rows_in(std::string_view text, std::size_t max_row_bytes = kMaxLineBytes) {
  CsvRows source(TextSource::in_memory("m", text), max_row_bytes);
  Rows all;
  for (;;) {
    const auto row = source.next_row();
    all.error = error_text(row);
    if (!row || !*row) return all;
    all.rows.emplace_back((*row)->begin(), (*row)->end());
    all.lines.push_back(source.place().line);
  }
}

TEST(CsvRows, GivesCells) {
  EXPECT_EQ(rows_in("a,b\r\n1,\n,2\n3").rows,
            (std::vector<Cells>{{"a", "b"}, {"1", ""}, {"", "2"}, {"3"}}));
}

TEST(CsvRows, DropsBlanksAroundCellsWithoutQuotes) {
  EXPECT_EQ(rows_in(" a ,\" b \"\n").rows, (std::vector<Cells>{{"a", " b "}}));
}

TEST(CsvRows, UnderstandsQuotes) {
  EXPECT_EQ(rows_in("\"a,b\",\"say \"\"hi\"\"\"\n").rows,
            (std::vector<Cells>{{"a,b", "say \"hi\""}}));
}

TEST(CsvRows, KnowsWhereARowBeganThatSpansLines) {
  const auto all = rows_in("a\n\"b\n\nc\",d\n\ne\n");
  EXPECT_EQ(all.rows, (std::vector<Cells>{{"a"}, {"b\n\nc", "d"}, {"e"}}));
  EXPECT_EQ(all.lines, (std::vector<std::uint64_t>{1, 2, 6}));
}

TEST(CsvRows, PassesOverBlankLines) {
  EXPECT_EQ(rows_in("\n  \na\n\t\n").rows, (std::vector<Cells>{{"a"}}));
}

TEST(CsvRows, QuotationMarkInTheWrongPlaceIsAnError) {
  EXPECT_EQ(rows_in("a\nb\"c,d\n").error, "m:2: row: b\"c,d: a quotation mark in the wrong place");
  EXPECT_EQ(rows_in("\"a\"b\n").error, "m:1: row: \"a\"b: a quotation mark in the wrong place");
}

TEST(CsvRows, QuotationMarkThatIsNeverClosedIsAnError) {
  EXPECT_EQ(rows_in("a\nx,\"b\nc\n").error, "m:2: row: x: the file ends within quotation marks");
}

TEST(CsvRows, RowOverTheLimitIsAnError) {
  EXPECT_EQ(rows_in("\"ab\ncd\nef\n", 8).error,
            "m:1: row: ef: longer than 8 bytes; a quotation mark may be missing");
}

TEST(CsvRows, CarriageReturnWithinALineIsAnError) {
  EXPECT_EQ(rows_in("a\rb\n").error, "m:1: row: a\\x0db: a carriage return within the line");
}

TEST(CsvRows, NulIsABytelikeAnyOther) {
  EXPECT_EQ(rows_in(std::string_view("a\0b\n", 4)).rows,
            (std::vector<Cells>{{std::string("a\0b", 3)}}));
}

constexpr std::array<std::string_view, 2> kWanted{"one", "two"};

std::string open_error(std::string_view text) {
  return error_text(CsvTable::open(TextSource::in_memory("m", text), kWanted));
}

TEST(CsvTable, FindsColumnsByName) {
  auto table = CsvTable::open(TextSource::in_memory("m", "x,two,one\n1,2,3\n4\n"), kWanted);
  ASSERT_EQ(error_text(table), "no error");
  ASSERT_TRUE(table->next().value());
  EXPECT_EQ(table->cell(0), "3");
  EXPECT_EQ(table->cell(1), "2");
  ASSERT_TRUE(table->next().value());
  EXPECT_EQ(table->cell(0), "");
  EXPECT_EQ(table->place().line, 3u);
  EXPECT_FALSE(table->next().value());
}

TEST(CsvTable, HeaderMustHaveEachWantedColumnOnce) {
  EXPECT_EQ(open_error("one,x\n"), "m:1: two: this column is missing");
  EXPECT_EQ(open_error("one,two,one\n"), "m:1: one: this column is there twice");
  EXPECT_EQ(open_error("\n"), "m: the file is empty; a header is missing");
}

TEST(CsvTable, RowWiderThanItsHeaderIsAnError) {
  auto table = CsvTable::open(TextSource::in_memory("m", "one,two\n1,2,3\n"), kWanted);
  EXPECT_EQ(error_text(table->next()), "m:2: row: 3: 3 cells under a header of 2");
}

}  // namespace

}  // namespace kvo::traces
