#include "traces/formats/azure.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

#include "traces/formats/csv_reader.hpp"

namespace kvo::traces {

namespace {

constexpr CsvColumns kAzureColumns{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

/// The numbers in a text of that form, in order: `form` has 0 for any digit, and a blank for a
/// blank or T. Nothing if the text has another form.
std::optional<std::array<int, 6>> numbers_in(std::string_view text, std::string_view form) {
  std::array<int, 6> numbers{};
  std::size_t at = 0;
  if (text.size() != form.size()) return std::nullopt;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '0') {
      if (!is_decimal(text[i])) return std::nullopt;
      numbers.at(at) = numbers.at(at) * 10 + (text[i] - '0');
    } else {
      if (text[i] != form[i] && (form[i] != ' ' || text[i] != 'T')) return std::nullopt;
      ++at;
    }
  }
  return numbers;
}

/// Nanoseconds of ".digits", which are taken from the text; 0 without them.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
  constexpr std::size_t kDigits = 9;
  if (!text.starts_with('.')) return 0;
  std::string digits;
  for (text.remove_prefix(1); !text.empty() && is_decimal(text.front()); text.remove_prefix(1))
    digits += text.front();
  if (digits.empty() || digits.size() > kDigits) return std::nullopt;
  digits.resize(kDigits, '0');
  return std::atoll(digits.c_str());
}

/// Minutes that a zone is ahead of UTC.
std::optional<int> minutes_of_zone(std::string_view zone) {
  if (zone.empty() || zone == "Z") return 0;
  const auto ahead = numbers_in(zone.substr(1), "00:00");
  if (!ahead || (*ahead)[0] > 23 || (*ahead)[1] > 59) return std::nullopt;
  const int minutes = (*ahead)[0] * 60 + (*ahead)[1];
  if (zone.front() == '+') return minutes;
  return zone.front() == '-' ? std::optional(-minutes) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_stamp_ns(std::string_view text) {
  namespace chrono = std::chrono;
  constexpr std::string_view kForm = "0000-00-00 00:00:00";
  const auto stamp = numbers_in(text.substr(0, kForm.size()), kForm);
  if (!stamp) return std::nullopt;
  text.remove_prefix(kForm.size());
  const auto fraction = take_fraction(text);
  const auto ahead = minutes_of_zone(text);
  const auto [y, mon, d, h, min, sec] = *stamp;
  const chrono::year_month_day date(chrono::year(y), chrono::month(static_cast<unsigned>(mon)),
                                    chrono::day(static_cast<unsigned>(d)));
  if (!fraction || !ahead || !date.ok() || y < 1970 || y > 2199 || h > 23 || min > 59 || sec > 59)
    return std::nullopt;
  const chrono::nanoseconds since = chrono::sys_days(date).time_since_epoch() + chrono::hours(h) +
                                    chrono::minutes(min - *ahead) + chrono::seconds(sec) +
                                    chrono::nanoseconds(*fraction);
  return since.count();
}

bool looks_like_azure(std::string_view first_line) {
  return has_token_columns(first_line, kAzureColumns);
}

TraceResult<std::unique_ptr<Reader>> open_azure(TextSource source) {
  return open_csv(
      std::move(source), kAzureColumns,
      [first = std::optional<std::int64_t>()](
          Place place, std::string_view column,
          std::string_view cell) mutable -> TraceResult<std::int64_t> {
        const auto stamp = parse_stamp_ns(cell);
        if (!stamp)
          return error_at(place, column, cell,
                          cell.empty() ? "missing" : "not a stamp YYYY-MM-DD HH:MM:SS.digits");
        if (!first) first = stamp;
        // Rounded down also below zero, so that equal steps stay in order.
        return std::chrono::floor<std::chrono::microseconds>(
                   std::chrono::nanoseconds(*stamp - *first))
            .count();
      },
      false);
}

}  // namespace kvo::traces
