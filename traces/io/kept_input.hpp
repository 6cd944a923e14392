// traces/io/kept_input.hpp: what can be read only once, kept so that it can be read again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/io/byte_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// What stands for standard input where a file to read is named.
inline constexpr std::string_view kStandardInput = "-";
/// Most that is kept of an input, in bytes as they come, gzip packed.
inline constexpr std::size_t kMostKept = std::size_t{1} << 30;

/// What messages call a file: its path, or "standard input".
[[nodiscard]] std::string shown_name(const std::string& path);

/// Reads standard input or a pipe to its end, at the first call with that path. From then on this
/// process, and those that it forks, can open it as often as they like. To be called before a fork
/// and before a second thread. Does nothing for what can be read again anyway.
/// Errors   the system refuses to read; more than kMostKept. Each call gives the same.
[[nodiscard]] TraceResult<void> keep_input(const std::string& path);

/// Descriptors of what was kept: those that a forked process has to leave open.
[[nodiscard]] std::vector<int> kept_files();

/// The bytes of what was kept from the beginning, as they came; nothing if nothing was.
/// Errors   as keep_input gave
[[nodiscard]] std::optional<TraceResult<std::unique_ptr<ByteSource>>> open_kept(
    const std::string& path);

}  // namespace kvo::traces
