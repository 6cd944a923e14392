#include "tools/reports/console.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <limits>
#include <system_error>
#include <utility>

#include <boost/algorithm/string/replace.hpp>
#include <boost/nowide/utf/utf.hpp>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reference/contract/values/check.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/usage.hpp"
#include "traces/io/output_file.hpp"

namespace kvo::tools {
namespace {

ColourMode colour_mode = ColourMode::kAuto;  // NOLINT: one a program

// Bytes of the UTF-8 character that `text` begins with; 0 if it is none, or steers a terminal.
std::size_t character_bytes(std::string_view text) {
  namespace utf = boost::nowide::utf;
  const char* at = text.begin();
  const auto point = utf::utf_traits<char>::decode(at, text.end());
  const bool controls = point < 0x20 || (point >= 0x7f && point < 0xA0);  // C0, DEL, C1 of ISO 6429
  return controls || !utf::is_valid_codepoint(point) ? 0
                                                     : static_cast<std::size_t>(at - text.begin());
}

std::string escaped(char c) {
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

std::string padded(const std::string& cell, std::size_t width, Table::Align align) {
  const std::string blanks(width - display_width(cell), ' ');
  return align == Table::Align::kRight ? blanks + cell : cell + blanks;
}

// Columns are two blanks apart.
std::size_t line_width(const std::vector<std::size_t>& widths) {
  std::size_t width = 0;
  for (const std::size_t column : widths)
    if (column > 0) width += column + (width > 0 ? 2 : 0);
  return width;
}

}  // namespace

OutputFailed::OutputFailed(int code)
    : std::runtime_error(
          "cannot write standard output" +
          (code == 0 ? std::string() : ": " + std::generic_category().message(code))),
      code_(code) {}

bool OutputFailed::reader_is_gone() const {
  return code_ == EPIPE;
}

void print_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw OutputFailed(errno);
}

void write_text_file(const std::string& path, std::string_view text) {
  if (path == kStandardOutput) return print_out(text);
  auto file = must(traces::OutputFile::open(path));
  must(file.write(text));
  must(file.commit());
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw OutputFailed(errno);
}

void print_error(std::string_view line) {
  print_note(program_name() + ": " + std::string(line));
}

void print_note(std::string_view line) {
  const std::string text = printable(line, kMostErrorBytes) + "\n";
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string next = bytes > 0 ? std::string(text.substr(0, bytes)) : escaped(text.front());
    if (shown.size() + next.size() > most) return shown + "...";
    shown += next;
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return shown;
}

std::string printable_command(std::string_view text) {
  return printable(text, std::numeric_limits<std::size_t>::max());
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "@%+=:,./-_";
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  std::string text(word);
  if (plain) return text;
  if (printable_command(word) == word)
    return "'" + boost::replace_all_copy(text, "'", "'\\''") + "'";
  boost::replace_all(text, "\\", "\\\\");
  boost::replace_all(text, "'", "\\'");
  return "$'" + printable_command(text) + "'";
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

std::size_t terminal_columns(std::FILE* stream) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsual;
}

std::size_t output_columns() {
  return is_terminal(stdout) ? terminal_columns(stdout) : kAnyWidth;
}

void set_colour_mode(ColourMode mode) {
  colour_mode = mode;
}

Paint::Paint(std::FILE* stream) : on_(colour_mode == ColourMode::kAlways) {
  if (colour_mode != ColourMode::kAuto || !is_terminal(stream)) return;
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  on_ = (refused == nullptr || *refused == '\0') && !dumb;
}

std::string Paint::operator()(Colour colour, std::string_view text) const {
  static constexpr std::array<std::string_view, 3> kCodes{"32", "31", "1"};
  if (!on_) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes.at(static_cast<std::size_t>(colour)), text);
}

std::size_t display_width(std::string_view text) {
  static const locale_t kUtf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = uselocale(kUtf8);
  std::size_t width = 0;
  while (!text.empty()) {
    if (text.starts_with("\x1b[")) {
      text.remove_prefix(std::min(text.find('m'), text.size() - 1) + 1);
      continue;
    }
    wchar_t character = 0;
    std::mbstate_t state{};
    const std::size_t bytes = std::mbrtowc(&character, text.data(), text.size(), &state);
    const bool valid = bytes > 0 && bytes <= text.size();
    width += valid ? static_cast<std::size_t>(std::max(wcwidth(character), 0)) : 1;
    text.remove_prefix(valid ? bytes : 1);
  }
  uselocale(before);
  return width;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent,
                    std::size_t at) {
  std::string all;
  bool begun = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", i), text.size());
    const std::string_view word = text.substr(i, end - i);
    const std::size_t width = display_width(word);
    if (begun && at + 1 + width > columns) {
      all += "\n" + std::string(indent, ' ');
      at = indent;
      begun = false;
    }
    if (!word.empty()) {
      all += (begun ? " " : "") + std::string(word);
      at += width + (begun ? 1 : 0);
      begun = true;
    }
    i = end + 1;
  }
  return all;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<std::string> cells) {
  KVO_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

Table::Widths Table::widths() const {
  Widths widths(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
    if (widths[c] > 0) widths[c] = std::max(widths[c], display_width(columns_[c].title));
  }
  return widths;
}

std::string Table::leave_out_spare(Widths& widths, std::size_t room) const {
  std::string names;
  while (line_width(widths) > room) {
    std::size_t most = 0;
    for (std::size_t c = 0; c < widths.size(); ++c)
      if (widths[c] > 0 && (widths[most] == 0 || columns_[c].spare > columns_[most].spare))
        most = c;
    if (columns_[most].spare == 0) break;
    widths[most] = 0;
    names += (names.empty() ? "" : ", ") + columns_[most].title;
  }
  return names;
}

std::string Table::line(const std::vector<std::string>& cells, const Widths& widths,
                        std::size_t indent, std::size_t columns) const {
  constexpr std::size_t kLeastText = 24;
  std::string line(indent, ' ');
  std::size_t at = indent;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (widths[c] == 0) continue;
    if (columns_[c].wraps && at + display_width(cells[c]) > columns) {
      const bool below = at + kLeastText > columns;
      const std::size_t from = below ? indent + 4 : at;
      if (below)
        line = line.substr(0, line.find_last_not_of(' ') + 1) + "\n" + std::string(from, ' ');
      line += wrapped(cells[c], columns, from, from);
    } else {
      line += padded(cells[c], widths[c], columns_[c].align) + "  ";
    }
    at += widths[c] + 2;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Table::text(std::size_t indent, std::size_t columns) const {
  Widths shown = widths();
  const std::size_t room = columns - std::min(indent, columns);
  const bool wraps = !columns_.empty() && columns_.back().wraps;
  const std::string left_out = wraps ? std::string() : leave_out_spare(shown, room);
  std::vector<std::string> titles;
  bool titled = false;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    titles.push_back(columns_[c].title);
    titled = titled || (shown[c] > 0 && !columns_[c].title.empty());
  }
  std::string all = titled ? line(titles, shown, indent, columns) : "";
  for (const auto& row : rows_) all += line(row, shown, indent, columns);
  if (!left_out.empty())
    all += wrapped("(left out for want of room: " + left_out + ")", columns, 0) + "\n";
  return all;
}

}  // namespace kvo::tools
