#include "traces/formats/formats.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "traces/formats/azure.hpp"
#include "traces/formats/burstgpt.hpp"
#include "traces/formats/mooncake.hpp"

namespace kvo::traces {

namespace {

constexpr std::array kFormats{
    Format{"mooncake", "Mooncake FAST'25, JSON Lines with block ids", looks_like_mooncake,
           open_mooncake},
    Format{"azure", "Azure LLM inference 2023 and 2024, CSV", looks_like_azure, open_azure},
    Format{"burstgpt", "BurstGPT, CSV", looks_like_burstgpt, open_burstgpt},
};

std::string known_names() {
  std::vector<std::string_view> names;
  names.reserve(kFormats.size());
  for (const Format& format : kFormats) names.push_back(format.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The format called `name`, or the one that the beginning of `source` looks like.
TraceResult<const Format*> choose(TextSource& source, std::string_view name) {
  if (const auto passed = source.pass_blank_lines(); !passed) return passed.error();
  const auto line = source.peek_line();
  if (!line) return line.error();
  if (!*line) return error_at({source.name()}, {}, {}, "the file is empty");
  const auto* const found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& format) {
        return name.empty() ? format.detect(**line) : format.name == name;
      });
  if (found != kFormats.end()) return found;
  if (!name.empty()) {
    return error_at({}, "format", name, "unknown; there are " + known_names());
  }
  return error_at({source.name(), source.line_number() + 1}, "format", **line,
                  "not the beginning of any known format: " + known_names());
}

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

TraceResult<std::unique_ptr<Reader>> open_trace(const std::string& path, std::string_view format) {
  auto source = TextSource::open(path);
  if (!source) return source.error();
  return open_trace(std::move(*source), format);
}

TraceResult<std::unique_ptr<Reader>> open_trace(TextSource source, std::string_view format) {
  const auto chosen = choose(source, format);
  if (!chosen) return chosen.error();
  return (*chosen)->open(std::move(source));
}

}  // namespace kvo::traces
