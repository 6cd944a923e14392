#include "traces/io/text_source.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "traces/io/kept_input.hpp"

namespace kvo::traces {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

TextSource::TextSource(std::string name, std::unique_ptr<ByteSource> bytes,
                       std::size_t max_line_bytes)
    : name_(std::move(name)), bytes_(std::move(bytes)), max_line_bytes_(max_line_bytes) {}

TraceResult<TextSource> TextSource::open(const std::string& path, std::size_t max_line_bytes) {
  auto bytes = open_bytes(path);
  if (!bytes) return bytes.error();
  return TextSource(shown_name(path), std::move(*bytes), max_line_bytes);
}

TextSource TextSource::in_memory(std::string name, std::string_view memory,
                                 std::size_t max_line_bytes) {
  auto bytes = bytes_in_memory(name, memory);
  return {std::move(name), std::move(bytes), max_line_bytes};
}

TraceResult<std::optional<std::string_view>> TextSource::next_line() {
  const auto line = find_line();
  if (!line) return line.error();
  if (!*line) return std::optional<std::string_view>();
  begin_ += (*line)->size_with_end;
  ++line_number_;
  return std::optional((*line)->text);
}

TraceResult<std::optional<std::string_view>> TextSource::peek_line() {
  const auto line = find_line();
  if (!line) return line.error();
  if (!*line) return std::optional<std::string_view>();
  return std::optional((*line)->text);
}

TraceResult<void> TextSource::pass_blank_lines() {
  if (failure_) return *failure_;
  std::size_t blanks = 0;  // of the line that begins at begin_
  while (blanks <= max_line_bytes_) {
    if (begin_ + blanks == end_) {
      const auto got = read_more();
      if (!got) return got.error();
      if (*got == 0) {
        begin_ = end_;
        return {};
      }
    }
    const std::string_view rest(buffer_.data() + begin_ + blanks, end_ - begin_ - blanks);
    if (rest.front() == '\n') {
      begin_ += blanks + 1;
      blanks = 0;
      ++line_number_;
    } else if (rest.front() == ' ' || rest.front() == '\t' || rest.front() == '\r') {
      ++blanks;
    } else if (line_number_ == 0 && blanks == 0 && rest.starts_with(kByteOrderMark)) {
      blanks = kByteOrderMark.size();
    } else {
      return {};
    }
  }
  return {};
}

TraceResult<std::optional<TextSource::Line>> TextSource::find_line() {
  if (failure_) return *failure_;
  std::size_t searched = 0;
  for (;;) {
    const char* first = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    const void* end =
        size == searched ? nullptr : std::memchr(first + searched, '\n', size - searched);
    if (end != nullptr) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - first);
      if (length <= max_line_bytes_) {
        return std::optional(Line{without_marks({first, length}), length + 1});
      }
    }
    if (size > max_line_bytes_) {
      failure_ = error_at({name_, line_number_ + 1}, "line", {first, size},
                          fmt::format("longer than {} bytes", max_line_bytes_));
      return *failure_;
    }
    searched = size;
    const auto got = read_more();
    if (!got) return got.error();
    if (*got != 0) continue;
    if (size == 0) return std::optional<Line>();
    return std::optional(Line{without_marks({buffer_.data() + begin_, size}), size});
  }
}

TraceResult<std::size_t> TextSource::read_more() {
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kChunkBytes) {
    buffer_.resize(std::max(buffer_.size() * 2, end_ + kChunkBytes));
  }
  const auto got = bytes_->read(std::span(buffer_).subspan(end_, kChunkBytes));
  if (!got) {
    failure_ = got.error();
    failure_->line = line_number_ + 1;
    return *failure_;
  }
  end_ += *got;
  return *got;
}

std::string_view TextSource::without_marks(std::string_view line) const {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line_number_ == 0 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  return line;
}

}  // namespace kvo::traces
