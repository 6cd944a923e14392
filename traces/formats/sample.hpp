// traces/formats/sample.hpp: a small trace inside the program, for a first run without any file.
#pragma once

#include <string_view>

#include "traces/io/embedded_file.hpp"

namespace kvo::traces {

/// Name of the sample in messages and options.
inline constexpr std::string_view kSampleName = "sample";

/// traces/sample/conversation.jsonl: 300 requests in Mooncake's format, made by generate() with its
/// default options. To be read with TextSource::in_memory.
[[nodiscard]] std::span<const EmbeddedFile> sample_files();
[[nodiscard]] inline std::string_view sample_trace() {
  return sample_files().front().text;
}

}  // namespace kvo::traces
