// traces/io/text_source.hpp: the lines of a plain or gzip file, one by one, in constant memory.
//
// Knows nothing of requests: trace readers and operation logs are both read through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/io/byte_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// Longest line that is read, in bytes; a longer one is an error, not a reason to take more memory.
inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

/// A file as lines. Lines end with LF or CR LF, the last one also with the file; a byte order mark
/// (UTF-8) before the first line is passed over.
class TextSource {
 public:
  /// Opens a file or pipe; "-" is standard input.
  /// Errors   as open_bytes
  [[nodiscard]] static TraceResult<TextSource> open(const std::string& path,
                                                    std::size_t max_line_bytes = kMaxLineBytes);

  /// Reads `memory`, which must outlive the source, under the given name.
  [[nodiscard]] static TextSource in_memory(std::string name, std::string_view memory,
                                            std::size_t max_line_bytes = kMaxLineBytes);

  /// The next line without its end, valid until the next call; nothing at the end of the file.
  /// Errors   as ByteSource::read; a line of more than max_line_bytes bytes. The line of the error
  ///          is the one that could not be read; a later call gives the same error.
  [[nodiscard]] TraceResult<std::optional<std::string_view>> next_line();

  /// The line that next_line() will give next, valid until the next call of next_line().
  /// Errors   as next_line
  [[nodiscard]] TraceResult<std::optional<std::string_view>> peek_line();

  /// Passes over lines of blanks: a file may hold nothing else for long.
  /// Errors   as ByteSource::read
  [[nodiscard]] TraceResult<void> pass_blank_lines();

  /// Number of the line that next_line() gave last, counted from 1; 0 before the first.
  [[nodiscard]] std::uint64_t line_number() const { return line_number_; }

  /// The name given at the beginning, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The line given last.
  [[nodiscard]] Place place() const { return {name_, line_number_}; }

 private:
  TextSource(std::string name, std::unique_ptr<ByteSource> bytes, std::size_t max_line_bytes);

  struct Line {
    std::string_view text;
    std::size_t size_with_end;
  };
  TraceResult<std::optional<Line>> find_line();
  TraceResult<std::size_t> read_more();
  [[nodiscard]] std::string_view without_marks(std::string_view line) const;

  std::string name_;
  std::unique_ptr<ByteSource> bytes_;
  std::size_t max_line_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // buffer_[begin_, end_) has been read and not been given
  std::size_t end_ = 0;
  std::uint64_t line_number_ = 0;
  std::optional<TraceError> failure_;
};

}  // namespace kvo::traces
