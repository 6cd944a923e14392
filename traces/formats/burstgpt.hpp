// traces/formats/burstgpt.hpp: the BurstGPT traces, CSV.
//
// Source   Wang et al., BurstGPT; github.com/HPMLL/BurstGPT
// Columns  Timestamp        seconds, whole in the older files, with a fraction in the newer
//          Request tokens   tokens
//          Response tokens  tokens; 0 is a request that failed
//          others (Session ID, Elapsed time, Model, Total tokens, Log Type) are not used
#pragma once

#include <memory>
#include <string_view>

#include "traces/formats/reader.hpp"
#include "traces/io/text_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// Whether a file that begins with this line is one.
[[nodiscard]] bool looks_like_burstgpt(std::string_view first_line);

/// Begins to read a trace. Failed requests are counted and passed over. Arrivals are the file's
/// own: a later part of the trace does not begin at 0. There are no block ids.
[[nodiscard]] TraceResult<std::unique_ptr<Reader>> open_burstgpt(TextSource source);

}  // namespace kvo::traces
