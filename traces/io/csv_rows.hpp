// traces/io/csv_rows.hpp: the rows of a CSV file (RFC 4180), one by one; the only user of libcsv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/io/text_source.hpp"
#include "traces/io/trace_error.hpp"

struct csv_parser;

namespace kvo::traces {

/// Rows of cells. Blank lines are passed over, blanks around a cell without quotes are dropped.
class CsvRows {
 public:
  explicit CsvRows(TextSource source, std::size_t max_row_bytes = kMaxLineBytes);

  /// The cells of the next row, valid until the next call; nothing at the end of the file.
  /// Errors   as TextSource::next_line; a quotation mark where none may stand or that is never
  ///          closed; a carriage return inside a line; a row of more than max_row_bytes bytes.
  ///          After an error the file must not be read on.
  [[nodiscard]] TraceResult<std::optional<std::span<const std::string>>> next_row();

  /// Where the row given last began: a cell in quotes may span lines.
  [[nodiscard]] Place place() const { return {source_.name(), row_line_}; }

 private:
  struct FreeParser {
    void operator()(csv_parser* parser) const;
  };

  TraceResult<void> feed(std::string_view line);
  void add_cell(std::string_view text);

  TextSource source_;
  std::unique_ptr<csv_parser, FreeParser> parser_;
  std::vector<std::string> cells_;  // more than cell_count_ while a short row follows a long one
  std::size_t cell_count_ = 0;
  std::size_t ended_rows_ = 0;
  std::size_t row_bytes_ = 0;
  std::size_t max_row_bytes_;
  std::uint64_t row_line_ = 0;
};

/// Rows under a header, with the wanted columns found by name, in any order.
class CsvTable {
 public:
  /// Reads the header. Unknown columns are allowed.
  /// Errors   as CsvRows::next_row; an empty file; a wanted column that is missing or there twice
  [[nodiscard]] static TraceResult<CsvTable> open(TextSource source,
                                                  std::span<const std::string_view> wanted);

  /// Goes to the next row. Returns whether there is one.
  /// Errors   as CsvRows::next_row; a row with more cells than the header
  [[nodiscard]] TraceResult<bool> next();

  /// The cell of this row in the wanted column number `index`; empty if the row is too short.
  [[nodiscard]] std::string_view cell(std::size_t index) const;

  /// Where this row began.
  [[nodiscard]] Place place() const { return rows_.place(); }

 private:
  CsvTable(CsvRows rows, std::vector<std::size_t> columns, std::size_t header_cells);

  CsvRows rows_;
  std::vector<std::size_t> columns_;  // of the wanted ones, where in a row
  std::size_t header_cells_;
  std::span<const std::string> row_;
};

}  // namespace kvo::traces
