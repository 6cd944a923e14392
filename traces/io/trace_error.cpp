#include "traces/io/trace_error.hpp"

#include <cstddef>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace kvo::traces {

namespace {

constexpr std::size_t kExcerptBytes = 60;
constexpr std::size_t kFileBytes = 300;

// What is told of a long name is its end.
std::string shown_file(const std::string& file) {
  return file.size() > kFileBytes ? "..." + file.substr(file.size() - kFileBytes) : file;
}

}  // namespace

std::string TraceError::text() const {
  std::string place = shown_file(file);
  if (line != 0) place += (place.empty() ? "line " : ":") + std::to_string(line);
  std::string all;
  for (const auto& part : {place, field, value, message}) {
    if (part.empty()) continue;
    if (!all.empty()) all += ": ";
    all += part;
  }
  return all;
}

void throw_exception_from_error(const TraceError& error, const boost::source_location&) {
  throw std::runtime_error(error.text());
}

TraceError error_at(Place place, std::string_view field, std::string_view value,
                    std::string_view message) {
  return TraceError{.file = std::string(place.file),
                    .line = place.line,
                    .field = excerpt(field),
                    .value = excerpt(value),
                    .message = std::string(message)};
}

TraceError system_error(std::string_view file, std::string_view doing, int code) {
  return error_at({file}, {}, {},
                  fmt::format("{}: {}", doing, std::generic_category().message(code)));
}

std::string excerpt(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kExcerptBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  if (text.size() > kExcerptBytes) shown += "...";
  return shown;
}

}  // namespace kvo::traces
