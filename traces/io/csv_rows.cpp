#include "traces/io/csv_rows.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <csv.h>
#include <fmt/format.h>

namespace kvo::traces {

void CsvRows::FreeParser::operator()(csv_parser* parser) const {
  csv_free(parser);
  delete parser;
}

CsvRows::CsvRows(TextSource source, std::size_t max_row_bytes)
    : source_(std::move(source)), parser_(new csv_parser{}), max_row_bytes_(max_row_bytes) {
  if (csv_init(parser_.get(), CSV_STRICT) != 0) throw std::bad_alloc();
}

TraceResult<std::optional<std::span<const std::string>>> CsvRows::next_row() {
  cell_count_ = 0;
  ended_rows_ = 0;
  row_bytes_ = 0;
  while (ended_rows_ == 0) {
    const bool in_row = row_bytes_ != 0;
    if (!in_row)
      if (const auto passed = source_.pass_blank_lines(); !passed) return passed.error();
    const auto line = source_.next_line();
    if (!line) return line.error();
    if (!*line) {
      if (in_row) {
        return error_at(place(), "row", cell_count_ == 0 ? "" : cells_[0],
                        "the file ends within quotation marks");
      }
      return std::optional<std::span<const std::string>>();
    }
    if (!in_row) row_line_ = source_.line_number();
    if (const auto fed = feed(**line); !fed) return fed.error();
  }
  return std::optional(std::span<const std::string>(cells_).first(cell_count_));
}

TraceResult<void> CsvRows::feed(std::string_view line) {
  row_bytes_ += line.size() + 1;
  if (row_bytes_ > max_row_bytes_) {
    return error_at(
        place(), "row", line,
        fmt::format("longer than {} bytes; a quotation mark may be missing", max_row_bytes_));
  }
  const auto on_cell = [](void* text, std::size_t size, void* self) {
    static_cast<CsvRows*>(self)->add_cell({static_cast<const char*>(text), size});
  };
  const auto on_row = [](int, void* self) { ++static_cast<CsvRows*>(self)->ended_rows_; };
  for (const std::string_view part : {line, std::string_view("\n")}) {
    if (ended_rows_ != 0) {
      return error_at(source_.place(), "row", line, "a carriage return within the line");
    }
    const std::size_t used =
        csv_parse(parser_.get(), part.data(), part.size(), on_cell, on_row, this);
    if (used != part.size()) {
      const int code = csv_error(parser_.get());
      return error_at(
          source_.place(), "row", line,
          code == CSV_EPARSE ? "a quotation mark in the wrong place" : csv_strerror(code));
    }
  }
  return {};
}

void CsvRows::add_cell(std::string_view text) {
  if (cell_count_ == cells_.size()) cells_.emplace_back();
  cells_[cell_count_++].assign(text);
}

CsvTable::CsvTable(CsvRows rows, std::vector<std::size_t> columns, std::size_t header_cells)
    : rows_(std::move(rows)), columns_(std::move(columns)), header_cells_(header_cells) {}

TraceResult<CsvTable> CsvTable::open(TextSource source, std::span<const std::string_view> wanted) {
  CsvRows rows(std::move(source));
  const auto header = rows.next_row();
  if (!header) return header.error();
  if (!*header) return error_at(rows.place(), {}, {}, "the file is empty; a header is missing");
  std::vector<std::size_t> columns;
  for (const auto name : wanted) {
    const auto& cells = **header;
    const auto found = std::find(cells.begin(), cells.end(), name);
    if (found == cells.end()) return error_at(rows.place(), name, {}, "this column is missing");
    if (std::find(found + 1, cells.end(), name) != cells.end()) {
      return error_at(rows.place(), name, {}, "this column is there twice");
    }
    columns.push_back(static_cast<std::size_t>(found - cells.begin()));
  }
  const std::size_t header_cells = (*header)->size();
  return CsvTable(std::move(rows), std::move(columns), header_cells);
}

TraceResult<bool> CsvTable::next() {
  const auto row = rows_.next_row();
  if (!row) return row.error();
  if (!*row) return false;
  row_ = **row;
  if (row_.size() > header_cells_) {
    return error_at(place(), "row", row_[header_cells_],
                    fmt::format("{} cells under a header of {}", row_.size(), header_cells_));
  }
  return true;
}

std::string_view CsvTable::cell(std::size_t index) const {
  const std::size_t column = columns_[index];
  return column < row_.size() ? std::string_view(row_[column]) : std::string_view();
}

}  // namespace kvo::traces
