#include "traces/formats/burstgpt.hpp"

#include <utility>

#include "traces/formats/csv_reader.hpp"
#include "traces/formats/field_values.hpp"

namespace kvo::traces {

namespace {

constexpr CsvColumns kBurstGptColumns{"Timestamp", "Request tokens", "Response tokens"};

}  // namespace

bool looks_like_burstgpt(std::string_view first_line) {
  return has_token_columns(first_line, kBurstGptColumns);
}

TraceResult<std::unique_ptr<Reader>> open_burstgpt(TextSource source) {
  return open_csv(std::move(source), kBurstGptColumns, parse_seconds_as_us, true);
}

}  // namespace kvo::traces
