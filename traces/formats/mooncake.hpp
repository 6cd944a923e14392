// traces/formats/mooncake.hpp: Mooncake's traces, one JSON object a line.
//
// Source   Mooncake, FAST'25, FAST25-release/traces in github.com/kvcache-ai/Mooncake
// Fields   timestamp      milliseconds since the trace began
//          input_length   tokens
//          output_length  tokens
//          hash_ids       one unsigned 64-bit id a prefix block
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traces/formats/reader.hpp"
#include "traces/formats/request.hpp"
#include "traces/io/text_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// Whether a file that begins with this line is one: an object with one of the four fields.
[[nodiscard]] bool looks_like_mooncake(std::string_view first_line);

/// Begins to read a trace. Members of other names are passed over.
[[nodiscard]] TraceResult<std::unique_ptr<Reader>> open_mooncake(TextSource source);

/// One line of a trace, without its end. `line` is not written, microseconds below a millisecond
/// are cut off.
[[nodiscard]] std::string to_mooncake_line(const Request& request);

}  // namespace kvo::traces
