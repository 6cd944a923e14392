// traces/formats/formats.hpp: the trace formats there are, and how to open a file of any of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "traces/formats/reader.hpp"
#include "traces/io/text_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// One trace format.
struct Format {
  std::string_view name;         ///< as in options
  std::string_view description;  ///< for people, one line
  /// Whether a file that begins with this line may be one.
  bool (*detect)(std::string_view first_line);
  /// Begins to read. Errors: a header that is missing or lacks a column.
  TraceResult<std::unique_ptr<Reader>> (*open)(TextSource source);
};

/// All formats. A new one is its own file and one line here.
[[nodiscard]] std::span<const Format> formats();

/// Opens a trace. Without a `format` the first line that is not blank decides; the file's name
/// never does.
/// Errors   the file's (see TextSource::open); an empty file or one of no known format; an unknown
///          `format`; as Format::open
[[nodiscard]] TraceResult<std::unique_ptr<Reader>> open_trace(const std::string& path,
                                                              std::string_view format = {});

/// As open_trace, from lines that are already open.
[[nodiscard]] TraceResult<std::unique_ptr<Reader>> open_trace(TextSource source,
                                                              std::string_view format = {});

}  // namespace kvo::traces
