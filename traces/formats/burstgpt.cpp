#include "traces/formats/burstgpt.hpp"

#include <array>
#include <optional>
#include <utility>

#include "traces/formats/field_values.hpp"
#include "traces/io/csv_rows.hpp"

namespace kvo::traces {

namespace {

constexpr std::array<std::string_view, 3> kColumns{"Timestamp", "Request tokens",
                                                   "Response tokens"};

class BurstGptReader final : public Reader {
 public:
  explicit BurstGptReader(CsvTable table) : table_(std::move(table)) {}

 protected:
  TraceResult<std::optional<Request>> read_next() override {
    for (;;) {
      const auto more = table_.next();
      if (!more) return more.error();
      if (!*more) return std::optional<Request>();
      auto request = parse_row();
      if (!request) return request.error();
      if (request->output_tokens != 0) return std::optional(std::move(*request));
      count_failed();
    }
  }

 private:
  [[nodiscard]] TraceResult<Request> parse_row() const {
    const Place place = table_.place();
    const auto arrival = parse_seconds_as_us(place, kColumns[0], table_.cell(0));
    if (!arrival) return arrival.error();
    const auto input = parse_tokens(place, kColumns[1], table_.cell(1));
    if (!input) return input.error();
    const auto output = parse_tokens(place, kColumns[2], table_.cell(2));
    if (!output) return output.error();
    return Request{.arrival_us = *arrival,
                   .input_tokens = *input,
                   .output_tokens = *output,
                   .block_ids = {},
                   .line = place.line};
  }

  CsvTable table_;
};

}  // namespace

bool looks_like_burstgpt(std::string_view first_line) {
  return first_line.find(kColumns[1]) != std::string_view::npos &&
         first_line.find(kColumns[2]) != std::string_view::npos;
}

TraceResult<std::unique_ptr<Reader>> open_burstgpt(TextSource source) {
  auto table = CsvTable::open(std::move(source), kColumns);
  if (!table) return table.error();
  return std::unique_ptr<Reader>(std::make_unique<BurstGptReader>(std::move(*table)));
}

}  // namespace kvo::traces
