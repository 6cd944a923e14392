#include "traces/formats/azure.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "traces/formats/field_values.hpp"
#include "traces/io/csv_rows.hpp"

namespace kvo::traces {

namespace {

constexpr std::array<std::string_view, 3> kColumns{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
constexpr std::int64_t kNanosecondsPerMicrosecond = 1000;

/// Takes text apart from its beginning.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  /// Exactly `digits` digits.
  std::optional<int> number(int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i) {
      if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return std::nullopt;
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }

  /// One of the characters of `any`, or 0.
  char one_of(std::string_view any) {
    if (rest_.empty() || any.find(rest_.front()) == std::string_view::npos) return '\0';
    const char found = rest_.front();
    rest_.remove_prefix(1);
    return found;
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::optional<std::chrono::sys_days> scan_date(Scanner& scanner) {
  const auto year = scanner.number(4);
  if (!year || scanner.one_of("-") == '\0') return std::nullopt;
  const auto month = scanner.number(2);
  if (!month || scanner.one_of("-") == '\0') return std::nullopt;
  const auto day = scanner.number(2);
  if (!day || *year < 1970 || *year > 2199) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

std::optional<std::chrono::minutes> scan_hours_and_minutes(Scanner& scanner) {
  const auto hour = scanner.number(2);
  if (!hour || scanner.one_of(":") == '\0') return std::nullopt;
  const auto minute = scanner.number(2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  return std::chrono::hours(*hour) + std::chrono::minutes(*minute);
}

std::optional<std::chrono::nanoseconds> scan_seconds(Scanner& scanner) {
  const auto second = scanner.number(2);
  if (!second || *second > 59) return std::nullopt;
  std::int64_t fraction = 0;
  if (scanner.one_of(".") != '\0') {
    std::int64_t unit = 100'000'000;
    auto digit = scanner.number(1);
    if (!digit) return std::nullopt;
    for (; digit && unit != 0; digit = scanner.number(1)) {
      fraction += *digit * unit;
      unit /= 10;
    }
    if (digit) return std::nullopt;
  }
  return std::chrono::seconds(*second) + std::chrono::nanoseconds(fraction);
}

/// What the zone is ahead of UTC.
std::optional<std::chrono::minutes> scan_zone(Scanner& scanner) {
  if (scanner.at_end() || scanner.one_of("Z") != '\0') return std::chrono::minutes(0);
  const char sign = scanner.one_of("+-");
  const auto offset = scan_hours_and_minutes(scanner);
  if (sign == '\0' || !offset) return std::nullopt;
  return sign == '+' ? *offset : -*offset;
}

class AzureReader final : public Reader {
 public:
  explicit AzureReader(CsvTable table) : table_(std::move(table)) {}

 protected:
  TraceResult<std::optional<Request>> read_next() override {
    const auto more = table_.next();
    if (!more) return more.error();
    if (!*more) return std::optional<Request>();
    const Place place = table_.place();
    const auto stamp = parse_stamp_ns(table_.cell(0));
    if (!stamp) {
      const auto text = table_.cell(0);
      return error_at(place, kColumns[0], text,
                      text.empty() ? "missing" : "not a stamp YYYY-MM-DD HH:MM:SS.digits");
    }
    const auto input = parse_tokens(place, kColumns[1], table_.cell(1));
    if (!input) return input.error();
    const auto output = parse_tokens(place, kColumns[2], table_.cell(2));
    if (!output) return output.error();
    if (!first_ns_) first_ns_ = *stamp;
    return std::optional(Request{.arrival_us = microseconds_since_first(*stamp),
                                 .input_tokens = *input,
                                 .output_tokens = *output,
                                 .block_ids = {},
                                 .line = place.line});
  }

 private:
  [[nodiscard]] std::int64_t microseconds_since_first(std::int64_t stamp_ns) const {
    const std::int64_t ns = stamp_ns - *first_ns_;
    // Rounded down also below zero, so that equal steps stay in order.
    const bool below = ns % kNanosecondsPerMicrosecond < 0;
    return ns / kNanosecondsPerMicrosecond - (below ? 1 : 0);
  }

  CsvTable table_;
  std::optional<std::int64_t> first_ns_;
};

}  // namespace

std::optional<std::int64_t> parse_stamp_ns(std::string_view text) {
  Scanner scanner(text);
  const auto date = scan_date(scanner);
  if (!date || scanner.one_of(" T") == '\0') return std::nullopt;
  const auto minutes = scan_hours_and_minutes(scanner);
  if (!minutes || scanner.one_of(":") == '\0') return std::nullopt;
  const auto seconds = scan_seconds(scanner);
  if (!seconds) return std::nullopt;
  const auto zone = scan_zone(scanner);
  if (!zone || !scanner.at_end()) return std::nullopt;
  const std::chrono::nanoseconds since = date->time_since_epoch() + *minutes + *seconds - *zone;
  return since.count();
}

bool looks_like_azure(std::string_view first_line) {
  return first_line.find(kColumns[1]) != std::string_view::npos &&
         first_line.find(kColumns[2]) != std::string_view::npos;
}

TraceResult<std::unique_ptr<Reader>> open_azure(TextSource source) {
  auto table = CsvTable::open(std::move(source), kColumns);
  if (!table) return table.error();
  return std::unique_ptr<Reader>(std::make_unique<AzureReader>(std::move(*table)));
}

}  // namespace kvo::traces
