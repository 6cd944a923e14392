// traces/formats/azure.hpp: the Azure LLM inference traces of 2023 and 2024, CSV.
//
// Source   github.com/Azure/AzurePublicDataset; Patel et al., Splitwise, ISCA 2024
// Columns  TIMESTAMP        2023-11-16 18:17:03.9799600, or with a time zone: ...+00:00
//          ContextTokens    tokens
//          GeneratedTokens  tokens
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "traces/formats/reader.hpp"
#include "traces/io/text_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// Whether a file that begins with this line is one.
[[nodiscard]] bool looks_like_azure(std::string_view first_line);

/// Begins to read a trace. Arrivals count from the first row, so a row stamped before it arrives
/// below zero. There are no block ids.
[[nodiscard]] TraceResult<std::unique_ptr<Reader>> open_azure(TextSource source);

/// Nanoseconds from 1970 to a stamp `YYYY-MM-DD HH:MM:SS[.digits][zone]` with up to nine digits, a
/// blank or T between date and time, and Z or +HH:MM or -HH:MM as zone (none: UTC). Nothing if the
/// text is no such stamp, names a day or an hour that does not exist, or lies outside 1970 to 2199.
[[nodiscard]] std::optional<std::int64_t> parse_stamp_ns(std::string_view text);

}  // namespace kvo::traces
