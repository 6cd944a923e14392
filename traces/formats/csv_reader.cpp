#include "traces/formats/csv_reader.hpp"

#include <optional>
#include <utility>

#include "traces/formats/field_values.hpp"

namespace kvo::traces {

namespace {

class CsvReader final : public Reader {
 public:
  CsvReader(CsvTable table, const CsvColumns& columns, CsvArrival arrival, bool skips_failed)
      : table_(std::move(table)),
        columns_(columns),
        arrival_(std::move(arrival)),
        skips_failed_(skips_failed) {}

 protected:
  TraceResult<std::optional<Request>> read_next() override {
    for (;;) {
      const auto more = table_.next();
      if (!more) return more.error();
      if (!*more) return std::optional<Request>();
      const Place place = table_.place();
      const auto arrival = arrival_(place, columns_[0], table_.cell(0));
      if (!arrival) return arrival.error();
      const auto input = parse_tokens(place, columns_[1], table_.cell(1));
      if (!input) return input.error();
      const auto output = parse_tokens(place, columns_[2], table_.cell(2));
      if (!output) return output.error();
      if (*output != 0 || !skips_failed_)
        return std::optional(Request{.arrival_us = *arrival,
                                     .input_tokens = *input,
                                     .output_tokens = *output,
                                     .line = place.line});
      count_failed();
    }
  }

 private:
  CsvTable table_;
  const CsvColumns& columns_;
  CsvArrival arrival_;
  bool skips_failed_;
};

}  // namespace

bool has_token_columns(std::string_view first_line, const CsvColumns& columns) {
  return first_line.find(columns[1]) != std::string_view::npos &&
         first_line.find(columns[2]) != std::string_view::npos;
}

TraceResult<std::unique_ptr<Reader>> open_csv(TextSource source, const CsvColumns& columns,
                                              CsvArrival arrival, bool skips_failed) {
  auto table = CsvTable::open(std::move(source), columns);
  if (!table) return table.error();
  return std::unique_ptr<Reader>(
      std::make_unique<CsvReader>(std::move(*table), columns, std::move(arrival), skips_failed));
}

}  // namespace kvo::traces
