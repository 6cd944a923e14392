// tools/reports/console.hpp: what commands print with: lines, colours, tables; also quantities,
// progress and JSON, which have headers of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/reports/json_file.hpp"
#include "tools/reports/progress.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {

/// Standard output takes no more: a full disk, a closed pipe.
class OutputFailed : public std::runtime_error {
 public:
  explicit OutputFailed(int code);
  /// The reader has closed the pipe, which is no fault: `kvoracle list | head`.
  [[nodiscard]] bool reader_is_gone() const;

 private:
  int code_;
};

/// Writes to standard output. Everything a command prints there goes through here.
/// Throws OutputFailed.
void print_out(std::string_view text);
/// Standard output, where a file's name is expected.
inline constexpr std::string_view kStandardOutput = "-";
/// Writes `text` to `path`, whole or not at all, or to standard output for "-".
/// Throws FileError when the file cannot be written.
void write_text_file(const std::string& path, std::string_view text);
/// Sends on what is still buffered. Throws OutputFailed, also for a failure of another writer.
void finish_output();
/// Longest line on standard error, in bytes; "..." follows a longer one.
inline constexpr std::size_t kMostErrorBytes = 2000;
/// Writes "kvoracle: " and one line to standard error, printable and cut.
void print_error(std::string_view line);
/// Writes one line to standard error, printable and cut. Like print_error it never fails, for
/// an error could not be reported.
void print_note(std::string_view line);
/// Text of files and subjects, fit for a terminal: what steers one, and what is no UTF-8, stands as
/// \x1b does here. No more than `most` bytes, and then "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 1000);
/// The same, whole: commands that repeat something are of no use when they are cut.
[[nodiscard]] std::string printable_command(std::string_view text);
/// What stands before such a command.
inline constexpr std::string_view kRepeatWith = "repeat with: ";
/// A word as a shell reads it, printable.
[[nodiscard]] std::string shell_word(std::string_view word);

[[nodiscard]] bool is_terminal(std::FILE* stream);
/// Columns of the terminal behind `stream`; 80 if there is none.
[[nodiscard]] std::size_t terminal_columns(std::FILE* stream);

enum class Colour { kGreen, kRed, kBold };

enum class ColourMode : std::uint8_t { kAuto, kAlways, kNever };
/// For the whole program; kAuto at first.
void set_colour_mode(ColourMode mode);

/// Colours text when its stream is a terminal that can, and else leaves it alone. NO_COLOR in the
/// environment says no (https://no-color.org), a colour mode is stronger.
class Paint {
 public:
  explicit Paint(std::FILE* stream);
  [[nodiscard]] std::string operator()(Colour colour, std::string_view text) const;

 private:
  bool on_;
};

/// Columns that UTF-8 text takes on a terminal; colours take none.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Words in lines of at most `columns`, with no LF at the end. The first line begins at column
/// `at`; the others are indented. A word that is longer than a line stands alone.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent,
                                  std::size_t at = 0);

/// Where nothing is too wide.
inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();
/// Columns of the terminal behind standard output; kAnyWidth if there is none.
[[nodiscard]] std::size_t output_columns();

/// Rows of cells under titles, in columns as wide as their widest cell, two blanks apart.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;  ///< kRight for numbers
    int spare = 0;               ///< above 0: may be left out for want of room, the largest first
    bool wraps = false;          ///< only the last one: text that may take several lines
  };

  explicit Table(std::vector<Column> columns);
  /// Cells from the left; missing ones are blank. Requires no more cells than columns.
  void row(std::vector<std::string> cells);
  /// Every line is indented by `indent` and ended by LF. Columns without any text are left out, and
  /// so is the line of titles when all are empty. Lines that would be longer than `columns` lose
  /// spare columns, which a last line names, and break in a column that wraps.
  [[nodiscard]] std::string text(std::size_t indent = 0, std::size_t columns = kAnyWidth) const;

 private:
  using Widths = std::vector<std::size_t>;  // 0: left out
  [[nodiscard]] Widths widths() const;
  [[nodiscard]] std::string leave_out_spare(Widths& widths, std::size_t room) const;
  [[nodiscard]] std::string line(const std::vector<std::string>& cells, const Widths& widths,
                                 std::size_t indent, std::size_t columns) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A column of text, and one of numbers, for tables.
[[nodiscard]] inline Table::Column column(std::string title, int spare = 0) {
  return {std::move(title), Table::Align::kLeft, spare};
}
[[nodiscard]] inline Table::Column numbers(std::string title, int spare = 0) {
  return {std::move(title), Table::Align::kRight, spare};
}

}  // namespace kvo::tools
