// traces/io/standard_input.hpp: standard input, kept so that it can be read again.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traces/io/byte_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// What stands for standard input where a file to read is named.
inline constexpr std::string_view kStandardInput = "-";
/// Most that is kept of it, in bytes as they come, gzip packed.
inline constexpr std::size_t kMostStandardInput = std::size_t{1} << 30;

/// What messages call a file: its path, or "standard input".
[[nodiscard]] std::string shown_name(const std::string& path);

/// Reads standard input to its end, at the first call. From then on this process, and those that it
/// forks, can open it as often as they like. To be called before a fork.
/// Errors   the system refuses to read; more than kMostStandardInput. Each call gives the same.
[[nodiscard]] TraceResult<void> keep_standard_input();

/// The bytes of standard input from the beginning, as they came. Keeps it first.
/// Errors   as keep_standard_input
[[nodiscard]] TraceResult<std::unique_ptr<ByteSource>> open_standard_input();

}  // namespace kvo::traces
